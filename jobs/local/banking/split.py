"""Expectation of banking_split: each transaction once, debits and credits in separate topics."""

from __future__ import annotations

import json
from collections import Counter

from penstock.jobs.local.arrivals import expectation
from penstock.jobs.local.banking.transactions import judged, once
from penstock.jobs.local.recording import Expectation, Recording


def expect(recording: Recording) -> Expectation:
    """The first transaction of each id within ten minutes, by type."""
    events = judged(recording)
    rows = {"debits": Counter[str](), "credits": Counter[str]()}
    for value, _ in once(events):
        rows["debits" if value["type"] == "Debit" else "credits"][json.dumps(value, sort_keys=True)] += 1
    return expectation(events, Counter(), rows)
