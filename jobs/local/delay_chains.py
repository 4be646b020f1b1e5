"""Input and expectation of delay_chains: the departures of January 2013, and the chains of delays of each plane in plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from penstock.jobs.local.departures import of_january
from penstock.jobs.local.departures import records as in_order_of_arrival
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.local.traffic import accepted, time_ms

TOPIC = "departures"
DELAYED_MINUTES = 15
SILENCE = timedelta(days=3)


def departures(partitions: int) -> Iterator[Record]:
    """The departures of January at the time they leave."""
    yield from in_order_of_arrival(of_january(), partitions, seed=33)


def expect(recording: Recording) -> Expectation:
    """Each chain that was its plane's longest so far."""
    judged = list(judge(recording, {TOPIC: Clock(time_ms("told_at", ("id",)), bound_ms=600_000, idleness_ms=600_000)}))
    rows = Counter(json.dumps(row, sort_keys=True) for row in longest_so_far(value for value, _ in accepted(judged)))
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def longest_so_far(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, object]]:
    """The expected rows for some departures, in any order."""
    planes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["dep_delay"] is not None and event["tailnum"] is not None:
            planes[event["tailnum"]].append(event)
    for tailnum, some in planes.items():
        longest = 1
        for chain, ended in _chains(sorted(some, key=lambda event: (event["told_at"], event["id"]))):
            if len(chain) > longest:
                longest = len(chain)
                minutes = sum(int(event["dep_delay"]) for event in chain)
                first, last = chain[0]["told_at"], chain[-1]["told_at"]
                yield {"tailnum": tailnum, "departures": longest, "minutes": minutes, "first_at": first, "last_at": last, "ended": ended}


def _chains(events: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """The chains of one plane and how they ended, from its departures in order."""
    chain: list[dict[str, Any]] = []
    for event, following in pairwise([*events, None]):
        assert event is not None
        if event["dep_delay"] < DELAYED_MINUTES:
            continue
        chain.append(event)
        if following is None or _moment(following) - _moment(event) > SILENCE:
            yield chain, "silence"
            chain = []
        elif following["dep_delay"] < DELAYED_MINUTES:
            yield chain, "on time"
            chain = []


def _moment(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["told_at"])
