"""Recordings of a few records, all read by one micro-batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from penstock.jobs.local.recording import Recorded, RecordedBatch, Recording
from penstock.jobs.local.traffic import iso_8601, milliseconds

NOON = datetime(2025, 4, 5, 12, 0, tzinfo=UTC)


def at(time: str) -> datetime:
    """A time after noon, from ``minutes:seconds``."""
    minutes, seconds = time.split(":")
    return NOON + timedelta(minutes=int(minutes), seconds=float(seconds))


def said(key: str, time: str, **fields: object) -> Recorded:
    """A record with a value whose event time is a field."""
    value = {**fields, "at": iso_8601(at(time))}
    return Recorded(0, 0, key.encode(), json.dumps(value).encode(), flush=False, timestamp_ms=milliseconds(at(time)))


def gone(key: str, time: str) -> Recorded:
    """A tombstone."""
    return Recorded(0, 0, key.encode(), None, flush=False, timestamp_ms=milliseconds(at(time)))


def read(**topics: Iterable[Recorded]) -> Recording:
    """The topics as read, with one partition each; two underscores in a name are replaced by a dot, one by a hyphen."""
    named = {topic.replace("__", ".").replace("_", "-"): list(records) for topic, records in topics.items()}
    records = {
        topic: [Recorded(0, n, r.key, r.value, r.flush, r.timestamp_ms) for n, r in enumerate(some)] for topic, some in named.items()
    }
    batch = RecordedBatch(0, milliseconds(NOON), 0, {topic: {0: len(some)} for topic, some in records.items()})
    return Recording(records, dict.fromkeys(records, 1), [batch], {topic: {0: 0} for topic in records})


def rows(counted: Counter[str] | None) -> list[Mapping[str, object]]:
    """The rows of an expectation, in the order of their text."""
    return [json.loads(row) for row in sorted((counted or Counter()).elements())]
