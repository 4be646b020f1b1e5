"""Input and expectation of page_counts: an hour of visits, some duplicate, and the most visited pages in plain Python."""

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

TOPIC = "page-visits"
TRAFFIC = Traffic(events=15_000, seconds=3_600, twice_share=0.05, seed=33)
_PAGES = ("/", "/Cart", "/cart", "/pay", "/search", "/help", "/health")


def visits(partitions: int) -> Iterator[Record]:
    """An hour of visits; some pages are in upper case."""
    yield from TRAFFIC.records(partitions, _event)
    yield from flush(partitions, {"visit_id": "flush", "page": "/health", "at": iso_8601(FLUSH_TIME)})


def expect(recording: Recording) -> Expectation:
    """The three most visited pages of each five minutes, without duplicate visits; ties are ordered by name, descending."""
    clock = Clock(time_ms("at", ("visit_id", "page")), bound_ms=10_000, idleness_ms=120_000)
    judged = list(judge(recording, {TOPIC: clock}, strict=True))
    seen = {str(value["visit_id"]): (str(value["page"]), moment) for value, moment in accepted(judged)}
    counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for page, moment in seen.values():
        (window,) = windows.tumbling(moment, 300_000)
        if page != "/health":
            counts[window][page.lower()] += 1
    rows = Counter(row for window, pages in counts.items() for row in _best(window, pages))
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def _best(window: tuple[int, int], pages: Counter[str]) -> Iterator[str]:
    start, end = map(windows.written, window)
    ordered = sorted(pages.items(), key=lambda item: (item[1], item[0]), reverse=True)
    for rank, (page, count) in enumerate(ordered[:3], start=1):
        yield json.dumps({"window_start": start, "window_end": end, "rank": rank, "page": page, "visits": count}, sort_keys=True)


def _event(random_: random.Random, at: datetime, number: int) -> dict[str, object]:
    page = random_.choices(_PAGES, weights=(30, 5, 20, 12, 18, 10, 5))[0]
    return {"visit_id": f"v{number}", "page": page, "at": iso_8601(at)}
