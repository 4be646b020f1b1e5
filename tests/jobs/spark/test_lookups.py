"""Lookups in a real PostgreSQL: results, replays, and an unavailable database."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from penstock.jobs.blocks.joins import lookup_join
from penstock.jobs.blocks.lookups.errors import LookupRefused, LookupTableDoesNotFit
from penstock.jobs.blocks.lookups.queries import Database
from penstock.jobs.blocks.lookups.table import LookupTable, open_table
from penstock.jobs.errors import DatabaseUnreachable
from penstock.jobs.spec import Table
from penstock.jobs.stream.streams import Stream, Tag
from penstock.scripts.local.servers.postgres_server import PostgresServer
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

# Nothing is cached: a row has the content of the table at the time of the lookup.
NO_CACHE = {"entries": 0}

BANK = """
    CREATE SCHEMA bank;
    CREATE TABLE bank.accounts
      (id int PRIMARY KEY, owner text, balance numeric(10, 2), opened timestamptz, closed date, tags text[], open bool);
    INSERT INTO bank.accounts VALUES
      (1, 'ann', 10.50, '2025-04-05 12:30:00+00', 'infinity', '{a,b}', true), (2, NULL, -1, NULL, NULL, NULL, false),
      (7, 'zoe', 0, NULL, NULL, NULL, true);
    CREATE TABLE bank.rates (currency varchar(3), day date, rate numeric, PRIMARY KEY (currency, day));
    INSERT INTO bank.rates VALUES ('EUR', '2025-04-05', 1.1), ('EUR', '2025-04-06', 1.2);
    CREATE TABLE bank.devices (id uuid PRIMARY KEY, model text);
    INSERT INTO bank.devices VALUES ('00000000-0000-0000-0000-00000000000a', 'x1');
    CREATE TABLE bank.ends (id int PRIMARY KEY, day date, moment timestamptz, local timestamp, rate numeric);
    INSERT INTO bank.ends VALUES (1, '-infinity', '-infinity', '-infinity', 1), (2, 'infinity', 'infinity', 'infinity', NULL),
      (3, NULL, NULL, NULL, 'NaN'), (4, '0044-03-15 BC', NULL, NULL, 1), (5, '2025-04-05', '10000-01-01', NULL, 1);
    CREATE TABLE bank.twice (id int, n int);
    INSERT INTO bank.twice VALUES (1, 1), (1, 2);
