"""The oracle of page_counts, for a recording small enough to count by hand."""

from __future__ import annotations

import json

from penstock.jobs.local.page_counts import TOPIC, expect, visits
from penstock.jobs.local.recording import Recorded, RecordedBatch, Recording


def _recorded(offset: int, visit: str, page: str, time: str) -> Recorded:
    value = json.dumps({"visit_id": visit, "page": page, "at": f"2025-04-05T{time}.000Z"}).encode()
    return Recorded(partition=0, offset=offset, key=None, value=value, flush=visit == "flush")


def test_each_visit_counts_once_and_the_late_not_at_all() -> None:
    result = [
        ("v1", "/cart", "12:01:00"), ("v2", "/Cart", "12:02:00"), ("v2", "/Cart", "12:02:00"), ("v3", "/pay", "12:03:00"),
        ("v4", "/help", "12:03:01"), ("v5", "/", "12:03:02"), ("v6", "/health", "12:03:03"), ("v7", "/pay", "12:06:00"),
    ]  # fmt: skip
    records = [_recorded(offset, *one) for offset, one in enumerate(result)]
    # The watermark is 12:05:50 when the second micro-batch begins.
    records += [
        _recorded(8, "v8", "/late", "12:05:49"),
        Recorded(0, 9, None, b"{", flush=False),
        _recorded(10, "flush", "/health", "13:00:00"),
    ]
    batches = [
        RecordedBatch(number=0, time_ms=0, watermark_ms=0, ends={TOPIC: {0: 8}}),
        RecordedBatch(number=1, time_ms=1, watermark_ms=1_743_854_749_999, ends={TOPIC: {0: 11}}),
    ]
    expected = expect(Recording({TOPIC: records}, {TOPIC: 1}, batches, {TOPIC: {0: 0}}))
    assert expected.exact is not None
    ranked = sorted((row["window_start"][11:16], row["rank"], row["page"], row["visits"]) for row in map(json.loads, expected.exact))
    assert ranked == [("12:00", 1, "/cart", 2), ("12:00", 2, "/pay", 1), ("12:00", 3, "/help", 1), ("12:05", 1, "/pay", 1)]
    assert (expected.rows, expected.late, expected.quarantined) == (4, 1, 1)


def test_some_visits_are_sent_twice_and_every_partition_is_flushed() -> None:
    records = list(visits(4))
    assert sum(record.flush for record in records) == 4
    assert 15_100 < len(records) < 16_500
