"""Input and expectation of ad_impressions: a small version of the Yahoo benchmark's events, and the views of each campaign in plain
Python.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

from penstock.jobs.local import windows
from penstock.jobs.local.arrivals import BEGIN_MS, FLUSH_MS, Event, Faults, arrivals, changes, clock, expectation, flush, kept, valid_at
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Judged, judge

EVENTS_TOPIC, CAMPAIGNS_TOPIC = "ad-events", "campaigns"
_EVENTS = 15_000
_LENGTH_MS = 5 * 60_000
_CAMPAIGNS, _ADS = 20, 200
_WINDOW_MS = 10_000
_KINDS = ("banner", "modal", "sponsored-search", "mail", "mobile")
_FIELDS = ("ad_id", "ad_type", "event_type")


def events(partitions: int) -> Iterator[Record]:
    """Five minutes of events; a third of them are views."""
    yield from arrivals(_events(random.Random(51)), partitions, seed=52)
    yield from flush(partitions, _event("flush", "flush", "flush", FLUSH_MS, random.Random(0)))


def campaigns(partitions: int) -> Iterator[Record]:
    """Ad -> campaign: ten ads each, some of which move to another campaign or are deleted during the run."""
    yield from arrivals(_campaigns(random.Random(53)), partitions, seed=54, faults=Faults(late=0, broken=0))
    yield from flush(partitions, {"ad_id": "flush", "campaign_id": "flush", "at": windows.written(FLUSH_MS)})


def nothing() -> dict[str, dict[str, str]]:
    """Content of Redis before the run."""
    return {}


def expect_current(recording: Recording) -> Expectation:
    """Redis' hashes: all fields are text, and the window is identified by its start."""
    judged, views = _views(recording)
    rows: Counter[str] = Counter()
    for (campaign, (start, _)), count in views.items():
        rows[json.dumps({"campaign_id": campaign, "window_start_ms": str(start), "views": str(count)}, sort_keys=True)] += 1
    return expectation(judged, rows)


def expect_final(recording: Recording) -> Expectation:
    """Rows of the topic, one per campaign and window."""
    judged, views = _views(recording)
    rows: Counter[str] = Counter()
    for (campaign, (start, _)), count in views.items():
        rows[json.dumps({"campaign_id": campaign, "window_start_ms": start, "views": count}, sort_keys=True)] += 1
    return expectation(judged, rows)


def _views(recording: Recording) -> tuple[list[Judged], Counter[tuple[str, tuple[int, int]]]]:
    """Campaign and window -> views."""
    clocks = {
        EVENTS_TOPIC: clock(_FIELDS, field="event_time"),
        CAMPAIGNS_TOPIC: clock(("ad_id", "campaign_id"), tombstones=True),
    }
    judged = list(judge(recording, clocks))
    known = changes(judged, CAMPAIGNS_TOPIC)
    views: Counter[tuple[str, tuple[int, int]]] = Counter()
    for value, at_ms in kept(judged, EVENTS_TOPIC):
        campaign = valid_at(known.get(str(value["ad_id"]), []), at_ms)
        if value["event_type"] == "view" and campaign is not None:
            (window,) = windows.tumbling(at_ms, _WINDOW_MS)
            views[str(campaign["campaign_id"]), window] += 1
    return judged, views


def _events(random_: random.Random) -> Iterator[Event]:
    for _ in range(_EVENTS):
        # Two percent of the ads belong to no campaign.
        ad, at_ms = f"ad-{random_.randrange(int(_ADS * 1.02)):03d}", BEGIN_MS + random_.randrange(_LENGTH_MS)
        kind = random_.choice(("view", "click", "purchase"))
        user = f"user-{random_.randrange(500)}"
        yield Event(at_ms, user, _event(ad, user, kind, at_ms, random_))


def _event(ad: str, user: str, kind: str, at_ms: int, random_: random.Random) -> dict[str, object]:
    return {
        "ad_id": ad,
        "ad_type": random_.choice(_KINDS),
        "event_type": kind,
        "event_time": at_ms,
        "user_id": user,
        "page_id": f"page-{random_.randrange(100)}",
        "ip": f"198.51.100.{random_.randrange(256)}",
    }


def _campaigns(random_: random.Random) -> Iterator[Event]:
    for number in range(_ADS):
        ad, campaign = f"ad-{number:03d}", number * _CAMPAIGNS // _ADS
        yield _campaign(ad, campaign, BEGIN_MS - random_.randrange(60_000, 600_000))
        chance, at_ms = random_.random(), BEGIN_MS + random_.randrange(_LENGTH_MS)
        if chance < 0.1:
            yield _campaign(ad, (campaign + 1) % _CAMPAIGNS, at_ms)
        elif chance < 0.15:
            yield Event(at_ms, ad, None)


def _campaign(ad: str, campaign: int, at_ms: int) -> Event:
    return Event(at_ms, ad, {"ad_id": ad, "campaign_id": f"campaign-{campaign:02d}", "at": windows.written(at_ms)})
