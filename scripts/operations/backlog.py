"""How far a query is behind its topics, how fast it reads, and when it will have caught up, by its records of micro-batches.

All of it is as of the last committed micro-batch: nobody asks the brokers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.checkpoint import BatchRecord, Position

# Ours: enough to level out single micro-batches, few enough to follow a change.
OVER_BATCHES = 10
Positions = Mapping[tuple[str, int], Position]


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PartitionBacklog(_Said):
    """A partition at the end of a micro-batch.

    Args:
        topic: of the partition.
        partition: its number.
        next: the next offset to read.
        latest: the offset after the last record when the micro-batch was planned; None if it is unknown.
        records: between the two.
        arrived_per_s: records that have come to it a second, over the same micro-batches as those of the query; None if it is unknown.
    """

    topic: str
    partition: int
    next: int
    latest: int | None
    records: int | None
    arrived_per_s: float | None


class Skew(_Said):
    """The partition that gets more records than the others of its topic by the greatest factor.

    Args:
        topic: of the partition.
        partition: its number.
        times: of the mean of all partitions of the topic, itself included.
    """

    topic: str
    partition: int
    times: float


class Backlog(_Said):
    """What a query has not read yet.

    Args:
        records: over all partitions; None if the record does not say, as of a job without topics or after a replay.
        seconds: for how long records have arrived to make the backlog, at their rate: roughly how old the oldest one is. None if the rate
            is unknown, or none arrived.
        read_per_s: records that the query has read a second, over the last micro-batches and the time between them.
        arrived_per_s: records that have come to its topics a second, meanwhile.
        gone_in_s: when the backlog will be gone at these rates, in seconds; None if it grows or stands, or the rates are unknown.
        micro_batches: over which the rates are; 0 if they are unknown.
        skew: over the same micro-batches; None if nothing has come, or no topic has several partitions.
        partitions: by topic and number.
    """

    records: int | None
    seconds: float | None
    read_per_s: float | None
    arrived_per_s: float | None
    gone_in_s: float | None
    micro_batches: int
    skew: Skew | None
    partitions: tuple[PartitionBacklog, ...]


def backlog_of(record: BatchRecord, earlier: BatchRecord | None) -> Backlog:
    """The backlog after a micro-batch.

    Args:
        record: of the micro-batch.
        earlier: of one before it, from which on rates are measured; None if there is none.
    """
    now, before = _flat(record), _flat(earlier) if earlier else {}
    records = _total([_behind(one) for one in now.values()])
    passed_s = (record.time_ms - earlier.time_ms) / 1000 if earlier else 0.0
    read = _rate(_read(record, earlier, now, before), passed_s) if earlier else None
    by_partition = {key: _arrived(now[key], before[key]) for key in now.keys() & before.keys()}
    arrived = _rate(_total(list(by_partition.values())), passed_s)
    return Backlog(
        records=records,
        seconds=None if records is None or not arrived else records / arrived,
        read_per_s=read,
        arrived_per_s=arrived,
        gone_in_s=_gone_in_s(records, read, arrived),
        micro_batches=record.batch - earlier.batch if earlier and read is not None else 0,
        skew=_skew({key: records for key, records in by_partition.items() if records is not None}),
        partitions=tuple(
            PartitionBacklog(
                topic=topic,
                partition=number,
                next=one.next,
                latest=one.latest,
                records=_behind(one),
                arrived_per_s=_rate(by_partition.get((topic, number)), passed_s),
            )
            for (topic, number), one in sorted(now.items())
        ),
    )


def _flat(record: BatchRecord) -> Positions:
    return {(topic, number): one for topic, parts in record.positions.items() for number, one in parts.items()}


def _behind(position: Position) -> int | None:
    return None if position.latest is None else max(0, position.latest - position.next)


def _arrived(position: Position, before: Position) -> int | None:
    return None if position.latest is None or before.latest is None else max(0, position.latest - before.latest)


def _skew(arrived: Mapping[tuple[str, int], int]) -> Skew | None:
    topics: dict[str, dict[int, int]] = defaultdict(dict)
    for (topic, number), records in sorted(arrived.items()):
        topics[topic][number] = records
    skews = [_skew_of(topic, parts) for topic, parts in topics.items() if len(parts) > 1 and any(parts.values())]
    return max(skews, key=lambda skew: skew.times, default=None)


def _skew_of(topic: str, parts: Mapping[int, int]) -> Skew:
    number = max(parts, key=lambda number: parts[number])
    return Skew(topic=topic, partition=number, times=parts[number] * len(parts) / sum(parts.values()))


def _read(record: BatchRecord, earlier: BatchRecord, now: Positions, before: Positions) -> int:
    """By offsets: a query that shares sources counts the records of some of them only."""
    if now:
        return sum(max(0, now[key].next - before[key].next) for key in now.keys() & before.keys())
    return sum(record.total_rows_in.values()) - sum(earlier.total_rows_in.values())


def _total(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def _rate(records: int | None, passed_s: float) -> float | None:
    return None if records is None or passed_s <= 0 else records / passed_s


def _gone_in_s(records: int | None, read: float | None, arrived: float | None) -> float | None:
    if records is None or read is None or arrived is None:
        return None
    if records == 0:
        return 0.0
    return records / (read - arrived) if read > arrived else None
