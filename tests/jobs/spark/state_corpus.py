"""A corpus of changes of queries with state: from one query to another, which may or may not go on with its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Query = Callable[[DataFrame], DataFrame]


def _per(*keys: str, **aggregates: str) -> Query:
    """An aggregation, of expressions in SQL."""
    named = aggregates or {"rows": "count(*)"}
    return lambda rows: rows.groupBy(*map(F.expr, keys)).agg(*(F.expr(text).alias(name) for name, text in named.items()))


def _joined(on: str, how: str = "inner", *columns: str) -> Query:
    def query(rows: DataFrame) -> DataFrame:
        right = rows.select(*(F.col(name).alias(f"{name}2") for name in rows.columns))
        return rows.join(right, F.expr(f"{on} AND at2 BETWEEN at - INTERVAL 1 MINUTE AND at + INTERVAL 1 MINUTE"), how).select(
            *(columns or ("user", "n2"))
        )

    return query


# Without types, which would make them functions of pandas.
def _same(n):  # type: ignore[no-untyped-def]
    return n


def _less(n):  # type: ignore[no-untyped-def]
    return n - 1


def _by_functions(*functions: Callable[..., Any]) -> Query:
    """Sums of functions in Python."""
    return lambda rows: rows.groupBy("user").agg(*(F.sum(F.udf(one, "long")("n")).alias(one.__name__) for one in functions))


def _few(rows: DataFrame) -> DataFrame:
    """A lambda function of Python's, whose parameters Spark numbers."""
    return rows.groupBy("user").agg(F.collect_list(F.transform(F.array("n"), lambda x: x + 1)))


