"""Expectation of banking_fraud: three or more declined payments followed by a large approved one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal

from penstock.jobs.local import windows
from penstock.jobs.local.arrivals import Value, expectation
from penstock.jobs.local.banking.transactions import judged, once
from penstock.jobs.local.recording import Expectation, Recording

_WITHIN_MS = 10 * 60_000
_TIMES = 3
# Requests received so far; the first attempt of each is answered with a retryable status.
_asked: set[str] = set()


def expect(recording: Recording) -> Expectation:
    """The alerts of each account; a payment is part of at most one alert."""
    events = judged(recording)
    declined: dict[str, list[tuple[Value, int]]] = defaultdict(list)
    rows: Counter[str] = Counter()
    for value, at_ms in once(events):
        before = declined[str(value["account_id"])]
        if value["status"] == "declined":
            before.append((value, at_ms))
            continue
        if value["status"] != "approved" or Decimal(str(value["amount"])) <= 500:
            continue
        within = [event for event in before if at_ms - event[1] <= _WITHIN_MS][-_TIMES:]
        if len(within) == _TIMES:
            before.clear()
            rows[_alert(value, at_ms, within)] += 1
    # The webhook stores no rows: those of the topic are compared.
    return expectation(events, rows)


def endpoint(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """Accepts alerts, each array at the second attempt."""
    key = headers.get("idempotency-key", "")
    if key in _asked:
        return 200, "thank you"
    _asked.add(key)
    return 503, "not now"


def _alert(value: Value, at_ms: int, before: list[tuple[Value, int]]) -> str:
    row = {
        "account_id": value["account_id"],
        "transaction_id": value["transaction_id"],
        "amount": value["amount"],
        "declined": [event["transaction_id"] for event, _ in before],
        "first_time": windows.written(before[0][1]),
        "last_time": windows.written(at_ms),
    }
    return json.dumps(row, sort_keys=True)
