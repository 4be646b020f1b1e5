"""docs/sql.md: the page's apps run, with Python's functions in SQL and SQL between Python's blocks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from penstock.jobs.sql.errors import SqlRefused
from penstock.scripts.layout import ROOT
from penstock.testing import JobUnderTest, same_rows
from penstock.testing.plugin import micro_batches

__all__ = ["micro_batches"]
PAGE = ROOT / "docs/sql.md"
Made = Callable[..., JobUnderTest]


@pytest.fixture(scope="session")
def penstock_session(session: SparkSession) -> SparkSession:
    """The tier's."""
    return session


@pytest.fixture
def made(micro_batches: Callable[..., JobUnderTest], tmp_path: Path) -> Made:
    """A job of an app of the page, with these sinks besides `errors`."""
    files = re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")

    def job(app: str, *sinks: str) -> JobUnderTest:
        spec = {
            "app": app,
            "parallelism": 2,
            "executor": {"slots": 2, "memory": "2g"},
            "sources": {"visits": {"kafka": {"topic": "visits"}, "time": {"field": "at", "outOfOrderness": "10s"}}},
            "sinks": {name: {"kafka": {"topic": f"sql-{name}"}} for name in ("errors", *sinks)},
        }
        document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "sql-page"}, "spec": spec}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        return micro_batches(tmp_path / "job.yaml")

    return job


def visit(time: str, user: str, page: str = "/", ms: int = 1) -> dict[str, Any]:
    return {"user": user, "page": page, "ms": ms, "at": f"2025-04-05T12:{time}Z"}


def test_functions_in_python_are_called_by_an_app_in_sql(made: Made) -> None:
    output = made("visits.sql", "out", "failed").run(
        [visit("00:02", "ann", "/cart/8", 3), visit("00:01", "ann", "/cart/7", 5), visit("00:03", "eve", "/cart/9"), visit("00:04", "ann")],
        [
            *(visit("00:20", "bob", page, 9) for page in ("/health/all", "/cart/7/more")),
            visit("00:22", "ann", "/cart/9", 4),
            visit("02:00", "ann"),
        ],
    )
    german = {"country": "DE", "visits": 3, "nths": 7, "median": 4.0}
    french = {"country": "FR", "visits": 1, "nths": 2, "median": 9.0, "ms": 9}
    same_rows(output["out"], [{**german, "ms": 4}, {**german, "ms": 5}, french])
    assert [row["reason"] for row in output["failed"]] == ["country-of failed after 2 attempts: KeyError: 'eve'"]


def test_sql_stands_between_blocks_of_an_app(made: Made) -> None:
    output = made("sections.py".removesuffix(".py"), "out", "late", "bots").run(
        [visit("00:01", "ann", "/cart/7", 5), visit("00:02", "bob", "/cart/8", 3), visit("00:03", "ann", "/"), visit("00:04", "bot7", "/")],
        [visit("02:00", "ann", "/end")],
    )
    same_rows(output["out"], [{"section": "cart", "visits": 2, "ms": 8}])
    assert [row["reason"] for row in output["bots"]] == ["a bot"]


def test_a_query_that_spark_cannot_run_is_rejected_with_its_place(made: Made, tmp_path: Path) -> None:
    (tmp_path / "updates.sql").write_text(
        "CREATE SOURCE visits (user STRING, at STRING);\nSIDE OUTPUT errors;\n"
        "CREATE VIEW counts AS SELECT user, window_start, window_end, count(*) AS n FROM visits GROUP BY user, TUMBLE('1m');\n"
        "INSERT INTO out SELECT max(n) AS n FROM counts GROUP BY window_start, window_end EMIT UPDATES;\n",
        encoding="utf-8",
    )
    with pytest.raises(SqlRefused) as error:
        made("updates.sql", "out").run([])
    assert str(error.value.at).endswith("updates.sql:4:41") and "a query that Structured Streaming can run" in error.value.need