"""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path_factory.mktemp("bank") / "postgres") as server:
        server.run(BANK)
        yield server


def _table(bank: PostgresServer, name: str, key: list[str], columns: list[str], **cache: Any) -> LookupTable:
    table = {"postgres": {"connection": "bank", "table": f"bank.{name}", "key": key, "columns": columns}, "cache": cache or NO_CACHE}
    return open_table(name, Table.model_validate(table), bank.url)


def _block(*steps: Callable[[Stream], Stream]) -> Callable[[Mapping[str, Stream]], Stream]:
    def build(streams: Mapping[str, Stream]) -> Stream:
        stream = streams["in"]
        for step in steps:
            stream = step(stream)
        return stream

    return build


def test_each_row_is_joined_with_the_row_of_its_key(surroundings: Surroundings, bank: PostgresServer) -> None:
    accounts = _table(bank, "accounts", ["id"], ["owner", "balance", "opened", "closed", "tags", "open"], ttl="1m", entries=100)
    rates = _table(bank, "rates", ["currency", "day"], ["rate"])
    devices = _table(bank, "devices", ["id"], ["model"])
    device = "00000000-0000-0000-0000-00000000000A"
    batches = [
        [row("1", a="1", c="EUR", d="2025-04-06", u=device), row(None, a="9", c="", d="", u="")],
        [row("2", a="2", c="EURO", d="2025-04-05", u="not a uuid"), row("3", a="x", c="EUR", d=None, u="nul\0"), row("4", a="1", c="EUR")],
        [row("5", a=None, c="EUR", d="2025-04-05", u=device)],
    ]
    steps = (
        lambda stream: lookup_join(stream, accounts, "a", name="account"),
        lambda stream: lookup_join(stream, rates, {"day": "d", "currency": "c"}),
        lambda stream: lookup_join(stream, devices, "u"),
        lambda stream: stream.select(a="a", account="account", rate="rates.rate", model="devices.model"),
    )
    ran = run(surroundings, {"in": Input("a STRING, c STRING, d STRING, u STRING", batches)}, _block(*steps))
    ann = {"owner": "ann", "balance": Decimal("10.50"), "opened": at("0"), "closed": date(9999, 12, 31), "tags": "{a,b}", "open": True}
    two = {"owner": None, "balance": Decimal("-1.00"), "opened": None, "closed": None, "tags": None, "open": False}
    same(
        ran.rows,
        [
            {"a": "1", "account": ann, "rate": Decimal("1.200000000000000000"), "model": "x1"},
            # No currency of the table has four letters, and no device such a number: these have no match, and block nothing.
            {"a": "2", "account": two, "rate": None, "model": None},
            {"a": "x", "account": None, "rate": None, "model": None},
            {"a": "1", "account": ann, "rate": None, "model": None},
            {"a": None, "account": None, "rate": Decimal("1.100000000000000000"), "model": "x1"},
        ],
    )
    assert ran.times[:3] == [[at("1")], [at("2"), at("3"), at("4")], [at("5")]]
    assert len(ran.side_outputs[Tag.QUARANTINED]) == 1


def test_infinity_is_the_end_of_what_a_type_has(bank: PostgresServer) -> None:
    table = _table(bank, "ends", ["id"], ["day", "moment", "local", "rate"])
    with Database(bank.url, "spec.tables.ends") as database:
        first, last = sorted(database.rows(table.query(), ([1, 2],)))
    assert [str(value) for value in first[1:4]] == ["0001-01-01", "0001-01-01 00:00:00+00:00", "0001-01-01 00:00:00"]
    assert [str(value) for value in last[1:4]] == ["9999-12-31", "9999-12-31 23:59:59.999999+00:00", "9999-12-31 23:59:59.999999"]


@pytest.mark.parametrize(("key", "column"), [(3, "rate"), (4, "day"), (5, "moment")])
def test_a_value_beyond_sparks_range_is_reported_and_its_row_not_treated_as_missing(bank: PostgresServer, key: int, column: str) -> None:
    table = _table(bank, "ends", ["id"], ["day", "moment", "local", "rate"])
    with Database(bank.url, "spec.tables.ends") as database:
        with pytest.raises(LookupRefused, match=f"column {column}") as raised:
            database.rows(table.query(), ([1, key],))
        # The next query has a working connection.
        assert len(database.rows(table.query(), ([1],))) == 1
    assert raised.value.path == "spec.tables.ends"
    assert f"NULLIF({column}, " in raised.value.fix


@pytest.mark.on_executors("lookups", "journal")
def test_a_replayed_micro_batch_looks_up_the_same_rows(surroundings: Surroundings, bank: PostgresServer) -> None:
    accounts = _table(bank, "accounts", ["id"], ["owner"])
    name = f"found-{uuid.uuid4().hex[:8]}"
    block = _block(lambda stream: lookup_join(stream, accounts, "a", "inner"), lambda stream: stream.select(a="a", owner="accounts.owner"))
    rows = [row("1", a=7), row("1", a=8)]
    first = run(surroundings, {"in": Input("a INT", [[row("1", a=7)], rows])}, block, name=name)
    assert first.batches == [[{"a": 7, "owner": "zoe"}], [{"a": 7, "owner": "zoe"}]]
    assert [batch["tags"] for batch in first.events] == [{Tag.DATA: 1}, {Tag.DATA: 1, Tag.UNMATCHED: 1}]

    surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=f"{name}/1/commits/1")
    bank.run("UPDATE bank.accounts SET owner = 'zora' WHERE id = 7; INSERT INTO bank.accounts VALUES (8, 'new')")
    again = run(surroundings, {"in": Input("a INT", [rows])}, block, name=name)
    assert [batch["batch"] for batch in again.events] == [1, 2]
    assert again.batches[0] == [{"a": 7, "owner": "zoe"}]
    same(again.batches[1], [{"a": 7, "owner": "zora"}, {"a": 8, "owner": "new"}])


def test_a_database_that_goes_away_and_returns_loses_nothing(surroundings: Surroundings, bank: PostgresServer) -> None:
    accounts = _table(bank, "accounts", ["id"], ["balance"])
    name = f"away-{uuid.uuid4().hex[:8]}"

    def block(retry_for: str) -> Callable[[Mapping[str, Stream]], Stream]:
        return _block(lambda stream: lookup_join(stream, accounts, "a", retry_for=retry_for))

    bank.kill()
    with pytest.raises(DatabaseUnreachable) as raised:
        run(surroundings, {"in": Input("a INT", [[row("1", a=1)], [row("1", a=2)]])}, block("500ms"), name=name)

    # The job is restarted, and the database only returns after a lookup was tried.
    returned = threading.Thread(target=_start_when_asked, args=(bank,))
    returned.start()
    ran = run(surroundings, {"in": Input("a INT", [[row("1", a=3)]])}, block("60s"), name=name)
    returned.join()
    assert raised.value.path == "spec.tables.accounts"
    assert f"127.0.0.1:{bank.port}" in raised.value.need
    assert bank.url not in str(raised.value)
    assert [batch["batch"] for batch in ran.events] == [0, 1, 2]
    rows = [(one["a"], one["accounts"] and one["accounts"]["balance"]) for one in ran.rows]
    assert rows == [(1, Decimal("10.50")), (2, Decimal("-1.00")), (3, None)]


def _start_when_asked(bank: PostgresServer) -> None:
    with socket.create_server(("127.0.0.1", bank.port)) as listening:
        listening.settimeout(120)
        listening.accept()[0].close()
    bank.start()


def test_a_table_that_does_not_fit_is_reported_before_the_query_or_when_it_is_detected(
    surroundings: Surroundings, bank: PostgresServer
) -> None:
    with pytest.raises(LookupTableDoesNotFit, match="an existing table that the job may read"):
        _table(bank, "nowhere", ["id"], ["n"])
    with pytest.raises(LookupTableDoesNotFit, match=r"m, o columns of bank\.twice: id, n"):
        _table(bank, "twice", ["id", "m"], ["n", "o"])
    twice = _table(bank, "twice", ["id"], ["n"])
    with pytest.raises(LookupTableDoesNotFit, match=r"several rows for \[1\]"):
        run(surroundings, {"in": Input("a INT", [[row("1", a=1)]])}, _block(lambda stream: lookup_join(stream, twice, "a")))
