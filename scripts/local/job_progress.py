"""How far a driver is, by its events: those of a job with several queries name the query, and are taken together here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.jobs.driver.fixed_parallelism import FixedParallelism
from penstock.scripts.local.read_partitions import ReadPartitions

Event = Mapping[str, Any]


@dataclass
class JobProgress:
    """The progress of a job's queries.

    Args:
        readings: name of a query, empty for the only one -> its event ``reading``.
    """

    readings: dict[str, Event] = field(default_factory=dict)
    _batches: dict[str, Event] = field(default_factory=dict)
    _ends: dict[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    _idle: set[str] = field(default_factory=set)
    _open: dict[str, int] = field(default_factory=dict)
    _read: ReadPartitions = field(default_factory=ReadPartitions)

    def take(self, event: Event) -> None:
        """Takes an event of the driver."""
        query = _query(event)
        match event["event"]:
            case "reading":
                self.readings[query] = event
            case "batch":
                self._batches[query] = event
                self._read.take(event)
                self._idle.discard(query)
            case "committed":
                self._ends[query] = event["ends"]
                self._open[query] = event.get("openWindows", 0)
            case "idle":
                self._idle.add(query)

    @property
    def reads(self) -> bool:
        """Whether all queries have reported what they read."""
        return bool(self.readings) and len(self.readings) == max(len(event.get("queries", [""])) for event in self.readings.values())

    @property
    def reading(self) -> dict[str, Any]:
        """What the queries read and write together, in the form of the event."""
        first = next(iter(self.readings.values()))
        offsets = {name: topics for event in self.readings.values() for name, topics in event["offsets"].items()}
        return {**first, "offsets": offsets, "outputs": [sink for event in self.readings.values() for sink in event["outputs"]]}

    @property
    def fixed_parallelism(self) -> list[str]:
        """A sentence for each query whose state has another parallelism than the spec."""
        fixed = {query: FixedParallelism(**event["parallelism"]) for query, event in self.readings.items() if "parallelism" in event}
        return [f"{query}: {one}" if query else str(one) for query, one in fixed.items()]

    @property
    def idle(self) -> bool:
        """Whether all queries are idle."""
        return self._idle >= self.readings.keys()

    @property
    def open_windows(self) -> int:
        """Groups of windows that have not closed, as far as the driver says so."""
        return sum(self._open.values())

    @property
    def totals(self) -> Counter[str]:
        """Tag -> rows, of all queries."""
        return self._summed("totalTags")

    @property
    def rows_in(self) -> Counter[str]:
        """Source -> records read; one that several queries read counts once."""
        return self._summed("totalRowsIn")

    @property
    def partitions(self) -> list[str]:
        """A sentence for each source of files, and for each repartition of what was read from them."""
        return self._read.sentences

    @property
    def ends(self) -> dict[str, dict[str, int]]:
        """Topic -> partition -> the offset up to which every query that reads the topic has committed."""
        return {topic: self._common(topic) for topic in {topic for ends in self._ends.values() for topic in ends}}

    def batch(self, event: Event) -> Event:
        """The micro-batch that an event ``committed`` is about."""
        return self._batches[_query(event)]

    def _summed(self, field_: str) -> Counter[str]:
        return sum((Counter(batch[field_]) for batch in self._batches.values()), Counter())

    def _common(self, topic: str) -> dict[str, int]:
        readers = [query for query, event in self.readings.items() if any(topic in topics for topics in event["offsets"].values())]
        known = [self._ends.get(query, {}).get(topic, {}) for query in readers]
        numbers = set.intersection(*(set(partitions) for partitions in known)) if known else set()
        return {number: min(int(partitions[number]) for partitions in known) for number in numbers}


def _query(event: Event) -> str:
    return str(event.get("query", ""))
