"""Sinks other than files and topics, against real servers: PostgreSQL, Redis, an HTTP endpoint, and a function of the app."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.databases import postgres as databases_postgres
from penstock.jobs.databases.postgres import connected
from penstock.jobs.errors import BadDeclaration, DatabaseUnreachable
from penstock.jobs.sinks.building import build
from penstock.jobs.sinks.console import Console
from penstock.jobs.sinks.errors import RowsRefused, SinkFunctionFailed, TableDoesNotFit, WebhookFailed
from penstock.jobs.sinks.function import Function
from penstock.jobs.sinks.postgres import PostgresTable, Upsert
from penstock.jobs.sinks.redis import Overwrite, RedisHashes
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.webhook import Webhook
from penstock.jobs.spec import ConsoleSink, PostgresSink, RedisSink, ToFunction, WebhookSink
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.streams import TIME
from penstock.scripts.local.servers.http_endpoint import HttpEndpoint
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.sizing.errors import Faults
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

START = datetime(2025, 4, 5, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path_factory.mktemp("databases") / "postgres") as server:
        yield server


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("databases") / "redis") as server:
        yield server


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpEndpoint]:
    with HttpEndpoint(tmp_path_factory.mktemp("databases") / "http", f"{__name__.rpartition('.')[0]}.answers:answer") as server:
        yield server


def frame(session: SparkSession, schema: str, *rows: tuple[Any, ...], envelope: bool = True) -> DataFrame:
    """Rows of a micro-batch; the last value of each is the second of its event time, None for none."""
    rows_in_order = session.createDataFrame([(*row[:-1], row[-1]) for row in rows], f"{schema}, _second INT")
    time = (F.lit(START) + F.make_dt_interval(secs=F.col("_second"))).alias(TIME)
    return rows_in_order.select(*rows_in_order.columns[:-1], time)


def table(postgres: PostgresServer, columns: str) -> str:
    """A new table."""
    name = f"t{uuid.uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {name} ({columns})")
    return name


def upsert(postgres: PostgresServer, name: str, *key: str, retry_limit_s: float = 60, updates: bool = True, **more: Any) -> PostgresTable:
    sink = PostgresSink.model_validate({"connection": "bank", "table": name, "key": list(key), **more})
    return PostgresTable("out", sink, postgres.url, retry_limit_s, updates)


def batch(number: int, rows: int) -> Batch:
    return Batch(number, rows, 0)


@pytest.mark.on_executors("postgres")
def test_the_newest_row_of_each_key_is_upserted_and_a_replay_changes_nothing(session: SparkSession, postgres: PostgresServer) -> None:
    name = table(postgres, 'id int, "Kind" text, amount numeric(9,2), note text DEFAULT \'kept\', PRIMARY KEY ("Kind", id)')
    sink = upsert(postgres, name, "id", "Kind")
    sink.check()
    first = frame(
        session,
        "id INT, Kind STRING, amount DECIMAL(9,2)",
        (1, "a", None, 3),
        (2, "a", None, 1),
        (1, "a", None, 1),
        (1, "b", None, None),
    ).withColumn("amount", (F.col("id") * 10 + F.coalesce(F.second(TIME), F.lit(0))).cast("decimal(9,2)"))
    for _ in range(2):
        sink.write(first.repartition(2), batch(0, 4))
        assert sorted(postgres.rows(name), key=str) == [
            {"id": 1, "Kind": "a", "amount": 13.0, "note": "kept"},
            {"id": 1, "Kind": "b", "amount": 10.0, "note": "kept"},
            {"id": 2, "Kind": "a", "amount": 21.0, "note": "kept"},
        ]
    sink.write(frame(session, "id INT, Kind STRING, amount DECIMAL(9,2)", (2, "a", None, 0)), batch(1, 1))
    assert {"id": 2, "Kind": "a", "amount": None, "note": "kept"} in postgres.rows(name)


def test_every_type_arrives_as_postgres_writes_it(session: SparkSession, postgres: PostgresServer) -> None:
    name = table(
        postgres,
        "id bigint PRIMARY KEY, text text, day date, at timestamptz, plain timestamp, ok boolean, ratio double precision, raw bytea, "
        "tags jsonb, spent numeric, ref uuid",
    )
    rows = session.sql(
        "SELECT 9223372036854775807L id, 'tab\\t nul\\u0000 line\\n back\\\\slash \\\\N é 😀' text, DATE'0001-01-01' day, "
        "TIMESTAMP'2025-04-05 12:30:00.123456Z' at, TIMESTAMP'2025-04-05 12:30:00Z' plain, true ok, double('NaN') ratio, X'00FF' raw, "
        "map('a', array(1, null), 'b', array(2)) tags, CAST('12345678901234567890.1234567890' AS DECIMAL(38,10)) spent, "
        "'00000000-0000-0000-0000-00000000002a' ref, TIMESTAMP'2025-04-05 12:30:00Z' _time"
    )
    upsert(postgres, name, "id").write(rows, batch(0, 1))
    with connected(postgres.url) as connection:
        row = connection.execute(
            f"SELECT text, day::text, at::text, plain::text, ok, ratio::text, raw, tags, spent::text, ref::text FROM {name}"
        ).fetchone()
    assert row == (
        "tab\t nul\ufffd line\n back\\slash \\N é 😀",
        "0001-01-01",
        "2025-04-05 12:30:00.123456+00",
        "2025-04-05 12:30:00",
        True,
        "NaN",
        b"\x00\xff",
        {"a": [1, None], "b": [2]},
        "12345678901234567890.1234567890",
        "00000000-0000-0000-0000-00000000002a",
    )


def test_with_a_version_nothing_older_is_written_over_newer_and_tombstones_delete(session: SparkSession, postgres: PostgresServer) -> None:
    name = table(postgres, "id int PRIMARY KEY, owner text, changed timestamptz")
    postgres.run(f"INSERT INTO {name} VALUES (1, 'newer', '2025-04-05 12:30:09Z'), (2, 'older', '2025-04-05 12:30:01Z'), (3, 'gone', NULL)")
    sink = upsert(postgres, name, "id", version="changed", deletes=True)
    sink.check()
    rows = frame(
        session, "id INT, owner STRING, _deleted BOOLEAN", (1, "b", False, 5), (2, "b", None, 5), (3, None, True, 5), (4, "b", False, 5)
    )
    sink.write(rows.withColumn("changed", F.when(F.col("_deleted").isNull() | ~F.col("_deleted"), F.col(TIME))), batch(0, 4))
    assert {row["id"]: row["owner"] for row in postgres.rows(name)} == {1: "newer", 2: "b", 4: "b"}


def test_a_row_deleted_and_written_at_the_same_time_exists(session: SparkSession, postgres: PostgresServer) -> None:
    name = table(postgres, "id int PRIMARY KEY, owner text")
    sink = upsert(postgres, name, "id", deletes=True)
    # Whichever of the two has the greater hash: ten rows that move from one owner to another.
    moves = [(id, owner, owner == "a", 5) for id in range(10) for owner in "ab"]
    sink.write(frame(session, "id INT, owner STRING, _deleted BOOLEAN", *moves).repartition(2), batch(0, 20))
    assert {row["id"] for row in postgres.rows(name)} == set(range(10))
    assert {row["owner"] for row in postgres.rows(name)} == {"b"}


@pytest.mark.parametrize("second", [5, None])
def test_of_rows_of_one_moment_the_last_of_the_micro_batch_is_written(
    session: SparkSession, postgres: PostgresServer, redis: RedisServer, second: int | None
) -> None:
    """In the order of a topic's records. Ten keys of each kind, so that ordering by content fails for some of them."""
    name, prefix = table(postgres, "id int PRIMARY KEY, owner text"), f"moment-{second}:"
    kinds = {"z then a": ("z", "a"), "a then z": ("a", "z"), "written, then gone": ("a", None), "gone, then written": (None, "a")}
    wanted = {10 * kind + number: last for kind, (_, last) in enumerate(kinds.values()) for number in range(10) if last}
    rows = [
        (10 * kind + number, owners[turn], owners[turn] is None, second)
        for turn in range(2)
        for kind, owners in enumerate(kinds.values())
        for number in range(10)
    ]
    changes = frame(session, "id INT, owner STRING, _deleted BOOLEAN", *rows)
    upsert(postgres, name, "id", deletes=True, updates=False).write(changes, batch(0, len(rows)))
    assert {row["id"]: row["owner"] for row in postgres.rows(name)} == wanted
    hashes = RedisSink.model_validate({"connection": "cache", "key": ["id"], "prefix": prefix, "deletes": True})
    RedisHashes("out", hashes, redis.url, updates=False).write(changes, batch(0, len(rows)))
    assert {int(fields["id"]): fields["owner"] for fields in redis.hashes(f"{prefix}*").values()} == wanted


