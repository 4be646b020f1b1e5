"""Recording of a local run, its input and micro-batches, and the expectation computed from it.

An app's expectation is computed from a `Recording` only: the records as read back from the brokers by a plain consumer, and the ranges
of each micro-batch as written by Spark to its offset log. No streaming code of the engine or of Penstock is involved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A record to feed.

    Args:
        value: bytes of the value; None is a tombstone.
        key: bytes of the key.
        partition: partition of the topic; None for the partition of the key, or round-robin without a key.
        flush: whether it only advances the watermark past the others, and is not counted.
        timestamp_ms: timestamp in epoch milliseconds; None for the time when it is sent.
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    flush: bool = False
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record of a topic, with the timestamp that the brokers keep, in epoch milliseconds."""

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
        number: Spark's number.
        time_ms: time of the micro-batch in epoch milliseconds.
        watermark_ms: Spark's watermark for it in epoch milliseconds.
        ends: topic -> partition -> end offset, exclusive.
    """

    number: int
    time_ms: int
    watermark_ms: int
    ends: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Recording:
    """The input of a local run.

    Args:
        records: topic -> records.
        partitions: topic -> number of partitions.
        batches: the micro-batches in their order; of a job with several queries, those of the first.
        starts: topic -> partition -> the first offset that the run read.
        queries: name of a further query -> its micro-batches in their order.
    """

    records: Mapping[str, list[Recorded]]
    partitions: Mapping[str, int]
    batches: list[RecordedBatch]
    starts: Mapping[str, Mapping[int, int]]
    queries: Mapping[str, list[RecordedBatch]] = field(default_factory=dict)

    def of_query(self, name: str) -> Recording:
        """The input as a further query read it."""
        return replace(self, batches=self.queries[name])

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
    """The expectation of a local run.

    Args:
        rows: number of rows in the output.
        quarantined: number of records in quarantine.
        late: number of late rows.
        exact: rows of the output as sorted JSON with their number of occurrences; None if `measures` suffice.
        measures: name -> expected value of `measure`.
        measure: computes name -> value from the rows of the output.
        last_by: key fields of rows that replace each other: only the last one of each key counts; empty: every row counts.
        sinks: sink -> its rows as sorted JSON with their number of occurrences, for jobs with several outputs.
        side_outputs: tag of the app -> number of rows in its side output.
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
