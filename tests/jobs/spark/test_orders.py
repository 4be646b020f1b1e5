"""Orders by several expressions, ranks with ties, distinct values and unions of one view, on rows that are no stream: it costs less."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, interval_join
from penstock.jobs.blocks.windows import aggregate, same_window, top, tumbling
from penstock.jobs.blocks.windows.ordering import ordered_by
from penstock.jobs.sql.tokens import Script
from penstock.jobs.sql_views.declaring import result
from penstock.jobs.stream.streams import TIME, Stream
from tests.jobs.spark.blocks import at

# Type -> values in ascending order.
VALUES: Mapping[str, list[Any]] = {
    "boolean": [None, False, True],
    "bigint": [None, -(2**63), -1, 0, 2**63 - 1],
    "decimal(4,1)": [None, Decimal("-1.5"), Decimal(0), Decimal("99.9")],
    "double": [None, float("-inf"), -1.5, 0.0, 1e300, float("inf"), float("nan")],
    "string": [None, "", "a", "a\u0000", "ab", "b", "é", "\U0001f600"],
    "binary": [None, b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"],
    "date": [None, date(1960, 1, 1), date(1970, 1, 1), date(2025, 1, 1)],
    "timestamp": [None, datetime(1960, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    "timestamp_ntz": [None, datetime(1960, 1, 1), datetime(2025, 10, 26, 2, 30), datetime(2025, 10, 26, 2, 30, 0, 1)],  # noqa: DTZ001
}


@pytest.fixture
def clicks(session: SparkSession) -> Stream:
    rows = [("1", "ann", "home", 1), ("2", "ann", "cart", 2), ("3", "bob", "home", 3), ("4", "eve", "home", 3), ("5", "eve", "pay", None)]
    columns = f"{TIME} timestamp, user string, page string, n int"
    return Stream(session.createDataFrame([(at(time), *rest) for time, *rest in rows], columns), timed=True)


def found(stream: Stream, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in stream.frame.collect()), key=repr)


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_that_is_turned_around_has_the_opposite_order(session: SparkSession, kind: str) -> None:
    values = VALUES[kind]
    frame = session.createDataFrame([(number, value) for number, value in enumerate(values)], f"number int, value {kind}")
    first, second = ordered_by(frame, ["1", "value"], ["asc", "desc"])
    (row,) = frame.agg(F.sort_array(F.collect_list(F.struct(first, second, "number"))).alias("rows")).collect()
    assert [one.number for one in row.rows] == list(range(len(values)))[::-1]


def test_a_type_without_an_opposite_is_rejected(session: SparkSession, clicks: Stream) -> None:
    with pytest.raises(ValueError, match=r"an order by array<string>"):
        top(clicks, 1, by=["n", "array(page)"], order=["desc", "asc"], window=tumbling("1m"))
    wrongs: list[dict[str, Any]] = [{"order": ["desc"]}, {"order": "up"}, {"ties": "all"}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"orders|must be"):
            top(clicks, 1, by=["n", "page"], window=tumbling("1m"), **wrong)


def test_ranks_of_rows_that_are_equal_in_their_order(clicks: Stream) -> None:
    ranked = {ties: top(clicks, 2, by="n", window=tumbling("1m"), ties=ties) for ties in ("rank", "dense_rank")}
    assert found(ranked["rank"], "rank", "user") == [(1, "bob"), (1, "eve")]
    assert found(ranked["dense_rank"], "rank", "user") == [(1, "bob"), (1, "eve"), (2, "ann")]
    with_map = clicks.select(user="user", n="n", tags="map(page, n)")
    assert found(top(with_map, 3, by="n", order="asc", window=tumbling("1m"), ties="rank"), "rank", "n") == [(1, 1), (2, 2), (3, 3), (3, 3)]
    several = top(clicks, 3, by=["n", "user"], order=["desc", "asc"], window=tumbling("1m"))
    assert found(several, "rank", "user", "page") == [(1, "bob", "home"), (2, "eve", "home"), (3, "ann", "cart")]


def test_aggregates_of_distinct_values_are_those_of_spark(clicks: Stream) -> None:
    aggregates: dict[str, Any] = {
        "c": "count(DISTINCT page)", "s": "sum(distinct n)", "a": "avg(DISTINCT n)", "x": "max(DISTINCT n) - min(DISTINCT n)",
        "p": "count(DISTINCT page, n) FILTER (WHERE user <> 'bob')", "t": "count(DISTINCT upper(concat(page, ',')))",
        "d": "sum(DISTINCT CAST(n AS DECIMAL(5, 2)))", "e": "avg(DISTINCT CAST(n AS DECIMAL(5, 2)))",
        "none": "sum(DISTINCT n - n) FILTER (WHERE n > 9)",
    }  # fmt: skip
    ours = aggregate(clicks, tumbling("1m"), **aggregates).frame
    theirs = clicks.frame.agg(*(F.expr(text).alias(name) for name, text in aggregates.items()))
    assert [ours.schema[name].dataType for name in aggregates] == [theirs.schema[name].dataType for name in aggregates]
    assert ours.select(*aggregates).collect() == theirs.collect()
    lists = aggregate(clicks, tumbling("1m"), l="collect_list(DISTINCT n)").frame.collect()
    assert lists[0].l == [1, 2, 3]
    with pytest.raises(ValueError, match=r"stddev\(DISTINCT \.\.\.\) is not supported"):
        aggregate(clicks, tumbling("1m"), l="stddev(DISTINCT n)")


def test_parts_of_a_union_that_select_from_one_view_read_it_once(session: SparkSession, clicks: Stream) -> None:
    parts = ["SELECT user AS what FROM clicks", "SELECT page AS what FROM clicks", "SELECT 'all' AS what FROM clicks"]
    job: Any = type("Declared", (), {"session": session, "connections": {}, "table": None, "source": None})()
    union = result(Script(Path("app.sql"), " UNION ALL ".join(parts)), job, {"clicks": clicks})
    assert union.frame._jdf.queryExecution().analyzed().toString().count("LogicalRDD") == 1
    users, pages = [("ann",), ("bob",), ("eve",)], [("home",), ("cart",), ("pay",)]
    assert set(found(union, "what")) == {*users, *pages, ("all",)} and union.frame.count() == 15


def test_each_row_has_bounds_of_its_own_within_those_of_the_join(session: SparkSession, clicks: Stream) -> None:
    times = clicks.select(user="user", n="n", until=f"{TIME} + n * INTERVAL '1' SECOND")
    left, right = Side("l", times, "user"), Side("r", clicks, "user")
    joined = interval_join(left, right, lower="0", upper="1m", between=("l.until", "until + INTERVAL '5' SECOND"), how="left")
    assert [Row(l=row.l.n, r=row.r.n if row.r else None) for row in joined.frame.orderBy("l.n", F.col("l.user")).collect()] == [
        Row(l=None, r=None), Row(l=1, r=2), Row(l=2, r=None), Row(l=3, r=None), Row(l=3, r=None),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"between n: must be a TIMESTAMP, is int"):
        interval_join(left, right, lower="0", upper="1m", between=("n", "until"))


def test_a_window_of_rows_without_bounds_is_rejected(clicks: Stream) -> None:
    with pytest.raises(ValueError, match="the rows lack window_start and window_end"):
        aggregate(clicks, same_window(), n="count(*)")
    counts = aggregate(clicks, tumbling("2s"), keys=["user"], n="count(*)")
    assert found(aggregate(counts, same_window(), most="max(n)"), "most") == [(1,), (1,), (2,)]
