"""Input and expectation of visitors_by_country: half an hour of visits, and the last five minutes in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

from penstock.jobs.local import windows
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.local.traffic import FLUSH_TIME, Traffic, accepted, flush, iso_8601, time_ms

TOPIC = "visits"
TRAFFIC = Traffic(events=20_000, seconds=1_800, bound_s=20.0, seed=23)
_COUNTRIES = ("BR",) * 4 + ("DE",) * 2 + ("IN",) * 9 + ("NZ",) + ("US",) * 6


def visits(partitions: int) -> Iterator[Record]:
    """Visits of some hundred visitors per country; each visits several times."""
    yield from TRAFFIC.records(partitions, _event)
    yield from flush(partitions, {"country": "flush", "visitor": "flush", "at": iso_8601(FLUSH_TIME)})


def expect(recording: Recording) -> Expectation:
    """Distinct visitors, and visits, of five minutes, every minute."""
    clock = Clock(time_ms("at", ("country", "visitor")), bound_ms=20_000, idleness_ms=120_000)
    judged = list(judge(recording, {TOPIC: clock}, strict=False))
    seen: dict[tuple[str, tuple[int, int]], list[str]] = defaultdict(list)
    for value, moment in accepted(judged):
        for window in windows.sliding(moment, 300_000, 60_000):
            seen[str(value["country"]), window].append(str(value["visitor"]))
    rows: Counter[str] = Counter()
    for (country, window), visitors in seen.items():
        start, end = map(windows.written, window)
        row = {"country": country, "window_start": start, "window_end": end, "visitors": len(set(visitors)), "visits": len(visitors)}
        rows[json.dumps(row, sort_keys=True)] += 1
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def _event(random_: random.Random, at: datetime, number: int) -> dict[str, object]:
    country = random_.choice(_COUNTRIES)
    return {"country": country, "visitor": f"{country}-{random_.randrange(120)}", "at": iso_8601(at)}
