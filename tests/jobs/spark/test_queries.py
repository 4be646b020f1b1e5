"""Queries over topics: rows of what is there and of what comes, and faults by their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.spec import load
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.querying import query
from penstock.scripts.querying.tables import ReadJob, Start, TopicTable, columns_of, opened, tables
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.running import Surroundings, TestedJob

APP = """
def build(job):
    clicks = job.source("clicks", "user STRING NOT NULL, n INT")
    orders = job.source("orders", "user STRING NOT NULL, total DOUBLE")
    job.write(clicks, "out")
    job.write(orders, "totals")
    job.side_output("errors")
"""


class Asked:
    """A session with the tables of a job."""

    def __init__(self, job: TestedJob, folder: Path) -> None:
        self.job = job
        self.session: SparkSession = job.around.session.newSession()
        read = ReadJob(load(job.spec), [folder], InstalledPackages())
        self.tables: Mapping[str, TopicTable] = tables([read], lambda _: [], self.session, folder)
        self.clicks, self.orders = job.topics["clicks"], job.topics["orders"]

    def frame(self, text: str, *, start: Start | None = None, follow: bool = False) -> DataFrame:
        access = KafkaAccess(self.job.around.brokers)
        for name, table in self.tables.items():
            opened(table, access, self.session, start or Start("earliest"), follow=follow).createOrReplaceTempView(query.quoted(name))
        return query.analyzed(self.session, text.format(clicks=query.quoted(self.clicks), orders=query.quoted(self.orders)), [*self.tables])

    def rows(self, text: str, limit: int | None = None, **how: Any) -> list[list[Any]]:
        found: list[list[Any]] = []

        def show(rows: Iterable[Sequence[Any]]) -> int:
            found.extend(list(row) for row in rows)
            return len(found)

        query.collected(self.frame(text, **how), limit, show)
        return found

    def fault(self, text: str) -> PenstockError:
        with pytest.raises(PenstockError) as raised:
            self.frame(text)
        return raised.value


@pytest.fixture
def asked(surroundings: Surroundings, tmp_path: Path) -> Asked:
    (tmp_path / "queried_app.py").write_text(APP, encoding="utf-8")
    job = surroundings.job("queried_app", sources={"clicks": 2, "orders": 1})
    job.edit(lambda spec: spec["sinks"].update(out={"console": {}}, totals={"console": {}}))
    job.edit(lambda spec: [source.pop("time") for source in spec["sources"].values()])
    return Asked(job, tmp_path)


def _feed(asked: Asked, source: str, *rows: Mapping[str, object] | bytes, partition: int = 0) -> None:
    asked.job.feed(source, *rows, partition=partition)


def test_what_is_there_is_joined_and_grouped_and_bad_records_are_rows_with_their_error(asked: Asked) -> None:
    # Of the last one the parser reads the user, who is not shown.
    _feed(asked, "clicks", {"user": "ann", "n": 1}, {"user": "bob", "n": 2}, b"broken", {"user": "cy", "n": "many"})
    _feed(asked, "clicks", {"user": "ann", "n": 3}, partition=1)
    _feed(asked, "orders", {"user": "ann", "total": 1.5})
    joined = "SELECT c.user, sum(n), max(total) FROM {clicks} c LEFT JOIN {orders} o ON c.user = o.user WHERE c._error IS NULL "
    assert sorted(asked.rows(joined + "GROUP BY c.user")) == [["ann", 4, 1.5], ["bob", 2, None]]
    bad = asked.rows("SELECT user, _partition, _offset, _error FROM {clicks} WHERE _error IS NOT NULL ORDER BY _offset")
    wrong = "the value is not JSON of the source's schema"
    assert bad == [[None, 0, 2, wrong], [None, 0, 3, f"{wrong}: n is not int"]]
    nested = "SELECT struct(user, array(n)) AS s, map('a', n) AS m, _key FROM {clicks} WHERE n = 3"
    assert asked.rows(nested) == [[{"user": "ann", "col2": [3]}, {"a": 3}, None]]
    assert len(asked.rows("SELECT * FROM {clicks}", limit=2)) == 2
    assert asked.rows("SELECT count(*) FROM {clicks}", start=Start(4_000_000_000_000)) == [[0]]
    assert list(columns_of(asked.tables[asked.clicks]).items())[:3] == [("user", "string"), ("n", "int"), ("_key", "string")]


def test_rows_that_come_are_followed_to_the_limit_without_a_trace_on_the_brokers(asked: Asked) -> None:
    _feed(asked, "clicks", {"user": "ann", "n": 1})
    found: list[list[Any]] = []

    def show(rows: Iterable[Sequence[Any]]) -> int:
        new = [list(row) for row in rows]
        found.extend(new)
        if new and len(found) == 1:
            _feed(asked, "clicks", {"user": "bob", "n": 2}, {"user": "eve", "n": 3})
        return len(new)

    query.followed(asked.frame("SELECT user FROM {clicks} WHERE n > 0", follow=True), 2, show)
    assert (found[0], len(found)) == (["ann"], 2)
    assert asked.session.streams.active == []
    with pytest.raises(PenstockError, match="SQL-004") as raised:
        query.followed(asked.frame("SELECT user FROM {clicks} ORDER BY n", follow=True), None, show)
    assert "--follow" in raised.value.fix


def test_faults_have_their_place_in_the_query_and_what_there_is_instead(asked: Asked) -> None:
    syntax = asked.fault("SELECT user\nFORM {clicks}")
    assert (syntax.code, syntax.at and (syntax.at.line, syntax.at.column)) == ("SQL-001", (2, 6))
    assert asked.fault("DROP VIEW x").code == "SQL-001"
    table = asked.fault("SELECT * FROM clics")
    assert (table.code, table.given, table.at and table.at.column) == ("SQL-002", "clics", 15)
    assert table.render().startswith("error[SQL-002]: unknown table\n  at   QUERY:1  column 15 = clics\n")
    assert all(query.quoted(name) in table.need for name in asked.tables)
    column = asked.fault("SELECT usr FROM {clicks}")
    assert (column.code, column.at and column.at.column) == ("SQL-003", 8)
    assert "user" in column.given and "SQLSTATE" not in column.given
    with pytest.raises(PenstockError, match="SQL-005"):
        asked.rows("SELECT raise_error('no more') FROM {clicks} UNION ALL SELECT raise_error('no more')")
