"""The test kit's jobs, on the tier's session: the driver's own queries, without Kafka and S3."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from penstock.jobs.driver.errors import QueryFailed
from penstock.jobs.errors import MissingField
from penstock.scripts.layout import ROOT
from penstock.testing import JobUnderTest, Record, replayed, same_rows
from penstock.testing.errors import WrongInput
from penstock.testing.plugin import micro_batches
from penstock.testing.records import Value

__all__ = ["micro_batches"]
Made = Callable[..., JobUnderTest]
VISITS = "user STRING NOT NULL, at STRING, page STRING"
TIME = {"field": "at", "outOfOrderness": "10s"}
STATELESS = f"""
from penstock import Job

def build(job: Job) -> None:
    visits = job.source("visits", "{VISITS}")
    job.write(visits.filter("page <> '/health'").select(user="upper(user)"), "out")
    job.side_output("errors")
"""
COUNTED = f"""
from penstock import Job, Tag, aggregate, tumbling

def build(job: Job) -> None:
    visits = job.source("visits", "{VISITS}")
    counted = aggregate(visits, tumbling("1m"), keys=["user"], visits="count(*)")
    job.write(counted.select(user="user", minute="window_start", visits="visits"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
"""


@pytest.fixture(scope="session")
def penstock_session(session: SparkSession) -> SparkSession:
    """The tier's. That of the kit itself starts in the repository that `penstock init` makes."""
    return session


@pytest.fixture
def made(micro_batches: Made, tmp_path: Path) -> Made:
    """A job of an app's text, and of what its spec has besides topics."""

    def job(
        name: str,
        app: str,
        sources: dict[str, Any] | None = None,
        sinks: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **options: Any,
    ) -> JobUnderTest:
        (tmp_path / f"{name}.py").write_text(app)
        topics = {sink: {"kafka": {"topic": f"{name}-{sink}"}} for sink in ("errors", "late") if f'"{sink}"' in app}
        spec = {
            "app": name,
            "parallelism": 4,
            "executor": {"slots": 2, "memory": "2g"},
            "sources": sources or {"visits": {"kafka": {"topic": "visits"}, "time": TIME}},
            "sinks": {"out": {"files": {"path": name}}, **topics, **(sinks or {})},
            **(more or {}),
        }
        document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": name.replace("_", "-")}, "spec": spec}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
        return micro_batches(tmp_path / f"{name}.yaml", **options)

    return job


def visit(at: str, user: str = "ann", page: str = "/") -> dict[str, str]:
    return {"user": user, "at": f"2025-04-05T12:{at}Z", "page": page}


def minute(at: str) -> datetime:
    return datetime.fromisoformat(f"2025-04-05T12:{at}:00+00:00")


def test_each_micro_batch_has_the_rows_of_its_values(made: Made) -> None:
    output = made("kit_stateless", STATELESS).run(
        [visit("00:00"), visit("00:01", page="/health")], ["not JSON", {"at": "2025-04-05T12:00:02Z"}], [visit("00:03", "bob")]
    )
    first, second, third = output.batches[:3]
    assert (first["out"], third["out"]) == ([{"user": "ANN"}], [{"user": "BOB"}])
    assert first.counts == {"data": 1, "filtered": 1}
    assert second["out"] == []
    assert [(row["offset"], row["value"]) for row in second["errors"]] == [(2, "not JSON"), (3, '{"at": "2025-04-05T12:00:02Z"}')]
    assert "user is missing" in second["errors"][1]["reason"]
    same_rows(output["out"], [{"user": "ANN"}, {"user": "BOB"}])


def test_windows_close_by_the_watermark_and_late_rows_leave(made: Made) -> None:
    job = made("kit_windows", COUNTED)
    output = job.run([visit("00:05"), visit("00:50")], [visit("01:15")], [visit("00:58"), visit("01:20")])
    assert [batch["out"] for batch in output.batches[:2]] == [[], []]
    same_rows(output["out"], [{"user": "ann", "minute": minute("00"), "visits": 2}])
    (late,) = output["late"]
    assert "12:00:58" in late["value"]
    assert output.batches[1].watermark == datetime(2025, 4, 5, 12, 1, 5, tzinfo=UTC)
    # From its checkpoint: the state of 12:01, and the watermark.
    again = job.run([visit("00:59"), visit("03:00")])
    assert len(again["late"]) == 1
    same_rows(again["out"], [{"user": "ann", "minute": minute("01"), "visits": 2}])


def test_a_replay_writes_the_same_and_the_job_goes_on(made: Made) -> None:
    batches: list[list[Value]] = [[visit("00:05"), "not JSON"], [visit("00:20"), visit("00:01")], [visit("02:00")]]
    expected = made("kit_once", COUNTED).run(*batches)
    output = made("kit_twice", COUNTED).run(replayed(batches[0]), batches[1], replayed(batches[2]))
    assert [batch.number for batch in output.batches] == [batch.number for batch in expected.batches]
    assert [batch.counts for batch in output.batches] == [batch.counts for batch in expected.batches]
    same_rows(output["out"], expected["out"])
    assert [row["value"] for row in output["late"]] == [row["value"] for row in expected["late"]]


def test_a_replay_that_writes_other_rows_fails_side_by_side(made: Made) -> None:
    # To a topic, which is written at least once: an exactly-once sink refuses the app.
    app = STATELESS.replace('user="upper(user)"', 'user="uuid()"')
    job = made("kit_random", app, sinks={"out": {"kafka": {"topic": "out"}}})
    with pytest.raises(AssertionError, match=r"(?s)the replay of micro-batch 0 writes other rows to out.*expected.*found.*!  user="):
        job.run(replayed([visit("00:00")]))


def test_sources_are_fed_by_their_names_and_partitions(made: Made) -> None:
    app = f"""
from penstock import Job, union

def build(job: Job) -> None:
    streams = [job.source(name, "{VISITS}", record="record") for name in ("visits", "orders")]
    places = union(*streams).select(user="user", place="concat(record.topic, '-', record.partition)", of="decode(record.key, 'utf-8')")
    job.write(places, "out")
    job.side_output("errors")
"""
    sources = {name: {"kafka": {"topics": [name, f"{name}-old"]}, "time": TIME} for name in ("visits", "orders")}
    job = made("kit_union", app, sources, partitions=2)
    output = job.run(
        {"visits": [visit("00:00")]},
        {"orders": [Record(visit("00:01", "bob"), key="k", topic="orders-old", partition=1)], "visits": [None]},
    )
    same_rows(output.batches[0]["out"], [{"user": "ann", "place": "visits-0", "of": None}])
    same_rows(output.batches[1]["out"], [{"user": "bob", "place": "orders-old-1", "of": "k"}])
    assert [row["reason"] for row in output["errors"]] == ["the record has no value"]
    for wrong, said in (
        ([visit("00:00")], "values without a source"),
        ({"visitors": []}, "visitors"),
        ({"visits": [Record("{}", partition=2)]}, "partition 2"),
        ({"visits": [Record("{}", topic="clicks")]}, "topic clicks"),
    ):
        with pytest.raises(WrongInput, match=said):
            job.run(wrong)


def test_lines_and_texts_are_read_as_their_sources_read_them(made: Made) -> None:
    app = """
from penstock import Job

def build(job: Job) -> None:
    job.write(job.source("lines", "name STRING, n INT").select(name="name", n="n"), "out")
    job.side_output("errors")
"""
    job = made("kit_files", app, {"lines": {"files": {"path": "lines", "format": "csv"}}}, {"out": {"kafka": {"topic": "out"}}})
    output = job.run(["a,1", "b,x"], ["", "c,3"])
    assert output["out"] == [{"name": "a", "n": 1}, {"name": "c", "n": 3}]
    assert [row["value"] for row in output["errors"]] == ["b,x"]
    with pytest.raises(WrongInput, match="the source's values are csv"):
        job.run([{"name": "a"}])


def test_rows_of_parquet_files_are_written_as_mappings(made: Made) -> None:
    app = """
from penstock import Job

def build(job: Job) -> None:
    rows = job.source("rows", "name STRING NOT NULL, at TIMESTAMP, price DECIMAL(9, 2), image BINARY")
    job.write(rows.select(name="name", at="at", price="price", bytes="length(image)"), "out")
    job.side_output("errors")
"""
    undated = {"out": {"files": {"path": "kit_parquet", "bucketBy": "none"}}}
    job = made("kit_parquet", app, {"rows": {"files": {"path": "rows", "format": "parquet"}}}, undated)
    noon = datetime(2025, 4, 5, 12, tzinfo=UTC)
    output = job.run([{"name": "a", "at": noon, "price": Decimal("1.25"), "image": b"\0\1"}, {"at": noon}], [{"name": "b"}])
    expected: dict[str, object] = {"name": "a", "at": noon, "price": Decimal("1.25"), "bytes": 2}
    same_rows(output["out"], [expected, {"name": "b", "at": None, "price": None, "bytes": None}])
    assert "name is missing" in output["errors"][0]["reason"]
    with pytest.raises(WrongInput, match="a mapping of columns"):
        job.run(["text"])


def test_each_query_of_a_job_has_its_rows(made: Made) -> None:
    app = STATELESS + '    job.write(visits.filter("page = \'/health\'").select(page="page"), "checks")\n'
    job = made("kit_queries", app, sinks={"checks": {"kafka": {"topic": "checks"}}})
    output = job.run([visit("00:00")], replayed([visit("00:01", page="/health")]))
    assert output["out"] == [{"user": "ANN"}]
    assert output["checks"] == [{"page": "/health"}]
    assert {batch.query for batch in output.batches} == {"", "checks"}


def test_an_app_in_sql_is_tested_likewise(micro_batches: Made) -> None:
    def seen(number: int, page: str, at: str) -> dict[str, str]:
        return {"visit_id": str(number), "page": page, "at": f"2025-04-05T12:{at}Z"}

    job = micro_batches(ROOT / "jobs/specs/page_counts.yaml")
    output = job.run(
        [seen(1, "/A", "00:00"), seen(1, "/A", "00:02"), seen(2, "/b", "00:01")], [seen(3, "/a", "00:03"), seen(4, "/", "06:00")]
    )
    same_rows([(row["page"], row["visits"]) for row in output["out"]], [("/a", 2), ("/b", 1)])


def test_what_fails_in_a_row_is_said_with_its_place(made: Made) -> None:
    app = STATELESS.replace("def build", "def shout(user):\n    return user.shout()\n\ndef build").replace(
        'user="upper(user)"', 'user=F.udf(shout)("user")'
    )
    with pytest.raises(QueryFailed) as raised:
        made("kit_failing", "from pyspark.sql import functions as F\n" + app).run([visit("00:00")])
    assert raised.value.at is not None and (raised.value.at.line, raised.value.at.file.endswith("kit_failing.py")) == (6, True)


def test_a_table_is_read_once_for_a_micro_batch_that_runs_twice(made: Made, tmp_path: Path) -> None:
    (tmp_path / "names").write_text("0")
    read = """
from pathlib import Path
COUNT = Path(__file__).with_name("names")

def names():
    number = int(COUNT.read_text()) + 1
    COUNT.write_text(str(number))
    return [{"user": "ann", "name": f"Ann {number}"}]
"""
    app = STATELESS.replace("import Job", f"import Job, table_join\n{read}").replace(
        'visits.filter("page <> \'/health\'").select(user="upper(user)")',
        'table_join(visits, "names", names, "user STRING, name STRING", on="user").select(user="name")',
    )
    output = made("kit_tables", app).run([visit("00:00")], replayed([visit("00:01")]), [visit("00:02")])
    same_rows(output["out"], [{"user": f"Ann {number}"} for number in (1, 2, 3)])


def test_an_endpoint_is_called_once_for_a_micro_batch_that_runs_twice(made: Made, tmp_path: Path) -> None:
    # Each answer is another one.
    (tmp_path / "kit_endpoint.py").write_text(
        """
from itertools import count

numbers = count(1)

def answer(method, path, headers, body):
    return 200, {"words": f"hello {path.rpartition('=')[2]}, you are number {next(numbers)}"}
"""
    )
    app = f"""
import json, urllib.request
from penstock import Job, Tag, call

class Greeter:
    def __init__(self, url):
        self.url = url

    def __call__(self, row, key):
        with urllib.request.urlopen(f"{{self.url}}/greet?user={{row['user']}}", timeout=10) as answer:
            return json.load(answer)

def build(job: Job) -> None:
    visits = job.source("visits", "{VISITS}")
    greeted = call(visits, Greeter(job.connections["greeter"]), name="greet", key="user", result="words STRING")
    job.write(greeted.select(words="words"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.FAILED)
"""
    connections = {"connections": {"greeter": "http"}, "local": {"connections": {"greeter": {"http": "kit_endpoint:answer"}}}}
    job = made("kit_calls", app, more=connections)
    output = job.run([visit("00:00")], replayed([visit("00:01", "bob")]), [visit("00:02", "eve")])
    same_rows(output["out"], [{"words": f"hello {user}, you are number {n}"} for n, user in enumerate(("ann", "bob", "eve"), 1)])
    with pytest.raises(MissingField, match="local server for connection greeter"):
        made("kit_calls_alone", app, more={"connections": {"greeter": "http"}}).run([visit("00:00")])
