"""How far a job is behind the end of its topics, reported with each micro-batch and as gauges among Spark's own metrics."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from pyspark.sql import SparkSession

from penstock.jobs.sources.ends import PartitionEnds
from penstock.jobs.storage.checkpoint import Position

# The gauges' names in Spark's registry; infra/manifests/prometheus.py has them as Spark's Prometheus servlet spells them.
PREFIX = "penstock."
LAG_RECORDS = "penstock.lagRecords"
STARTED_S = "penstock.startedSeconds"

_Offsets = Mapping[str, Mapping[int, int]]


def lag(offsets: Iterable[tuple[str | None, str | None]], until: PartitionEnds = MappingProxyType({})) -> dict[str, int]:
    """Records that a micro-batch left unread.

    Args:
        offsets: for each source the end offsets of the micro-batch and the latest offsets that Spark saw; Kafka's offsets as JSON: topic
            -> partition -> offset.
        until: topic -> partition -> where a bounded run ends; records from there on are not counted.

    Returns:
        Topic -> records between the two, over all partitions; a source whose latest offsets Spark does not report is left out.
    """
    behind: dict[str, int] = {}
    for end, latest in offsets:
        read = _parsed(end)
        for topic, partitions in _parsed(latest).items():
            ends = until.get(topic, {})
            if not isinstance(partitions, dict):
                # Not Kafka: a file source reports the position in its own log.
                continue
            # A partition that the micro-batch does not know yet is counted once the query has been planned with it.
            last = {number: min(offset, ends.get(int(number), offset)) for number, offset in partitions.items()}
            behind[topic] = sum(max(0, last.get(number, at) - at) for number, at in read.get(topic, {}).items())
    return behind


def positions(ends: Sequence[_Offsets], latest: Sequence[_Offsets], until: PartitionEnds) -> dict[str, dict[int, Position]]:
    """How far a micro-batch has read its topics.

    Args:
        ends: where it ends, for each source: topic -> partition -> offset.
        latest: where the topics ended when it was planned, for each source; empty if Spark does not say.
        until: as of `lag`.

    Returns:
        Topic -> partition -> position: of a topic that several sources read, of the source that has read the least.
    """
    known = {(topic, number): offset for topics in latest for topic, parts in topics.items() for number, offset in parts.items()}
    found: dict[str, dict[int, Position]] = {}
    for topic, parts in ((topic, parts) for topics in ends for topic, parts in topics.items()):
        for number, end in parts.items():
            offset, last = min(end, until.get(topic, {}).get(number, end)), known.get((topic, number))
            position = Position(offset, None if last is None else min(last, until.get(topic, {}).get(number, last)))
            found.setdefault(topic, {})
            found[topic][number] = min(position, found[topic].get(number, position), key=lambda one: one.next)
    return found


class Gauges:
    """Gauges among the driver's own metrics, which Spark's Prometheus servlet exposes.

    Spark has no public API to add a metric from Python. The registry of its scheduler accepts further ones while it runs (Dropwizard's
    MetricRegistry passes them on to its parent registry); a test covers this on PySpark 4.3.0.

    Args:
        session: whose driver they belong to.
        prefix: what takes the place of `PREFIX` in their names: of a job of a session, ``penstock.job.<job>.``.
    """

    def __init__(self, session: SparkSession, prefix: str = PREFIX) -> None:
        self._session = session
        self._prefix = prefix
        self._shown: dict[str, Any] = {}
        # The registry outlives a job if several run in one session, one after another.
        registry = _registry(session)
        for name in list(registry.getNames()):
            if name.startswith(prefix):
                registry.remove(name)
        self._lag_records = self._gauge(LAG_RECORDS)
        # A restarted driver has a new value, whatever pod it runs in: alerts count the changes.
        self._gauge(STARTED_S).setValue(int(time.time()))

    def behind(self, records: int) -> None:
        """Sets the number of records that the job is behind."""
        self._lag_records.setValue(records)

    def show(self, values: Mapping[str, int]) -> None:
        """Sets gauges by name; an unknown name gets a new gauge."""
        for name, value in values.items():
            if name not in self._shown:
                self._shown[name] = self._gauge(name)
            self._shown[name].setValue(value)

    def _gauge(self, name: str) -> Any:
        return gauge(self._session, f"{self._prefix}{name.removeprefix(PREFIX)}")


def gauge(session: SparkSession, name: str) -> Any:
    """A new gauge among the driver's own metrics, of Java, whose ``setValue`` takes a whole number; it begins with 0.

    Args:
        session: whose driver it belongs to.
        name: of the gauge; none of the driver's has it.
    """
    assert session._jvm is not None
    # By its whole name: py4j looks for a class of each part of a path, in all jars.
    return _registry(session).register(name, getattr(session._jvm, "com.codahale.metrics.DefaultSettableGauge")(0))


def _registry(session: SparkSession) -> Any:
    return session._jsparkSession.sparkContext().dagScheduler().metricsSource().metricRegistry()


class ShowsLag(Protocol):
    """Where the lag of a job is shown."""

    def behind(self, records: int) -> None:
        """Sets the number of records that the job is behind."""


class JobLag:
    """How far a job is behind: of each topic, what the query that has read the least of it has not read yet.

    Args:
        gauges: show it.
        queries: names of the job's queries.
    """

    def __init__(self, gauges: ShowsLag, queries: Collection[str]) -> None:
        self._gauges = gauges
        self._busy = set(queries)
        # Query -> topic -> records; and the positions that the queries have reported.
        self._behind: dict[str, dict[str, int]] = {}
        self._ends: dict[str, dict[str, Mapping[str, int]]] = {}
        self._one_at_a_time = threading.Lock()

    @property
    def records(self) -> int:
        """Records over all topics."""
        topics = {topic for behind in self._behind.values() for topic in behind}
        return sum(max(behind.get(topic, 0) for behind in self._behind.values()) for topic in topics)

    @property
    def all_idle(self) -> bool:
        """Whether each query has found nothing to read since its last micro-batch; none has before it has looked for records."""
        return not self._busy

    def committed(
        self, query: str, offsets: Sequence[tuple[str | None, str | None]], until: PartitionEnds = MappingProxyType({})
    ) -> dict[str, int]:
        """Takes the offsets of a committed micro-batch, as `lag` does.

        A query whose micro-batch takes long reports nothing meanwhile: what others see of the same topics counts for it too.

        Returns:
            Topic -> records that the query is behind.
        """
        own = lag(offsets, until)
        with self._one_at_a_time:
            self._busy.add(query)
            self._behind[query] = own
            self._ends[query] = {topic: read for end, _ in offsets for topic, read in _parsed(end).items()}
            for other in self._ends.keys() - {query}:
                seen = lag(((json.dumps(self._ends[other]), latest) for _, latest in offsets), until)
                for topic in seen.keys() & self._ends[other].keys():
                    self._behind[other][topic] = max(self._behind[other].get(topic, 0), seen[topic])
            self._gauges.behind(self.records)
        return own

    def began(self, query: str) -> None:
        """Takes note that a micro-batch of a query has begun."""
        with self._one_at_a_time:
            self._busy.add(query)

    def idle(self, query: str) -> int:
        """Takes note that a query has read everything.

        Returns:
            Records that the job is behind.
        """
        with self._one_at_a_time:
            self._busy.discard(query)
            self._behind[query] = dict.fromkeys(self._behind.get(query, {}), 0)
            self._gauges.behind(self.records)
            return self.records


def _parsed(text: str | None) -> Mapping[str, Mapping[str, int]]:
    """Offsets; empty if Spark has none, which PySpark represents as the string None, such as for a micro-batch replayed after a restart.

    Sources other than Kafka report something else, which is left out.
    """
    offsets = json.loads(text) if text and text.startswith("{") else {}
    return {topic: partitions for topic, partitions in offsets.items() if isinstance(partitions, dict)}
