"""What must come out of banking_fraud: three or more payments that were declined, then a large one that was not."""

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
# What has been asked, so that the first time is answered by "not now".
_asked: set[str] = set()


def expect(recording: Recording) -> Expectation:
    """The alerts of each account; what has led to one leads to no other."""
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
    # The webhook keeps no rows: those of the topic are read back.
    return expectation(events, rows)


def endpoint(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """Takes alerts, each array at the second try."""
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
