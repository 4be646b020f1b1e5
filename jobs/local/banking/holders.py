"""Expectation of banking_holders' table at the end: each open account with its customer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from penstock.jobs.local.arrivals import changes, expectation
from penstock.jobs.local.banking.tables import ACCOUNTS_CLOCK, ACCOUNTS_TOPIC, CUSTOMERS_CLOCK, CUSTOMERS_TOPIC
from penstock.jobs.local.recording import Expectation, Recording
from penstock.jobs.local.replay import judge


def database() -> Iterator[str]:
    """SQL that creates the empty table."""
    yield (
        "CREATE TABLE account_holders (account_id text PRIMARY KEY, customer_id text NOT NULL, name text NOT NULL, "
        "segment text NOT NULL, product text NOT NULL, credit_limit numeric(12, 2) NOT NULL)"
    )


def expect(recording: Recording) -> Expectation:
    """The join of both tables after their last changes."""
    events = list(judge(recording, {CUSTOMERS_TOPIC: CUSTOMERS_CLOCK, ACCOUNTS_TOPIC: ACCOUNTS_CLOCK}))
    customers = {name: history[-1][1] for name, history in changes(events, CUSTOMERS_TOPIC).items()}
    rows: Counter[str] = Counter()
    for name, history in changes(events, ACCOUNTS_TOPIC).items():
        account = history[-1][1]
        customer = customers.get(str(account["customer_id"])) if account else None
        if account is None or customer is None:
            continue
        row = {
            "account_id": name,
            "customer_id": account["customer_id"],
            "name": customer["name"],
            "segment": customer["segment"],
            "product": account["product"],
            "credit_limit": float(str(account["credit_limit"])),
        }
        rows[json.dumps(row, sort_keys=True)] += 1
    return expectation(events, rows)
