"""The views of campaigns, computed by hand for a few records."""

from __future__ import annotations

import json

from penstock.jobs.local import ad_impressions
from penstock.jobs.local.recording import Recorded
from penstock.jobs.local.traffic import milliseconds
from tests.jobs.local.by_hand import at, gone, read, rows, said


def _event(ad: str, time: str, kind: str = "view") -> Recorded:
    value = {"ad_id": ad, "ad_type": "mail", "event_type": kind, "event_time": milliseconds(at(time))}
    return Recorded(0, 0, ad.encode(), json.dumps(value).encode(), flush=False, timestamp_ms=milliseconds(at(time)))


def _campaign(ad: str, campaign: str, time: str) -> Recorded:
    return said(ad, time, ad_id=ad, campaign_id=campaign)


def test_views_count_for_the_campaign_that_the_ad_was_of() -> None:
    campaigns = [_campaign("x", "one", "0:00"), _campaign("x", "two", "0:15"), gone("x", "0:25"), _campaign("y", "one", "0:00")]
    views = [_event("x", "0:01"), _event("y", "0:09.999"), _event("x", "0:14"), _event("x", "0:15"), _event("x", "0:25")]
    others = [_event("x", "0:02", "click"), _event("z", "0:02")]
    expected = ad_impressions.expect_final(read(campaigns=campaigns, ad_events=[*views, *others]))
    noon = milliseconds(at("0:00"))
    assert {(row["campaign_id"], row["window_start_ms"]): row["views"] for row in rows(expected.exact)} == {
        ("one", noon): 2,
        ("one", noon + 10_000): 1,
        ("two", noon + 10_000): 1,
    }


def test_redis_has_the_same_as_text() -> None:
    recording = read(campaigns=[_campaign("x", "one", "0:00")], ad_events=[_event("x", "0:01")])
    final, current = (rows(expect(recording).exact) for expect in (ad_impressions.expect_final, ad_impressions.expect_current))
    assert current == [{name: str(value) for name, value in row.items()} for row in final]


def test_a_third_of_the_events_are_views_and_the_flush_is_none() -> None:
    values = [record.value for record in ad_impressions.events(4) if record.value is not None]
    assert 0.3 < sum(b'"view"' in value for value in values) / len(values) < 0.37
    assert not any(b'"view"' in (record.value or b"") for record in ad_impressions.events(4) if record.flush)
