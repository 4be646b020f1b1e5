"""What a local run was fed with and how its micro-batches fell, and what is expected of it.

An app's expectation is computed from a `Recording` alone: the records as a plain consumer read them back from the brokers, and the ranges
of each micro-batch as Spark wrote them to its offset log. None of the engine's or of Penstock's streaming code takes part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A record to be fed.

    Args:
        value: bytes of the value; None is a tombstone.
        key: bytes of the key.
        partition: of the topic; None leaves it to the key, or to turns where there is none.
        flush: whether it is only there to move the watermark past the others, and is not counted.
        timestamp_ms: of the record in epoch milliseconds; None: that of the moment in which it is fed.
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    flush: bool = False
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record as it lies in its topic, with the timestamp that the brokers keep, in epoch milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    flush: bool
    timestamp_ms: int = 0


@dataclass(frozen=True)
class RecordedBatch:
    """A micro-batch in the offset log.

    Args:
        number: Spark's.
        time_ms: its own time in epoch milliseconds.
        watermark_ms: Spark's watermark for it in epoch milliseconds.
        ends: topic -> partition -> the first offset behind it.
    """

    number: int
    time_ms: int
    watermark_ms: int
    ends: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Recording:
    """A local run from its input's side.

    Args:
        records: topic -> records.
        partitions: topic -> number of partitions.
        batches: the micro-batches in their order.
        starts: topic -> partition -> the first offset that the run read.
    """

    records: Mapping[str, list[Recorded]]
    partitions: Mapping[str, int]
    batches: list[RecordedBatch]
    starts: Mapping[str, Mapping[int, int]]

    def by_batch(self) -> Iterator[tuple[RecordedBatch, dict[str, list[Recorded]]]]:
        """Each micro-batch with the records that it read: topic -> records by partition and offset."""
        places = {(topic, r.partition, r.offset): r for topic, records in self.records.items() for r in records}
        begin = {topic: dict(offsets) for topic, offsets in self.starts.items()}
        for batch in self.batches:
            read: dict[str, list[Recorded]] = {}
            for topic, ends in batch.ends.items():
                for partition, end in sorted(ends.items()):
                    start = begin[topic].get(partition, 0)
                    read.setdefault(topic, []).extend(places[topic, partition, offset] for offset in range(start, end))
                    begin[topic][partition] = end
            yield batch, read


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Expectation:
    """What must come out of a local run.

    Args:
        rows: rows in the output.
        quarantined: records in quarantine.
        late: rows that came too late.
        exact: the output's rows as sorted JSON with how often each must be there; None where `measures` say enough.
        measures: name -> value that `measure` must give.
        measure: name -> value, from the output's rows.
        last_by: fields by which a row stands for the one before it: only the last of each counts; empty: every row does.
        sinks: sink -> its rows as sorted JSON with how often each must be there, where a job has several outputs.
        side_outputs: tag of the app's own -> rows that it must have sent aside.
    """

    rows: int
    quarantined: int = 0
    late: int = 0
    exact: Counter[str] | None = None
    measures: Mapping[str, object] = field(default_factory=dict)
    measure: Callable[[Iterable[Row]], Mapping[str, object]] | None = None
    last_by: tuple[str, ...] = ()
    sinks: Mapping[str, Counter[str]] = field(default_factory=dict)
    side_outputs: Mapping[str, int] = field(default_factory=dict)