def test_rows_that_do_not_fit_the_table_are_reported_before_the_query_or_with_their_values(
    session: SparkSession, postgres: PostgresServer
) -> None:
    name = table(postgres, "id int, owner text NOT NULL, CHECK (id > 0)")
    with pytest.raises(TableDoesNotFit, match=f"an existing table {name}x"):
        upsert(postgres, f"{name}x", "id").check()
    postgres.run(f"CREATE ROLE reader_{name} LOGIN PASSWORD 'p'; GRANT SELECT, INSERT ON {name} TO reader_{name}")
    with pytest.raises(TableDoesNotFit, match="may read and write"):
        readable = PostgresSink(connection="bank", table=name, key=["id"])
        PostgresTable("out", readable, f"postgresql://reader_{name}:p@127.0.0.1:{postgres.port}/penstock").check()
    with pytest.raises(TableDoesNotFit, match="the columns name; it has id, owner"):
        upsert(postgres, name, "name").check()
    with pytest.raises(TableDoesNotFit, match="unique constraint on exactly id; existing: none"):
        upsert(postgres, name, "id").check()
    # Some of the rows are not all of them.
    postgres.run(f"CREATE UNIQUE INDEX ON {name} (id) WHERE id > 5; CREATE UNIQUE INDEX ON {name} (id, owner)")
    with pytest.raises(TableDoesNotFit, match="existing: id, owner"):
        upsert(postgres, name, "id").check()
    postgres.run(f"ALTER TABLE {name} ADD UNIQUE (id) INCLUDE (owner)")
    sink = upsert(postgres, name, "id")
    sink.check()
    with pytest.raises(RowsRefused, match="violates check constraint"):
        sink.write(frame(session, "id INT, owner STRING", (1, "a", 1), (-1, "b", 1)), batch(0, 2))
    with pytest.raises(RowsRefused, match="whose key id is null"):
        sink.write(frame(session, "id INT, owner STRING", (None, "a", 1)), batch(0, 1))
    with pytest.raises(TableDoesNotFit, match="the columns more; it has id, owner"):
        sink.write(frame(session, "id INT, owner STRING, more INT", (1, "a", 1, 1)), batch(0, 1))
    with pytest.raises(TableDoesNotFit, match="rows with the columns id"):
        sink.write(frame(session, "owner STRING", ("a", 1)), batch(0, 1))
    assert postgres.rows(name) == []


