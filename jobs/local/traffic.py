"""Synthetic traffic with realistic arrivals: out of order within a bound, some records late, broken or duplicate."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.jobs.local.recording import Record, Recorded
from penstock.jobs.local.replay import Judged

BEGINS = datetime(2025, 4, 5, 12, 0, tzinfo=UTC)
# A day after all traffic: a record with this time advances the watermark past every window.
FLUSH_TIME = BEGINS + timedelta(days=1)

# From (random number generator, event time, event number) to a value: a mapping is written as JSON.
Event = Callable[[random.Random, datetime, int], Mapping[str, object] | bytes | str]


@dataclass(frozen=True)
class Traffic:
    """Traffic of one topic.

    Args:
        events: number of events.
        seconds: range of their event times.
        bound_s: maximum out-of-orderness, except for late events.
        late_share: share of events that arrive a minute or more after their time.
        twice_share: share of events that arrive again soon after.
        broken_share: share of records that are not JSON.
        seed: seed of the random numbers.
    """

    events: int
    seconds: float
    bound_s: float = 10.0
    late_share: float = 0.01
    twice_share: float = 0.0
    broken_share: float = 0.002
    seed: int = 1

    def records(self, partitions: int, event: Event, key: Callable[[Mapping[str, object]], str] | None = None) -> Iterator[Record]:
        """The records in the order of arrival.

        Args:
            partitions: number of partitions of the topic.
            event: creates a value.
            key: returns the key of a record whose value is a mapping; None for records without keys.
        """
        random_ = random.Random(self.seed)
        arrivals: list[tuple[float, Record]] = []
        for number in range(self.events):
            at_s = round(random_.uniform(0, self.seconds), 3)
            delay_s = random_.uniform(60, 600) if random_.random() < self.late_share else random_.uniform(0, self.bound_s * 0.99)
            value = event(random_, BEGINS + timedelta(seconds=at_s), number)
            record = self._record(random_, value, random_.randrange(partitions), key)
            arrivals.append((at_s + delay_s, record))
            if random_.random() < self.twice_share:
                arrivals.append((at_s + delay_s + random_.uniform(0, 2), record))
        arrivals.sort(key=lambda arrival: arrival[0])
        return (record for _, record in arrivals)

    def _record(
        self,
        random_: random.Random,
        value: Mapping[str, object] | bytes | str,
        partition: int,
        key: Callable[[Mapping[str, object]], str] | None,
    ) -> Record:
        text = json.dumps(value).encode() if isinstance(value, Mapping) else value.encode() if isinstance(value, str) else value
        if random_.random() < self.broken_share:
            return Record(text[: len(text) // 2], partition=partition)
        named = key(value).encode() if key and isinstance(value, Mapping) else None
        return Record(text, key=named, partition=None if named else partition)


def flush(partitions: int, value: Mapping[str, object]) -> Iterator[Record]:
    """One record per partition whose only purpose is to advance the watermark past all others."""
    for partition in range(partitions):
        yield Record(json.dumps(value).encode(), partition=partition, flush=True)


def iso_8601(moment: datetime) -> str:
    """A time in the format of the topics: milliseconds and Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def milliseconds(moment: datetime) -> int:
    """Epoch milliseconds, exactly."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def body(record: Recorded) -> dict[str, object] | None:
    """The JSON object of a record; None if it is not one."""
    try:
        parsed = json.loads(record.value or b"")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def time_ms(field: str, needed: tuple[str, ...] = ()) -> Callable[[Recorded], int | None]:
    """Reads the event time of records, for a `penstock.jobs.local.replay.Clock`.

    Args:
        field: field with an ISO-8601 time, or epoch milliseconds as a number.
        needed: other fields without which a record is quarantined.
    """

    def read(record: Recorded) -> int | None:
        parsed = body(record)
        if parsed is None or any(parsed.get(name) is None for name in (field, *needed)):
            return None
        value = parsed[field]
        return value if isinstance(value, int) else milliseconds(datetime.fromisoformat(str(value)))

    return read


def accepted(judged: list[Judged]) -> list[tuple[dict[str, object], int]]:
    """Value and event time of each accepted record: no flush, not late, not broken."""
    rows = []
    for event in judged:
        if event.time_ms is not None and not event.late and not event.record.flush:
            value = body(event.record)
            assert value is not None
            rows.append((value, event.time_ms))
    return rows
