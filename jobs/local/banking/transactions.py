"""The topic ``transactions``: card payments and refunds, some sent twice by a client without a response, and some bursts of fraud."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from penstock.jobs.local.arrivals import BEGIN_MS, FLUSH_MS, Event, Value, arrivals, clock, flush, kept
from penstock.jobs.local.recording import Record, Recording
from penstock.jobs.local.replay import Judged, judge
from penstock.jobs.local.windows import written

TOPIC = "transactions"
ACCOUNTS = 200
LENGTH_MS = 90 * 60_000
_TRANSACTIONS = 5_000
_BURSTS = 60
_MINUTE_MS = 60_000
# A transaction that is sent again within this time is a duplicate.
AGAIN_WITHIN_MS = 10 * _MINUTE_MS
CLOCK = clock(("transaction_id", "account_id", "type", "status"), amount="amount")


def transactions(partitions: int) -> Iterator[Record]:
    """Ninety minutes of transactions of 200 accounts."""
    yield from arrivals(_history(random.Random(31)), partitions, seed=32)
    yield from flush(partitions, _value("flush", "flush", 0, "Flush", "flush", FLUSH_MS))


def judged(recording: Recording) -> list[Judged]:
    """Verdicts on the records of a job that only reads this topic."""
    return list(judge(recording, {TOPIC: CLOCK}))


def once(events: Iterable[Judged]) -> list[tuple[Value, int]]:
    """The accepted transactions by event time; only the first of those with the same id within ten minutes."""
    passed_ms: dict[str, int] = {}
    values = []
    for value, at_ms in sorted(kept(events, TOPIC), key=lambda event: (event[1], str(event[0]["transaction_id"]))):
        name = str(value["transaction_id"])
        if name not in passed_ms or at_ms - passed_ms[name] >= AGAIN_WITHIN_MS:
            passed_ms[name] = at_ms
            values.append((value, at_ms))
    return values


def amount_text(cents: int) -> str:
    """An amount in the format of the topics."""
    return f"{cents // 100}.{cents % 100:02d}"


def _history(random_: random.Random) -> Iterator[Event]:
    for number in range(_TRANSACTIONS):
        at_ms = BEGIN_MS + random_.randrange(LENGTH_MS)
        account = f"A{random_.randrange(ACCOUNTS):03d}"
        kind = "Debit" if random_.random() < 0.6 else "Credit"
        status = "declined" if random_.random() < 0.05 else "approved"
        cents = min(200_000, int(random_.lognormvariate(8.3, 1.1)))
        yield _event(f"T{number:05d}", account, cents, kind, status, at_ms)
        chance = random_.random()
        if chance < 0.015:
            # Sent again with another time: within ten minutes it is a duplicate, later a new transaction.
            pause_ms = random_.randrange(_MINUTE_MS, 8 * _MINUTE_MS) if chance < 0.01 else random_.randrange(12, 30) * _MINUTE_MS
            yield _event(f"T{number:05d}", account, cents, kind, status, at_ms + pause_ms)
    for number in range(_BURSTS):
        yield from _burst(random_, number)


def _burst(random_: random.Random, number: int) -> Iterator[Event]:
    """Some declined payments followed by an approved one; if that is too late or too small, it is not fraud."""
    account, at_ms = f"A{random_.randrange(ACCOUNTS):03d}", BEGIN_MS + random_.randrange(LENGTH_MS - 30 * _MINUTE_MS)
    for attempt in range(random_.randint(2, 5)):
        yield _event(f"B{number:02d}-{attempt}", account, random_.randint(50_100, 300_000), "Debit", "declined", at_ms)
        at_ms += random_.randrange(5_000, random_.choice([60_000, 360_000]))
    yield _event(f"B{number:02d}-approved", account, random_.choice([49_999, 50_000, 50_001, 120_000]), "Debit", "approved", at_ms)


def _event(name: str, account: str, cents: int, kind: str, status: str, at_ms: int) -> Event:
    return Event(at_ms, account, _value(name, account, cents, kind, status, at_ms))


def _value(name: str, account: str, cents: int, kind: str, status: str, at_ms: int) -> Value:
    return {
        "transaction_id": name,
        "account_id": account,
        "amount": amount_text(cents),
        "type": kind,
        "status": status,
        "at": written(at_ms),
    }
