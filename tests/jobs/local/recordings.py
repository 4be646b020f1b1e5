"""Handwritten recordings, for oracles compared with rows computed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.jobs.local.recording import Expectation, Recorded, RecordedBatch, Recording

Value = Mapping[str, object] | bytes


def ms(clock: str) -> int:
    """A time of 5 April 2025 in epoch milliseconds, from ``12:00:00.000``."""
    return int(datetime.fromisoformat(f"2025-04-05T{clock}+00:00").timestamp() * 1000)


def recorded(topic: str, *batches: Sequence[Value], watermarks: Sequence[str] = ()) -> Recording:
    """One partition read in micro-batches.

    Args:
        topic: name of the topic.
        batches: the values of each micro-batch; a mapping is written as JSON, one whose ``flush`` is true as a flush record.
        watermarks: current watermark at the start of each micro-batch after the first, in the format of `ms`.
    """
    records: list[Recorded] = []
    ends: list[int] = []
    for values in batches:
        records += [_recorded(len(records) + place, value) for place, value in enumerate(values)]
        ends.append(len(records))
    current_watermark = [0, *map(ms, watermarks)]
    micro_batches = [
        RecordedBatch(number, number, current_watermark[number] if watermarks else 0, {topic: {0: end}}) for number, end in enumerate(ends)
    ]
    return Recording({topic: records}, {topic: 1}, micro_batches, {topic: {0: 0}})


def rows(expected: Expectation, *by: str) -> list[dict[str, Any]]:
    """The expected rows, ordered by some fields, with duplicates."""
    assert expected.exact is not None
    assert expected.rows == expected.exact.total()
    documents = [json.loads(row) for row in expected.exact.elements()]
    return sorted(documents, key=lambda row: [row[name] for name in by])


def _recorded(offset: int, value: Value) -> Recorded:
    if isinstance(value, bytes):
        return Recorded(0, offset, None, value, flush=False)
    body = {name: part for name, part in value.items() if name != "flush"}
    return Recorded(0, offset, None, json.dumps(body).encode(), flush=bool(value.get("flush")))
