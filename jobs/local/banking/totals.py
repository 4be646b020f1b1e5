"""Expectation of banking_totals: approved amounts since the start of the hour, every ten minutes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal

from penstock.jobs.local import windows
from penstock.jobs.local.arrivals import expectation
from penstock.jobs.local.banking.transactions import judged, once
from penstock.jobs.local.recording import Expectation, Recording

_HOUR_MS, _STEP_MS = 3_600_000, 600_000


def expect(recording: Recording) -> Expectation:
    """Number and sum of the approved transactions of each type, without duplicates."""
    events = judged(recording)
    amounts: dict[tuple[str, tuple[int, int]], list[Decimal]] = defaultdict(list)
    for value, at_ms in once(events):
        if value["status"] == "approved":
            for window in windows.cumulative(at_ms, _HOUR_MS, _STEP_MS):
                amounts[str(value["type"]), window].append(Decimal(str(value["amount"])))
    rows: Counter[str] = Counter()
    for (kind, window), some in amounts.items():
        start, end = map(windows.written, window)
        row = {"type": kind, "window_start": start, "window_end": end, "transactions": len(some), "total": str(sum(some))}
        rows[json.dumps(row, sort_keys=True)] += 1
    return expectation(events, rows)
