"""Input and expectation of sensor_average: ten sensors, and their averages in exact decimals."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from penstock.jobs.local import windows
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.local.traffic import FLUSH_TIME, Traffic, accepted, flush, milliseconds, time_ms

TOPIC = "sensor-readings"
TRAFFIC = Traffic(events=20_000, seconds=600, bound_s=5.0, seed=22)


def readings(partitions: int) -> Iterator[Record]:
    """Ten minutes of ten sensors' readings in Fahrenheit."""
    yield from TRAFFIC.records(partitions, _event)
    yield from flush(partitions, {"id": "flush", "timestamp": milliseconds(FLUSH_TIME), "temperature": 0})


def expect(recording: Recording) -> Expectation:
    """Averages by sensor and second."""
    clock = Clock(time_ms("timestamp", ("id", "temperature")), bound_ms=5_000, idleness_ms=120_000)
    judged = list(judge(recording, {TOPIC: clock}, strict=False))
    read: dict[tuple[str, tuple[int, int]], list[Decimal]] = defaultdict(list)
    for value, moment in accepted(judged):
        (window,) = windows.tumbling(moment, 1_000)
        read[str(value["id"]), window].append(_rounded((Decimal(str(value["temperature"])) - 32) * 5 / 9, 4))
    rows: Counter[str] = Counter()
    for (sensor, window), some in read.items():
        start, end = map(windows.written, window)
        # Spark's average has four more digits than the values, and rounds half up.
        average = _rounded(_rounded(sum(some, Decimal(0)) / len(some), 8), 3)
        row = {"id": sensor, "window_start": start, "window_end": end, "average": float(average), "readings": len(some)}
        rows[json.dumps(row, sort_keys=True)] += 1
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def _event(random_: random.Random, at: datetime, number: int) -> dict[str, object]:
    return {"id": f"sensor_{number % 10}", "timestamp": milliseconds(at), "temperature": round(65 + random_.gauss(0, 20), 3)}


def _rounded(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
