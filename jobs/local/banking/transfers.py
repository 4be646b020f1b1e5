"""Input and expectation of banking_transfers: both sides of transfers as reported by two systems, and the matching pairs."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal

from penstock.jobs.local.arrivals import BEGIN_MS, FLUSH_MS, Event, Value, arrivals, clock, expectation, flush, kept
from penstock.jobs.local.banking.transactions import amount_text
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import judge
from penstock.jobs.local.windows import written

DEBITS, CREDITS = "settlement.debits", "settlement.credits"
_TRANSFERS = 6_000
_LENGTH_MS = 60 * 60_000
_WITHIN_MS = 5 * 60_000


def debits(partitions: int) -> Iterator[Record]:
    """An hour of debits."""
    yield from _side("debit", partitions, seed=41)


def credits_of_transfers(partitions: int) -> Iterator[Record]:
    """The matching credits."""
    yield from _side("credit", partitions, seed=42)


def expect(recording: Recording) -> Expectation:
    """All pairs with the same reference within five minutes, and each side without a counterpart."""
    clocks = {topic: clock(("reference", f"{side}_id"), amount="amount") for topic, side in ((DEBITS, "debit"), (CREDITS, "credit"))}
    events = list(judge(recording, clocks))
    ours, theirs = list(kept(events, DEBITS)), list(kept(events, CREDITS))
    by_reference: dict[str, list[int]] = defaultdict(list)
    for number, (credit, _) in enumerate(theirs):
        by_reference[str(credit["reference"])].append(number)
    rows: Counter[str] = Counter()
    met: set[int] = set()
    for debit, at_ms in ours:
        partners = [n for n in by_reference[str(debit["reference"])] if abs(theirs[n][1] - at_ms) <= _WITHIN_MS]
        met.update(partners)
        rows.update(_row(debit, theirs[n][0]) for n in partners)
        rows.update([] if partners else [_row(debit, None)])
    rows.update(_row(None, credit) for number, (credit, _) in enumerate(theirs) if number not in met)
    return expectation(events, rows)


def _row(debit: Value | None, credit: Value | None) -> str:
    amounts = [Decimal(str(side["amount"])) for side in (debit, credit) if side is not None]
    alone = "debit only" if debit else "credit only"
    state = alone if len(amounts) == 1 else "settled" if amounts[0] == amounts[1] else "differs"
    row = {
        "reference": (debit or credit or {})["reference"],
        "debit_id": debit and debit["debit_id"],
        "credit_id": credit and credit["credit_id"],
        "debited": debit and debit["amount"],
        "credited": credit and credit["amount"],
        "state": state,
    }
    return json.dumps(row, sort_keys=True)


def _side(side: str, partitions: int, seed: int) -> Iterator[Record]:
    events = (event for name, event in _history(random.Random(43)) if name == side)
    yield from arrivals(events, partitions, seed=seed)
    value = {"reference": f"flush-{side}", f"{side}_id": "flush", "amount": "0.00", "at": written(FLUSH_MS)}
    yield from flush(partitions, value)


def _history(random_: random.Random) -> Iterator[tuple[str, Event]]:
    """Both sides of each transfer, as far as they exist."""
    for number in range(_TRANSFERS):
        at_ms, cents = BEGIN_MS + random_.randrange(_LENGTH_MS), random_.randrange(100, 1_000_000)
        # Most credits follow within a minute or two; a few after more than five.
        lag_ms = random_.choice([-1, 1]) * int(random_.expovariate(1 / 90_000))
        chance = random_.random()
        if chance > 0.04:
            yield "debit", _event("debit", number, cents, at_ms)
        if chance < 0.96:
            yield "credit", _event("credit", number, cents - (25 if random_.random() < 0.01 else 0), at_ms + lag_ms)


def _event(side: str, number: int, cents: int, at_ms: int) -> Event:
    reference = f"R{number:05d}"
    value = {"reference": reference, f"{side}_id": f"{side[0].upper()}{number:05d}", "amount": amount_text(cents), "at": written(at_ms)}
    return Event(at_ms, reference, value)