def _counting(width: int) -> Callable[[Any, Iterator[pd.DataFrame], Any], Iterator[pd.DataFrame]]:
    """Counts the rows of a key, in each column of its state."""

    def count(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        rows = sum(len(frame) for frame in frames)
        state.update(tuple(before + rows for before in (state.get if state.exists else (0,) * width)))
        yield pd.DataFrame({"user": [f"{key[0]}: {state.get}"]})

    return count


def _groups(key: str, state: str) -> Query:
    return lambda rows: rows.groupBy(key).applyInPandasWithState(
        _counting(state.count(",") + 1), "user string", state, "update", "NoTimeout"
    )


_TEN = "window(at, '10 seconds')"
BASE: Query = _per(_TEN, "user", total="sum(n)", least="min(m)")
_JOIN = _joined("user = user2")


def _once(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicatesWithinWatermark(["user"])


def _twice(first: Query, second: str) -> Query:
    """An aggregation per minute of another one."""
    return lambda rows: _per("window(at, '1 minute')", rows=second)(_at_window(first(rows)))


def _at_window(rows: DataFrame) -> DataFrame:
    return rows.select(F.window_time("window").alias("at"), "user", "total")


FITS: dict[str, tuple[Query, Query]] = {
    "nothing": (BASE, BASE),
    "another name after an aggregation": (BASE, lambda rows: BASE(rows).withColumnRenamed("total", "sum")),
    "an aggregate's name": (BASE, _per(_TEN, "user", all="sum(n)", least="min(m)")),
    "a filter before": (BASE, lambda rows: BASE(rows.where("n > 5"))),
    "a filter after": (BASE, lambda rows: BASE(rows).where("total > 5")),
    "a column that is computed in another way": (BASE, lambda rows: BASE(rows.withColumn("n", F.col("n") * 2))),
    "a column after": (BASE, lambda rows: BASE(rows).withColumn("half", F.col("total") / 2)),
    "an aggregate twice": (BASE, _per(_TEN, "user", total="sum(n)", least="min(m)", again="sum(n)")),
    "a column that a join does not need": (_JOIN, lambda rows: _JOIN(rows.withColumn("more", F.lit(1)))),
    "a filter before a join": (_JOIN, lambda rows: _JOIN(rows.where("n > 5"))),
    "a filter of both sides after a join": (
        _joined("user = user2", "inner", "user", "n", "n2"),
        lambda rows: _joined("user = user2", "inner", "user", "n", "n2")(rows).where("n > n2"),
    ),
    "a filter before deduplication": (_once, lambda rows: _once(rows.where("n > 5"))),
    "stateless steps alone": (lambda rows: rows.select("n"), lambda rows: rows.where("n > 1")),
    "a lambda function before": (_few, lambda rows: _few(rows.where(F.exists(F.array("n"), lambda x: x > 0)))),
}
# Where another column of rows of the same state is the team's decision: the query whose rows are right from the change on, with ``x`` 0
# for all rows before it.
RIGHT: dict[str, Query] = {
    "a filter before": lambda rows: BASE(rows.where("x = 0 OR n > 5")),
    "a column that is computed in another way": lambda rows: BASE(rows.withColumn("n", F.expr("IF(x = 0, n, n * 2)"))),
    "a filter before deduplication": lambda rows: _once(rows.where("x = 0 OR n > 5")),
    "a filter before a join": lambda rows: _JOIN(rows.where("x = 0 OR n > 5")),
    "a lambda function before": lambda rows: _few(rows.where(F.expr("x = 0") | F.exists(F.array("n"), lambda x: x > 0))),
}
DIFFERS: dict[str, tuple[Query, Query, str]] = {
    "an aggregate added": (BASE, _per(_TEN, "user", total="sum(n)", least="min(m)", rows="max(x)"), "value max(x) instead of none"),
    "an aggregate removed": (BASE, _per(_TEN, "user", total="sum(n)"), "value none instead of min(m)"),
    "an aggregate that nothing needs any more": (BASE, lambda rows: BASE(rows).drop("least"), "value none instead of min(m)"),
    "an aggregate of another column": (BASE, _per(_TEN, "user", total="sum(m)", least="min(m)"), "value sum(m) instead of sum(n)"),
    "another aggregate": (BASE, _per(_TEN, "user", total="sum(n)", least="max(m)"), "value max(m) instead of min(m)"),
    "aggregates swapped": (
        BASE,
        _per(_TEN, "user", least="min(m)", total="sum(n)"),
        "values in the order min(m), sum(n) instead of sum(n), min(m)",
    ),
    "another type of an aggregate": (
        BASE,
        lambda rows: BASE(rows.withColumn("m", F.col("m").cast("int"))),
        "value min(m) int instead of bigint",
    ),
    "an aggregate's filter": (
        _per("user", total="sum(n) FILTER (WHERE user = 'user 0')"),
        _per("user", total="sum(n) FILTER (WHERE user = 'user 1')"),
        "value sum(n) FILTER (WHERE (user = user 1)) instead of sum(n) FILTER (WHERE (user = user 0))",
    ),
    "functions in Python swapped": (
        _by_functions(_same, _less),
        _by_functions(_less, _same),
        "order",
    ),
    "a key added": (BASE, _per(_TEN, "user", "shop", total="sum(n)", least="min(m)"), "key shop instead of none"),
    "a key removed": (BASE, _per(_TEN, total="sum(n)", least="min(m)"), "key none instead of user"),
    "a key of the same type": (BASE, _per(_TEN, "shop", total="sum(n)", least="min(m)"), "key shop instead of user"),
    "keys swapped": (
        _per("user", "shop"),
        _per("shop", "user"),
        "keys in the order shop, user instead of user, shop",
    ),
    "a key's type": (BASE, lambda rows: BASE(rows.withColumn("user", F.col("n"))), "key user bigint instead of string"),
    "a larger window": (BASE, _per("window(at, '20 seconds')", "user", total="sum(n)", least="min(m)"), "window window "),
    "a sliding window": (BASE, _per("window(at, '10 seconds', '5 seconds')", "user", total="sum(n)", least="min(m)"), "window window "),
    "another slide": (_per("window(at, '10 seconds', '5 seconds')"), _per("window(at, '10 seconds', '2 seconds')"), "window window "),
    "a session's gap": (
        _per("session_window(at, '5 seconds')", "user"),
        _per("session_window(at, '6 seconds')", "user"),
        "window session_window ",
    ),
    "sessions for windows": (_per(_TEN, "user"), _per("session_window(at, '5 seconds')", "user"), "key session_window instead of window"),
    "a window removed": (_per(_TEN, "user"), _per("user"), "key none instead of window"),
    "an outer join": (_JOIN, _joined("user = user2", "left"), "join LeftOuter instead of Inner"),
    "a join's key": (_JOIN, _joined("shop = shop2", "inner", "user", "n2"), "key shop, shop2 instead of user, user2"),
    "a join's second key": (_JOIN, _joined("user = user2 AND shop = shop2"), "key shop, shop2 instead of none"),
    "a column that is needed after a join": (_JOIN, _joined("user = user2", "inner", "user", "n2", "m"), "value left.m instead of none"),
    "a column that is needed no more": (_JOIN, _joined("user = user2", "inner", "user"), "value none instead of right.n2"),
    "another column of a join": (_JOIN, _joined("user = user2", "inner", "user", "m2"), "value right.m2 instead of right.n2"),
    "a filter after a join, of one side": (
        _JOIN,
        lambda rows: _JOIN(rows).where("n2 > 1"),
        "filters after it, which Spark moves before it, ",
    ),
    "a join's condition on one side": (_JOIN, _joined("user = user2 AND n2 > 1"), "filters after it, which Spark moves before it, "),
    "a filter after an aggregation, of a key": (
        BASE,
        lambda rows: BASE(rows).where("user <> 'user 0'"),
        "filters after it, which Spark moves before it, NOT (cast(value as string) = user 0) instead of none",
    ),
    "a key of deduplication": (_once, lambda rows: rows.dropDuplicatesWithinWatermark(["shop"]), "key shop instead of user"),
    "a further key of deduplication": (
        _once,
        lambda rows: rows.dropDuplicatesWithinWatermark(["user", "shop"]),
        "key shop instead of none",
    ),
    "deduplication without a limit": (_once, lambda rows: rows.dropDuplicates(["user"]), "Deduplicate"),
    "an operator inserted": (BASE, lambda rows: BASE(_once(rows)), "DeduplicateWithinWatermark, Aggregate"),
    "an operator removed": (lambda rows: BASE(_once(rows)), BASE, "Aggregate"),
    "operators swapped": (
        lambda rows: BASE(_once(rows)),
        lambda rows: _at_window(BASE(rows)).dropDuplicatesWithinWatermark(["user"]),
        "Agg",
    ),
    "all state removed": (BASE, lambda rows: rows.select("n"), "no stateful operators"),
    "the second of two aggregations": (_twice(BASE, "count(*)"), _twice(BASE, "sum(total)"), "value sum(total) instead of count(1)"),
    "the first of two aggregations": (
        _twice(BASE, "sum(total)"),
        _twice(_per(_TEN, "user", total="sum(m)"), "sum(total)"),
        "value sum(m) instead of sum(n)",
    ),
    "the state of a function of groups": (_groups("user", "n bigint"), _groups("user", "n bigint, m bigint"), "value state struct<"),
    "the key of a function of groups": (_groups("user", "n bigint"), _groups("shop", "n bigint"), "key shop instead of user"),
}
