"""Expectation of banking_enriched: each transaction with its account at that time, its customer, and its risk."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

from penstock.jobs.local.arrivals import Value, changes, expectation, kept, valid_at
from penstock.jobs.local.banking.tables import ACCOUNTS_CLOCK, ACCOUNTS_TOPIC, known_customers
from penstock.jobs.local.banking.transactions import CLOCK, TOPIC
from penstock.jobs.local.recording import Expectation, Recording
from penstock.jobs.local.replay import judge


def expect(recording: Recording) -> Expectation:
    """Every accepted transaction, duplicates included."""
    events = list(judge(recording, {TOPIC: CLOCK, ACCOUNTS_TOPIC: ACCOUNTS_CLOCK}))
    accounts, customers = changes(events, ACCOUNTS_TOPIC), known_customers()
    rows: Counter[str] = Counter()
    for value, at_ms in kept(events, TOPIC):
        account = valid_at(accounts.get(str(value["account_id"]), []), at_ms)
        name, segment, country = customers.get(str(account["customer_id"]), (None, None, None)) if account else (None, None, None)
        row = {
            **{field: value[field] for field in ("transaction_id", "account_id", "type", "status", "at")},
            "amount": float(str(value["amount"])),
            "customer_id": account["customer_id"] if account else None,
            "product": account["product"] if account else None,
            "name": name,
            "country": country,
            "risk": _risk(value, account, segment),
        }
        rows[json.dumps(row, sort_keys=True)] += 1
    return expectation(events, rows)


def _risk(value: Value, account: Value | None, segment: str | None) -> str:
    if account is None or segment is None:
        return "unknown"
    share = Decimal(str(value["amount"])) / Decimal(str(account["credit_limit"]))
    if segment == "business":
        share /= 2
    return "high" if share > Decimal("0.5") else "medium" if share > Decimal("0.1") else "low"
