"""Input and expectations of region_impressions and of its backfill: an hour of impressions, and their windows in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from penstock.jobs.local import windows
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, Judged, judge
from penstock.jobs.local.traffic import FLUSH_TIME, Traffic, accepted, flush, iso_8601, time_ms

MINUTE_MS = 60_000
TRAFFIC = Traffic(events=20_000, seconds=5_400, seed=21)
_REGIONS = ("ap-south", "eu-west", "sa-east", "us-east", "us-west")
_FIELDS = ("region_code", "unique_session_token", "impressions")


def impressions(partitions: int) -> Iterator[Record]:
    """Ninety minutes of impressions of some 400 sessions, one of which is as active as all others of its region together."""
    yield from history(partitions)
    yield from flush(partitions, {"region_code": "flush", "unique_session_token": "flush", "impressions": 0, "at": iso_8601(FLUSH_TIME)})


def history(partitions: int) -> Iterator[Record]:
    """The same impressions for a bounded run, which needs no record to close the last windows."""
    yield from TRAFFIC.records(partitions, _event)


def expect_tumbling(recording: Recording) -> Expectation:
    """Sums by region in windows of five minutes."""
    return _by_window(_judged(recording), lambda moment: windows.tumbling(moment, 5 * MINUTE_MS))


def expect_backfill(recording: Recording) -> Expectation:
    """The same of a bounded run."""
    return _by_window(_judged(recording, bounded=True), lambda moment: windows.tumbling(moment, 5 * MINUTE_MS))


def expect_sliding(recording: Recording) -> Expectation:
    """Sums by region over ten minutes, every minute."""
    return _by_window(_judged(recording), lambda moment: windows.sliding(moment, 10 * MINUTE_MS, MINUTE_MS))


def expect_sessions(recording: Recording) -> Expectation:
    """Sums of each session of a token."""
    judged = _judged(recording)
    events = accepted(judged)
    rows: Counter[str] = Counter()
    for token, start, end, count in windows.sessions(
        [(str(value["unique_session_token"]), moment) for value, moment in events], 30 * MINUTE_MS
    ):
        inside = [value for value, moment in events if value["unique_session_token"] == token and start <= moment < end]
        rows[_row("unique_session_token", token, (start, end), count, sum(int(str(value["impressions"])) for value in inside))] += 1
    return _expectation(judged, rows)


def _by_window(judged: list[Judged], assigned: Callable[[int], Iterator[tuple[int, int]]]) -> Expectation:
    counts: Counter[tuple[str, tuple[int, int]]] = Counter()
    sums: Counter[tuple[str, tuple[int, int]]] = Counter()
    for value, moment in accepted(judged):
        for window in assigned(moment):
            counts[str(value["region_code"]), window] += 1
            sums[str(value["region_code"]), window] += int(str(value["impressions"]))
    return _expectation(judged, Counter(_row("region_code", *place, count, sums[place]) for place, count in counts.items()))


def _judged(recording: Recording, *, bounded: bool = False) -> list[Judged]:
    clock = Clock(time_ms("at", _FIELDS), bound_ms=10_000, idleness_ms=120_000)
    return list(judge(recording, dict.fromkeys(recording.records, clock), strict=False, bounded=bounded))


def _expectation(judged: list[Judged], rows: Counter[str]) -> Expectation:
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def _row(key: str, value: str, window: tuple[int, int], events: int, total: int) -> str:
    start, end = map(windows.written, window)
    row = {key: value, "window_start": start, "window_end": end, "events": events, "total_impressions": total}
    return json.dumps(row, sort_keys=True)


def _event(random_: random.Random, at: datetime, number: int) -> dict[str, object]:
    region = random_.choice(_REGIONS)
    # A session is active for some minutes and returns much later, or never.
    token = "busy" if random_.random() < 0.1 else f"{region}-{random_.randrange(20)}-{at.minute // 45}"
    return {"region_code": region, "unique_session_token": token, "impressions": random_.randint(1, 50), "at": iso_8601(at)}
