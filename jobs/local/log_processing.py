"""Input and expectation of log_processing: the logs of three services, and their statistics in plain Python."""

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

TOPIC = "service-log"
TRAFFIC = Traffic(events=20_000, seconds=900, seed=24)
_SERVICES = ("checkout", "search", "payment")
_LEVELS = ("DEBUG",) * 30 + ("INFO",) * 60 + ("WARN",) * 7 + ("ERROR",) * 3


def log(partitions: int) -> Iterator[Record]:
    """Fifteen minutes of log events; one in twenty has no duration."""
    yield from TRAFFIC.records(partitions, _event)
    yield from flush(partitions, {"service": "flush", "level": "INFO", "millis": 0, "at": iso_8601(FLUSH_TIME)})


def expect(recording: Recording) -> Expectation:
    """Events, errors and the longest duration by service and ten seconds."""
    clock = Clock(time_ms("at", ("service", "level")), bound_ms=10_000, idleness_ms=120_000)
    judged = list(judge(recording, {TOPIC: clock}, strict=False))
    seen: dict[tuple[str, tuple[int, int]], list[dict[str, object]]] = defaultdict(list)
    for value, moment in accepted(judged):
        (window,) = windows.tumbling(moment, 10_000)
        seen[str(value["service"]), window].append(value)
    rows = Counter(json.dumps(_statistics(service, window, some), sort_keys=True) for (service, window), some in seen.items())
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def _statistics(service: str, window: tuple[int, int], some: list[dict[str, object]]) -> dict[str, object]:
    start, end = map(windows.written, window)
    durations = [int(str(value["millis"])) for value in some if value["millis"] is not None]
    return {
        "service": service,
        "window_start": start,
        "window_end": end,
        "events": len(some),
        "errors": sum(value["level"] == "ERROR" for value in some),
        "slowest_ms": max(durations, default=None),
    }


def _event(random_: random.Random, at: datetime, number: int) -> dict[str, object]:
    millis = None if random_.random() < 0.05 else int(random_.expovariate(1 / 40))
    return {"service": random_.choice(_SERVICES), "level": random_.choice(_LEVELS), "millis": millis, "at": iso_8601(at)}