def test_two_tasks_that_meet_in_other_keys_do_not_wait_for_each_other_in_a_circle(postgres: PostgresServer) -> None:
    """Two attempts of one task, as under speculation: the same keys at the same time, in opposite orders."""
    import pyarrow as pa

    name = table(postgres, "id int PRIMARY KEY, n int")
    ids = [str(number) for number in range(2000)]
    batches = [pa.RecordBatch.from_pydict({"id": order, "n": ["1"] * len(order)}) for order in (ids, ids[::-1])]
    outcomes: list[Any] = []
    task = Upsert(postgres.url, name, ("id", "n"), ("id",), None, False, 5)
    threads = [threading.Thread(target=lambda one=one: outcomes.extend(task([one]))) for one in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.to_pylist() for outcome in outcomes] == [[{"rows": 2000, "away": None, "refused": None}]] * 2
    assert len(postgres.rows(name)) == 2000


def _task(postgres: PostgresServer, name: str, retry_limit_s: float = 30) -> Upsert:
    return Upsert(postgres.url, name, ("id", "owner", "changed"), ("id",), "changed", False, retry_limit_s)


def _texts(*rows: tuple[str, str, str]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(dict(zip(("id", "owner", "changed"), map(list, zip(*rows, strict=True)), strict=True)))


def test_with_a_version_a_task_that_wakes_after_a_later_micro_batch_changes_nothing(postgres: PostgresServer) -> None:
    name = table(postgres, "id int PRIMARY KEY, owner text, changed int")
    earlier, later = _texts(("1", "a", "1"), ("2", "a", "2"), ("3", "a", "3")), _texts(("1", "b", "4"), ("2", "b", "5"))
    list(_task(postgres, name)([earlier]))
    list(_task(postgres, name)([later]))
    before = postgres.rows(name)
    # The first attempt, or a driver that was considered dead.
    list(_task(postgres, name)([earlier]))
    assert sorted(postgres.rows(name), key=str) == sorted(before, key=str)
    assert {row["id"]: row["owner"] for row in before} == {1: "b", 2: "b", 3: "a"}


def test_a_task_suspended_within_its_transaction_does_not_stop_others(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(databases_postgres, "_IDLE_IN_TRANSACTION_S", 1)
    name = table(postgres, "id int PRIMARY KEY, owner text, changed int")
    merged, wake = threading.Event(), threading.Event()

    class Suspended(Upsert):
        """Stops once, after its rows are written and before the commit."""

        def _delete(self) -> Any:
            if not merged.is_set():
                merged.set()
                assert wake.wait(60)
            return super()._delete()

    ours = {**vars(_task(postgres, name)), "deletes": True, "fields": ("id", "owner", "changed", "_deleted")}
    rows = pa.RecordBatch.from_pydict({"id": ["1"], "owner": ["a"], "changed": ["1"], "_deleted": ["false"]})
    suspended = threading.Thread(target=lambda: list(Suspended(**ours)([rows])))
    suspended.start()
    assert merged.wait(60)
    list(_task(postgres, name)([_texts(("1", "b", "2"))]))
    assert [row["owner"] for row in postgres.rows(name)] == ["b"]
    # It is told that its transaction is lost, and tries again: the row has a later version by now.
    wake.set()
    suspended.join()
    assert [row["owner"] for row in postgres.rows(name)] == ["b"]


def test_a_database_that_is_away_is_waited_for_and_then_named_without_its_password(session: SparkSession, tmp_path: Path) -> None:
    with PostgresServer(tmp_path / "postgres") as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)")
        rows = frame(session, "id INT", (1, 1), (2, 1))
        server.kill()
        password = server.url.split(":")[2].partition("@")[0]
        with pytest.raises(DatabaseUnreachable, match=f"postgresql://127.0.0.1:{server.port} within 0.5 s") as raised:
            upsert(server, "t", "id", retry_limit_s=0.5).write(rows, batch(0, 2))
        assert password not in str(raised.value) and "refused" in raised.value.given
        back = threading.Thread(target=server.start)
        back.start()
        upsert(server, "t", "id").write(rows, batch(0, 2))
        back.join()
        assert server.rows("t") == [{"id": 1}, {"id": 2}]
        with pytest.raises(DatabaseUnreachable, match="password authentication failed"):
            PostgresTable("out", PostgresSink(connection="c", table="t", key=["id"]), server.url.replace(password, "x"), 0.2).check()


@pytest.mark.on_executors("redis")
def test_a_hash_of_redis_has_the_fields_of_its_last_row_alone(session: SparkSession, redis: RedisServer) -> None:
    sink = RedisSink.model_validate({"connection": "cache", "key": ["user", "day"], "prefix": "u:", "ttl": "1h"})
    hashes = RedisHashes("out", sink, redis.url)
    hashes.check()
    redis.fill({"u:a%3Ab:1": {"user": "a:b", "old": "field"}})
    schema = "user STRING, day INT, n BIGINT, seen ARRAY<INT>"
    rows = frame(session, schema, ("a:b", 1, 5, [1], 9), ("a:b", 1, 6, [2], 3), ("c", 1, None, None, 1))
    for _ in range(2):
        hashes.write(rows, batch(0, 3))
        assert redis.hashes("u:*") == {
            "u:a%3Ab:1": {"user": "a:b", "day": "1", "n": "5", "seen": "[1]"},
            "u:c:1": {"user": "c", "day": "1"},
        }
    gone = RedisHashes("out", sink.model_copy(update={"deletes": True}), redis.url)
    gone.write(frame(session, "user STRING, day INT, _deleted BOOLEAN", ("a:b", 1, True, 1), ("c", 1, None, 1)), batch(1, 2))
    assert redis.hashes("u:*") == {"u:c:1": {"user": "c", "day": "1"}}
    with redis._client() as client:
        assert 3_500_000 < int(client.pttl("u:c:1")) <= 3_600_000
    with pytest.raises(RowsRefused, match="whose key user is null"):
        hashes.write(frame(session, schema, (None, 1, 5, [1], 9)), batch(1, 1))
    with pytest.raises(BadDeclaration, match="rows with the columns day"):
        hashes.write(frame(session, "user STRING", ("a", 1)), batch(1, 1))


def test_a_redis_that_is_away_is_waited_for_and_a_wrong_password_is_not(tmp_path: Path) -> None:
    import pyarrow as pa

    with RedisServer(tmp_path / "redis") as server:
        rows = pa.RecordBatch.from_pydict({"id": ["1", "2"], "n": ["5", None]})
        server.kill()
        short, long = (Overwrite(server.url, "", ("id",), None, False, retry_limit_s) for retry_limit_s in (0.3, 60))
        (outcome,) = short([rows])
        assert outcome.to_pylist()[0]["rows"] == 0 and "refused" in outcome.to_pylist()[0]["away"]
        back = threading.Thread(target=server.start)
        back.start()
        (outcome,) = long([rows])
        back.join()
        assert outcome.to_pylist() == [{"rows": 2, "away": None, "refused": None}]
        assert server.hashes() == {"1": {"id": "1", "n": "5"}, "2": {"id": "2"}}
        password = server.url.split(":")[2].partition("@")[0]
        with pytest.raises(DatabaseUnreachable, match="invalid username-password"):
            RedisHashes("out", RedisSink(connection="c", key=["id"]), server.url.replace(password, "wrong")).check()


@pytest.mark.on_executors("webhook")
def test_a_webhook_posts_arrays_under_keys_that_a_replay_repeats(session: SparkSession, endpoint: HttpEndpoint) -> None:
    sink = WebhookSink(connection="alerts", rows=2)
    url = endpoint.url.replace("http://", "http://who:p%40ss@")
    hook = Webhook("alerts", sink, f"{url}/ok", "1234abcd")
    before = len(endpoint.requests())
    rows = frame(session, "user STRING, n INT", ("c", 3, 1), ("a", 1, 1), ("b", 2, 1))
    hook.write(rows, batch(7, 3))
    hook.write(rows.repartition(3), batch(7, 3))
    asked = endpoint.requests()[before:]
    assert [request.json() for request in asked[:2]] == [[{"user": "a", "n": 1}, {"user": "b", "n": 2}], [{"user": "c", "n": 3}]]
    keys = [request.headers["idempotency-key"] for request in asked]
    assert keys[:2] == keys[2:] and len(set(keys)) == 2
    assert asked[0].headers["authorization"] == "Basic d2hvOnBAc3M="
    hook.write(session.sql("SELECT 't-0-5' AS key, '{\"reason\":\"late\"}' AS value"), batch(7, 1))
    assert endpoint.requests()[-1].json() == [{"reason": "late"}]
    # Four equal rows make two equal requests, and both are sent.
    before = len(endpoint.requests())
    alike = frame(session, "user STRING, n INT", *[("a", 1, 1)] * 4)
    for _ in range(2):
        hook.write(alike, batch(8, 4))
    keys = [request.headers["idempotency-key"] for request in endpoint.requests()[before:]]
    assert keys[:2] == keys[2:] and len(set(keys)) == 2


def test_a_webhook_is_tried_again_where_that_helps_and_then_stops_the_job(session: SparkSession, endpoint: HttpEndpoint) -> None:
    rows = frame(session, "user STRING", ("a", 1))
    before = len(endpoint.requests())
    Webhook("alerts", WebhookSink(connection="alerts"), f"{endpoint.url}/busy-twice", "").write(rows, batch(0, 1))
    assert [request.status for request in endpoint.requests()[before:]] == [503, 429, 200]
    with pytest.raises(WebhookFailed, match=r"401 Unauthorized from http://127.0.0.1:\d+ after 1 of 5 attempts"):
        Webhook("alerts", WebhookSink(connection="alerts"), f"{endpoint.url}/secret-path-refused", "").write(rows, batch(0, 1))
    with pytest.raises(WebhookFailed, match="after 2 of 2 attempts"):
        Webhook("alerts", WebhookSink(connection="alerts", attempts=2), f"{endpoint.url}/broken", "").write(rows, batch(0, 1))


@pytest.mark.on_executors("function")
def test_a_function_is_called_once_for_each_micro_batch_and_again_only_if_it_failed(session: SparkSession, s3: S3Client) -> None:
    calls: list[tuple[int, list[str]]] = []

    def once(rows: DataFrame, of: Batch) -> None:
        calls.append((of.number, rows.columns))
        if len(calls) == 1:
            raise ConnectionError("no route\nto host")

    app = ModuleType("app")
    app.once = once  # type: ignore[attr-defined]
    checkpoint = Checkpoint(f"s3a://{CHECKPOINTS}/f{uuid.uuid4().hex[:8]}")
    context = SinkContext("job", session, KafkaAccess("b:1"), "bucket", "identity", checkpoint, app=app)
    sink = build("own", ToFunction.model_validate({"function": {"name": "once"}}), context)
    assert isinstance(sink, Function)
    rows = frame(session, "user STRING", ("a", 1))
    with pytest.raises(SinkFunctionFailed, match=r"ConnectionError: no route a function") as raised:
        sink.write(rows, batch(0, 1))
    assert isinstance(raised.value.__cause__, ConnectionError)
    for number in (0, 0, 1, 1, 2):
        sink.write(rows, batch(number, 0 if number == 2 else 1))
    assert calls == [(0, ["user"]), (0, ["user"]), (1, ["user"])]
    with pytest.raises(SinkFunctionFailed, match=r"a function twice\(rows, batch\) in app"):
        build("own", ToFunction.model_validate({"function": {"name": "twice"}}), context)


def test_a_running_job_writes_to_all_of_them_and_a_database_that_goes_away_costs_it_nothing(
    surroundings: Surroundings, endpoint: HttpEndpoint, redis: RedisServer, tmp_path: Path
) -> None:
    from tests.jobs.spark.apps.connected_rows import CALLED

    sinks = {
        "bank": {"postgres": {"connection": "bank", "table": "accounts", "key": ["key"]}},
        "cache": {"redis": {"connection": "cache", "key": ["key"], "prefix": "job:"}},
        "own": {"function": {"name": "called"}},
        "alerts": {"webhook": {"connection": "alerts"}},
    }
    job = surroundings.job("tests.jobs.spark.apps.connected_rows", sources={"a": 1}, sinks=sinks)
    with PostgresServer(tmp_path / "postgres") as server:
        server.run("CREATE TABLE accounts (key text PRIMARY KEY, at text, amount double precision)")
        job.connections |= {"bank": server.url, "cache": redis.url, "alerts": f"{endpoint.url}/job"}
        with job.running() as running:
            at = "2025-04-05T12:30:00Z"
            job.feed(
                "a",
                {"key": "x", "at": at, "amount": 1},
                {"key": "y", "at": at, "amount": 200},
                {"key": "z", "at": at, "amount": -1},
                b"bad",
            )
            running.until_read({"a": [4]})
            server.kill()
            job.feed("a", {"key": "x", "at": at, "amount": 2}, {"key": "n", "at": at, "amount": 3})
            # The sink now connects to this test, which shows that it found its database unavailable.
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", server.port))
                listener.listen()
                listener.settimeout(100)
                listener.accept()[0].close()
            server.start()
            running.until_read({"a": [6]})
        assert {row["key"]: row["amount"] for row in server.rows("accounts")} == {"x": 2, "y": 200, "n": 3}
    hashes = {key: fields["amount"] for key, fields in redis.hashes("job:*").items()}
    assert hashes == {"job:x": "2.0", "job:y": "200.0", "job:z": "-1.0", "job:n": "3.0"}
    assert [(CALLED[0][0], ["y"])] == CALLED
    posted = [row for request in endpoint.requests() if request.path == "/job" for row in request.json()]
    assert [(row["topic"], row["offset"], row["value"]) for row in posted] == [(job.topics["a"], 3, "bad")]


def test_a_connection_that_the_environment_does_not_have_stops_the_job_before_its_query(surroundings: Surroundings) -> None:
    sinks = {"out": {"postgres": {"connection": "bank", "table": "t", "key": ["key"]}}, "errors": {"webhook": {"connection": "alerts"}}}
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1}, sinks=sinks)
    job.connections["bank"] = "redis://:hidden@127.0.0.1:1/0"
    with pytest.raises(Faults) as raised, job.running():
        pass
    assert sorted(fault.code for fault in raised.value.errors) == ["JOB-050", "JOB-051"]
    assert "hidden" not in str(raised.value)


@pytest.mark.on_executors("console")
def test_the_console_shows_the_first_rows_of_a_micro_batch(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    rows = frame(session, "user STRING", ("a\nb", 1), ("c", 1)).coalesce(1)
    Console("look", ConsoleSink(rows=1)).write(rows, batch(3, 2))
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "sink look, batch 3: 2 rows, the first 1"
    assert json.loads(shown[1]) == {"user": "a\nb"}


def test_no_password_is_in_what_a_sink_shows_of_itself(postgres: PostgresServer) -> None:
    password = postgres.url.split(":")[2].partition("@")[0]
    assert password not in repr(upsert(postgres, "t", "id")) + repr(Upsert(postgres.url, "t", ("id",), ("id",), None, False, 1))
