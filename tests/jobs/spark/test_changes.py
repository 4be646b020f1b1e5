"""Aggregates of changing results in SQL: rows that are taken back leave the groups that they were in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.sql.tokens import Script
from penstock.jobs.sql_views.declaring import result
from penstock.jobs.stream.streams import TIME, Stream
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.running import Surroundings

COUNTS = "CREATE VIEW counts AS SELECT user, sum(n) AS total, _op FROM clicks GROUP BY user EMIT CHANGES"
TOTALS = "SELECT total, count(*) AS users, _deleted FROM counts GROUP BY total EMIT UPDATES"


def query(session: SparkSession, text: str, **streams: Stream) -> Stream:
    job: Any = type("Declared", (), {"session": session, "connections": {}, "table": None, "source": None})()
    return result(Script(Path("app.sql"), text), job, streams)


def test_an_aggregate_of_current_aggregates_takes_back_what_they_were(surroundings: Surroundings) -> None:
    clicks = Input(
        "user STRING, n INT",
        [
            # In the order of event time bob's total is 2, then 3.
            [row("3", user="bob", n=1), row("1", user="ann", n=1), row("2", user="bob", n=2)],
            [row("11", user="ann", n=2), row("12", user="ann", n=0), row("13", user="bob", n=None)],
            [row("30", user="ann", n=9)],
        ],
    )
    ran = run(surroundings, {"clicks": clicks}, lambda streams: query(surroundings.session, f"{COUNTS}; {TOTALS}", **streams))
    counts = [{"total": total, "users": users, "_deleted": not users} for total, users in ((1, 1), (2, 1), (2, 0), (3, 2), (1, 0))]
    same(ran.rows, counts)


def test_counts_sums_and_means_are_those_of_the_rows_that_are_left(session: SparkSession) -> None:
    rows = [
        ("+I", "x", 2),
        ("+I", "x", None),
        ("-U", "x", 2),
        ("+U", "x", 5),
        ("+I", "y", 1),
        ("-D", "y", 1),
        ("+I", "x", 7),
        ("-D", "x", None),
    ]
    changes = Stream(
        session.createDataFrame([(at("1"), *one) for one in rows], f"{TIME} timestamp, _op string, k string, n int"), timed=True
    )
    text = "SELECT k, count(*) AS c, count(n) AS m, sum(n) AS s, avg(n) AS a, _deleted FROM changes GROUP BY k EMIT UPDATES"
    found = sorted(tuple(one)[:-1] for one in query(session, text, changes=changes).frame.collect())
    assert found == [("x", 2, 2, 12, 6.0, False), ("y", 0, 0, None, None, True)]
    of_changes = query(session, "SELECT k, count_if(_op = '-D') AS d FROM changes GROUP BY k, TUMBLE('1m')", changes=changes)
    assert sorted((one.k, one.d) for one in of_changes.frame.collect()) == [("x", 1), ("y", 1)]


@pytest.mark.parametrize(
    ("text", "place", "need"),
    [
        ("SELECT k, max(n) AS m FROM changes GROUP BY k EMIT UPDATES", ":1:11", "count, sum or avg of one expression, alone"),
        ("SELECT k,\n sum(n) + 1 AS m FROM changes GROUP BY k EMIT UPDATES", ":2:2", "count, sum or avg of one expression, alone"),
        ("SELECT k, count(DISTINCT n) AS m FROM changes GROUP BY k EMIT UPDATES", ":1:11", "count, sum or avg"),
        ("SELECT k, sum(n) AS m FROM changes GROUP BY k, TUMBLE('1m')", ":1:36", "EMIT UPDATES and no window"),
        ("SELECT k, sum(n) AS m FROM rows GROUP BY k EMIT CHANGES", ":1:33", "the column _op"),
        ("SELECT k, sum(n) AS m, _op FROM rows GROUP BY k, TUMBLE('1m') EMIT CHANGES", ":1:50", "no window"),
        ("SELECT k, median(n) AS m, _op FROM rows GROUP BY k EMIT CHANGES", ":1:41", "is not one of"),
        ("SELECT k, sum(n) AS m FROM current GROUP BY k EMIT UPDATES", ":1:36", "current values"),
    ],
)
def test_what_cannot_take_a_row_back_is_rejected_with_its_place(session: SparkSession, text: str, place: str, need: str) -> None:
    frame = session.createDataFrame([], f"{TIME} timestamp, k string, n int")
    changes = Stream(session.createDataFrame([], f"{TIME} timestamp, _op string, k string, n int"), timed=True)
    streams = {"rows": Stream(frame, timed=True), "changes": changes, "current": Stream(frame, timed=True, updates=True)}
    with pytest.raises(SqlRefused) as error:
        query(session, text, **{name: stream for name, stream in streams.items() if name in text})
    assert str(error.value.at) == f"app.sql{place}" and need in error.value.need, error.value.render()
