"""Turns given events into realistic arrivals: out of order within a bound, some late, duplicate or broken; tombstones included."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from penstock.jobs.local.recording import Expectation, Record, Recorded
from penstock.jobs.local.replay import Clock, Judged
from penstock.jobs.local.traffic import BEGINS, FLUSH_TIME, body, milliseconds, time_ms

BEGIN_MS = milliseconds(BEGINS)
FLUSH_MS = milliseconds(FLUSH_TIME)
BOUND_MS = 10_000
IDLENESS_MS = 120_000
Value = dict[str, object]


@dataclass(frozen=True)
class Event:
    """An event.

    Args:
        at_ms: event time in epoch milliseconds.
        key: key of the record.
        value: value of the record; None deletes the key.
    """

    at_ms: int
    key: str
    value: Mapping[str, object] | None


@dataclass(frozen=True)
class Faults:
    """Faults of the arrivals, each as a share of the events.

    Args:
        late: events that arrive a minute or more after their time.
        twice: events that arrive again soon after.
        broken: records that do not parse.
    """

    late: float = 0.01
    twice: float = 0.01
    broken: float = 0.003


def arrivals(events: Iterable[Event], partitions: int, *, seed: int, faults: Faults = Faults()) -> Iterator[Record]:
    """The records in the order of arrival, those of a key in one partition, with their event time as their timestamp.

    Args:
        events: events in any order.
        partitions: number of partitions of the topic.
        seed: seed of the random numbers.
        faults: faults to add.
    """
    random_ = random.Random(seed)
    arriving: list[tuple[int, Record]] = []
    for event in events:
        late = random_.random() < faults.late
        at_ms = event.at_ms + (random_.randrange(60_000, 600_000) if late else random_.randrange(BOUND_MS - 100))
        record = _record(random_, event, partitions, broken=random_.random() < faults.broken)
        arriving.append((at_ms, record))
        if random_.random() < faults.twice:
            arriving.append((at_ms + random_.randrange(2_000), record))
    arriving.sort(key=lambda arrival: arrival[0])
    return (record for _, record in arriving)


def flush(partitions: int, value: Mapping[str, object]) -> Iterator[Record]:
    """One record per partition whose only purpose is to advance the watermark past all others."""
    for partition in range(partitions):
        yield Record(json.dumps(value).encode(), key=b"flush", partition=partition, flush=True, timestamp_ms=FLUSH_MS)


def clock(needed: tuple[str, ...], *, amount: str | None = None, tombstones: bool = False, field: str = "at") -> Clock:
    """How the event time of a topic is read.

    Args:
        needed: fields without which a record is quarantined.
        amount: another field, which must be a decimal.
        tombstones: whether a record without a value deletes; else it is broken.
        field: field with the event time.
    """
    read = time_ms(field, (*needed, *([amount] if amount else [])))

    def of_record(record: Recorded) -> int | None:
        if record.value is None:
            return record.timestamp_ms if tombstones else None
        moment_ms = read(record)
        return None if moment_ms is None or not _is_decimal(record, amount) else moment_ms

    return Clock(of_record, BOUND_MS, IDLENESS_MS, moves=lambda record: record.value is not None)


def kept(judged: Iterable[Judged], topic: str) -> Iterator[tuple[Value, int]]:
    """Value and event time of a topic's accepted records; for deletions see `changes`."""
    for event in judged:
        if event.topic == topic and event.time_ms is not None and not event.late and not event.record.flush:
            value = body(event.record)
            assert value is not None
            yield value, event.time_ms


def changes(judged: Iterable[Judged], topic: str) -> dict[str, list[tuple[int, Value | None]]]:
    """Key -> (event time, value or None if deleted), ordered by event time; for topics whose records have keys."""
    histories: dict[str, dict[int, Value | None]] = {}
    for event in judged:
        if event.topic == topic and event.time_ms is not None and not event.late and not event.record.flush:
            value = None if event.record.value is None else body(event.record)
            history = histories.setdefault((event.record.key or b"").decode(), {})
            assert history.setdefault(event.time_ms, value) == value, "two versions of one time: the input does not say which is newer"
    return {key: sorted(history.items(), key=lambda change: change[0]) for key, history in histories.items()}


def valid_at(history: Iterable[tuple[int, Value | None]], moment_ms: int) -> Value | None:
    """The version that was valid at a time; None if there was none."""
    valid: Value | None = None
    for at_ms, value in history:
        if at_ms <= moment_ms:
            valid = value
    return valid


def expectation(judged: Iterable[Judged], rows: Counter[str], sinks: Mapping[str, Counter[str]] | None = None) -> Expectation:
    """The expectation of a job, including its side outputs.

    Args:
        judged: verdict on each record.
        rows: rows of the only output.
        sinks: sink -> its rows, if there are several; `rows` is then empty.
    """
    events = list(judged)
    quarantined, late = sum(event.time_ms is None for event in events), sum(event.late for event in events)
    if sinks is not None:
        return Expectation(sum(some.total() for some in sinks.values()), quarantined, late, sinks=sinks)
    return Expectation(rows.total(), quarantined, late, exact=rows)


def _record(random_: random.Random, event: Event, partitions: int, *, broken: bool) -> Record:
    partition = zlib.crc32(event.key.encode()) % partitions
    value = None if event.value is None else json.dumps(event.value).encode()
    if broken and event.value is not None and value is not None:
        untimed = {name: item for name, item in event.value.items() if name not in ("at", "event_time")}
        no_amount = {**event.value, "amount": "n/a"} if "amount" in event.value else None
        value = random_.choice(
            [value[: len(value) // 2], b"\xff\xfe" + value, json.dumps(untimed).encode(), json.dumps(no_amount).encode()]
        )
    return Record(value, key=event.key.encode(), partition=partition, timestamp_ms=event.at_ms)


def _is_decimal(record: Recorded, field: str | None) -> bool:
    if field is None:
        return True
    try:
        Decimal(str((body(record) or {})[field]))
    except (InvalidOperation, KeyError):
        return False
    return True
