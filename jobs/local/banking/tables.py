"""The compacted topics ``customers`` and ``accounts`` with their changes, and the same customers in the bank's database."""

from __future__ import annotations

import random
from collections.abc import Iterator

from penstock.jobs.local.arrivals import BEGIN_MS, FLUSH_MS, Event, Faults, arrivals, clock, flush
from penstock.jobs.local.banking.transactions import ACCOUNTS, LENGTH_MS, amount_text
from penstock.jobs.local.recording import Record
from penstock.jobs.local.windows import written

CUSTOMERS_TOPIC, ACCOUNTS_TOPIC = "customers", "accounts"
CUSTOMERS = 80
# The tables exist an hour before the first transaction.
_HOUR_MS = 3_600_000
_FIRST = ("Asha", "Bruno", "Chen", "Dana", "Emeka", "Femi", "Greta", "Hana")
_LAST = ("Iyer", "Jansen", "Kaya", "Lopez", "Mbeki", "N\u00e9meth", "O'Brien", "Patel", "Quist", "Rossi")
_SEGMENTS = ("private", "private", "business")
_PRODUCTS = ("current", "savings", "credit")
_FAULTS = Faults(late=0.02, twice=0.02, broken=0.005)
CUSTOMERS_CLOCK = clock(("customer_id", "name", "segment"), tombstones=True)
ACCOUNTS_CLOCK = clock(("account_id", "customer_id", "product"), amount="credit_limit", tombstones=True)


def customers(partitions: int) -> Iterator[Record]:
    """Eighty customers; some change their segment, some are deleted, and some of those return."""
    yield from arrivals(_customers(random.Random(33)), partitions, seed=34, faults=_FAULTS)
    yield from flush(partitions, {"customer_id": "flush", "name": "flush", "segment": "flush", "at": written(FLUSH_MS)})


def accounts(partitions: int) -> Iterator[Record]:
    """Two hundred accounts; some change their limit or owner, some are closed and opened again."""
    yield from arrivals(_accounts(random.Random(35)), partitions, seed=36, faults=_FAULTS)
    value = {"account_id": "flush", "customer_id": "nobody", "product": "flush", "credit_limit": "0.00", "at": written(FLUSH_MS)}
    yield from flush(partitions, value)


def known_customers() -> dict[str, tuple[str, str, str | None]]:
    """Customer -> name, segment and country (None: unknown), as in the database, which lacks two customers."""
    random_ = random.Random(37)
    known: dict[str, tuple[str, str, str | None]] = {}
    for number in range(CUSTOMERS - 2):
        country = None if number % 20 == 7 else random_.choice(["DE", "IN", "KE", "US"])
        known[f"C{number:02d}"] = (_name(number), random_.choice(_SEGMENTS), country)
    return known


def core_banking() -> Iterator[str]:
    """SQL that inserts the customers into the bank's database."""
    yield "CREATE TABLE customers (customer_id text PRIMARY KEY, name text NOT NULL, segment text NOT NULL, country char(2))"
    for name, values in known_customers().items():
        yield f"INSERT INTO customers VALUES ({', '.join(_quoted(value) for value in (name, *values))})"


def _customers(random_: random.Random) -> Iterator[Event]:
    for number in range(CUSTOMERS):
        name = f"C{number:02d}"
        yield _customer(name, number, random_.choice(_SEGMENTS), BEGIN_MS - random_.randrange(1, _HOUR_MS))
        if random_.random() < 0.4:
            yield _customer(name, number, random_.choice(_SEGMENTS), BEGIN_MS + random_.randrange(LENGTH_MS // 3))
        if random_.random() < 0.15:
            at_ms = BEGIN_MS + LENGTH_MS // 3 + random_.randrange(LENGTH_MS // 3)
            yield Event(at_ms, name, None)
            if random_.random() < 0.4:
                yield _customer(name, number, random_.choice(_SEGMENTS), at_ms + random_.randrange(60_000, LENGTH_MS // 3))


def _accounts(random_: random.Random) -> Iterator[Event]:
    for number in range(ACCOUNTS):
        name, owner = f"A{number:03d}", f"C{random_.randrange(CUSTOMERS):02d}"
        product = random_.choice(_PRODUCTS)
        # The last few accounts are opened during the traffic: earlier transactions have no account.
        first_ms = BEGIN_MS + (random_.randrange(LENGTH_MS // 2) if number > ACCOUNTS - 6 else -random_.randrange(1, _HOUR_MS))
        yield _account(name, owner, product, random_.randrange(50_000, 500_000, 10_000), first_ms)
        if random_.random() < 0.5:
            at_ms = BEGIN_MS + LENGTH_MS // 2 + random_.randrange(LENGTH_MS // 4)
            owner = f"C{random_.randrange(CUSTOMERS):02d}" if random_.random() < 0.3 else owner
            yield _account(name, owner, product, random_.randrange(50_000, 900_000, 10_000), at_ms)
        if random_.random() < 0.08:
            at_ms = BEGIN_MS + 3 * LENGTH_MS // 4 + random_.randrange(LENGTH_MS // 8)
            yield Event(at_ms, name, None)
            if random_.random() < 0.4:
                yield _account(name, owner, product, 100_000, at_ms + random_.randrange(60_000, LENGTH_MS // 8))


def _customer(name: str, number: int, segment: str, at_ms: int) -> Event:
    return Event(at_ms, name, {"customer_id": name, "name": _name(number), "segment": segment, "at": written(at_ms)})


def _account(name: str, owner: str, product: str, cents: int, at_ms: int) -> Event:
    value = {"account_id": name, "customer_id": owner, "product": product, "credit_limit": amount_text(cents), "at": written(at_ms)}
    return Event(at_ms, name, value)


def _name(number: int) -> str:
    return f"{_FIRST[number % len(_FIRST)]} {_LAST[number // len(_FIRST)]}"


def _quoted(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
