"""Joins other than the inner and left interval joins, on handwritten micro-batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.blocks.joins import (
    Group,
    Side,
    broadcast_join,
    co_group,
    csv_file,
    interval_join,
    json_lines_file,
    regular_join,
    table_join,
    temporal_join,
    union,
    window_join,
)
from penstock.jobs.blocks.joins.group_keys import group_keys
from penstock.jobs.blocks.joins.in_order import as_text, from_text
from penstock.jobs.blocks.windows import aggregate, session, tumbling
from penstock.jobs.errors import TableFileUnread
from penstock.jobs.stream.streams import Stream, Tag
from penstock.jobs.stream.task_errors import of_a_task
from tests.jobs.spark.blocks import Input, Ran, at, row, run, same
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings
from tests.jobs.spark.task_properties import ALL, local_properties

Rows = Sequence[Mapping[str, Any]]
# A row with a separate key that advances the watermark.
END = "59:00"


def _cut(rows: Rows, *ends: int) -> list[Rows]:
    """Rows in micro-batches that end before these positions."""
    return [rows[first:last] for first, last in pairwise([0, *ends, len(rows)])]


def _pairs(ran: Ran, left: str = "l", right: str = "r") -> list[dict[str, Any]]:
    """Names of the rows of each pair, and all other columns."""
    return [
        {**one, left: None if one[left] is None else one[left]["n"], right: None if one[right] is None else one[right]["n"]}
        for one in ran.rows
    ]


def _sides(streams: Mapping[str, Stream], **more: Any) -> tuple[Side, Side]:
    return Side("l", streams["l"], "k", **more), Side("r", streams["r"], "k", **more)


def _two(left: Sequence[Rows], right: Sequence[Rows], schema: str = "k STRING, n STRING", **more: Any) -> dict[str, Input]:
    return {"l": Input(schema, left, **more), "r": Input(schema, right, **more)}


def test_a_full_interval_join_emits_unmatched_rows_of_both_sides_once(surroundings: Surroundings) -> None:
    left = [[row("10", k="a", n="l10"), row("20", k="b", n="l20")], [row("30", k="a", n="l30")], [row(END, k="end", n="end")]]
    right = [[row("12", k="a", n="r12"), row("14", k="c", n="r14")], [row("28", k="a", n="r28")], [row(END, k="end", n="end")]]
    join = lambda streams: interval_join(*_sides(streams), lower="-5s", upper="5s", how="full")  # noqa: E731
    same(
        _pairs(run(surroundings, _two(left, right), join)),
        [
            {"l": "l10", "r": "r12"},
            {"l": "l20", "r": None},
            {"l": "l30", "r": "r28"},
            {"l": None, "r": "r14"},
            {"l": "end", "r": "end"},
        ],
    )


def test_early_results_follow_an_inner_interval_join(surroundings: Surroundings) -> None:
    inputs = _two([[row("1", k="a", n="l1")], [row("2", k="a", n="l2")]], [[row("1", k="a", n="r1")], []], bound_s=10)

    def build(streams: Mapping[str, Stream]) -> Stream:
        pairs = interval_join(*_sides(streams), lower="-5s", upper="5s").select(k="l.k")
        return aggregate(pairs, tumbling("10s"), keys=["k"], emit="updates", n="count(*)")

    assert [[one["n"] for one in batch] for batch in run(surroundings, inputs, build).batches if batch] == [[1], [2]]


def test_a_window_join_pairs_rows_of_the_same_window_and_emits_them_when_the_window_ends(surroundings: Surroundings) -> None:
    left = [
        [row("1", k="a", n="l1"), row("9.999", k="a", n="l9")],
        [row("10", k="a", n="l10"), row("2", k=None, n="null")],
        [row("12", k="b", n="l12")],
    ]
    right = [[row("10", k="a", n="r10")], [row("3", k="a", n="r3"), row("2", k=None, n="null")], [row(END, k="end", n="end")]]
    inputs = _two([*left, [row(END, k="x", n="x")]], [*right, []], bound_s=10)
    ran = run(surroundings, inputs, lambda streams: window_join(*_sides(streams), tumbling("10s"), how="full"))
    first, second = {"window_start": at("0"), "window_end": at("10")}, {"window_start": at("10"), "window_end": at("20")}
    same(
        _pairs(ran),
        [
            {"l": "l1", "r": "r3", **first},
            {"l": "l9", "r": "r3", **first},
            {"l": "null", "r": None, **first},
            {"l": None, "r": "null", **first},
            {"l": "l10", "r": "r10", **second},
            {"l": "l12", "r": None, **second},
        ],
    )
    assert not any(ran.batches[:3]), "before the windows' end nothing is told"
    inner = run(surroundings, inputs, lambda streams: window_join(*_sides(streams), tumbling("10s")))
    assert sorted((one["l"], one["r"]) for one in _pairs(inner)) == [("l1", "r3"), ("l10", "r10"), ("l9", "r3")]
    assert inner.events[-1]["totalTags"][Tag.UNMATCHED] == 3


def _names(group: Group) -> Iterator[dict[str, Any]]:
    yield {"k": group.key, "l": [one.n for one in group.left], "r": [one.n for one in group.right], "s": (group.end - group.start).seconds}


# Spark can't compare maps or variants, so rows with one are put in order by their text.
@pytest.mark.parametrize("schema", ["k STRING, n STRING", "k STRING, n STRING, m MAP<STRING, STRING>"])
def test_a_co_group_gives_a_function_the_rows_of_a_key_and_session_in_the_order_of_time(surroundings: Surroundings, schema: str) -> None:
    left = [[row("5", k="a", n="l5"), row("1", k="a", n="l1")], [row("20", k="a", n="l20")], [row(END, k="x", n="x")]]
    right = [[row("3", k="a", n="r3"), row("4", k="b", n="r4")], [row("9", k="a", n="r9")], [row(END, k="x", n="x")]]
    group = lambda streams: co_group(  # noqa: E731
        *_sides(streams), session("6s"), _names, output="k STRING, l ARRAY<STRING>, r ARRAY<STRING>, s INT"
    )
    ran = run(surroundings, _two(left, right, schema, bound_s=20), group)
    same(
        [{name: one[name] for name in ("k", "l", "r", "s", "window_start")} for one in ran.rows],
        [
            {"k": "a", "l": ["l1", "l5"], "r": ["r3", "r9"], "s": 14, "window_start": at("1")},
            {"k": "b", "l": [], "r": ["r4"], "s": 6, "window_start": at("4")},
            {"k": "a", "l": ["l20"], "r": [], "s": 6, "window_start": at("20")},
        ],
    )


def test_a_temporal_join_uses_the_version_valid_at_that_time_in_any_order_of_arrival(surroundings: Surroundings) -> None:
    rates = [
        row("0", k="usd", n="r0"),
        row("10", k="usd", n="r10"),
        row("20", k="usd", n=None, _deleted=True),
        row("30", k="usd", n="r30"),
        row("5", k="eur", n="e5"),
    ]
    orders = [
        row("9.999", k="usd", n="o9"),
        row("10", k="usd", n="o10"),
        row("25", k="usd", n="o25"),
        row("31", k="usd", n="o31"),
        row("4", k="eur", n="too early"),
        row("6", k=None, n="no key"),
    ]
    expected: list[dict[str, Any]] = [
        {"l": "o9", "r": "r0"},
        {"l": "o10", "r": "r10"},
        {"l": "o25", "r": None},
        {"l": "o31", "r": "r30"},
        {"l": "too early", "r": None},
        {"l": "no key", "r": None},
    ]
    last = [row(END, k="x", n="x")]
    left, right = (
        [[orders[5], orders[3]], orders[:3], [*orders[4:5], *last], []],
        [rates[3:], rates[:3], last, [row("29", k="usd", n="late")]],
    )
    inputs = {"l": Input("k STRING, n STRING", left, bound_s=60), "r": Input("k STRING, n STRING, _deleted BOOLEAN", right, bound_s=60)}
    ran = run(surroundings, inputs, lambda streams: temporal_join(*_sides(streams), how="left"))
    same(_pairs(ran), expected)
    assert sorted(moment for batch in ran.times for moment in batch if moment) == sorted(at(one["_at"]) for one in orders)
    assert len(ran.side_outputs[Tag.LATE]) == 1


def _plain_versions(left: Rows, right: Rows) -> list[dict[str, Any]]:
    """The pairs of a temporal join by two loops."""
    pairs = []
    for one in left:
        valid = [other for other in right if other["k"] == one["k"] and at(other["_at"]) <= at(one["_at"])]
        newest = max(valid, key=lambda other: (other["_at"], other["v"]), default=None)
        pairs.append({"l": one["n"], "r": None if newest is None or newest["_deleted"] else newest["n"]})
    return pairs


ORDERS = "o STRING, c STRING, n STRING, _deleted BOOLEAN"
CUSTOMERS = "c STRING, n STRING, _deleted BOOLEAN"


def _order(time: str, o: str, c: str | None, n: str | None, deleted: bool = False) -> dict[str, Any]:
    return row(time, o=o, c=c, n=n, _deleted=deleted)


def _customer(time: str, c: str, n: str | None, deleted: bool = False) -> dict[str, Any]:
    return row(time, c=c, n=n, _deleted=deleted)


def _tables(streams: Mapping[str, Stream]) -> tuple[Side, Side]:
    return Side("l", streams["l"], "c", unique="o"), Side("r", streams["r"], "c", unique="c")


CHANGES_OF_ORDERS = [
    _order("1", "o1", "anna", "one"),
    _order("2", "o2", "anna", "two"),
    _order("3", "o3", None, "nobody"),
    _order("6", "o1", "anna", "one more"),
    _order("8", "o2", "bert", "two"),
    _order("9", "o1", None, None, deleted=True),
]
CHANGES_OF_CUSTOMERS = [
    _customer("4", "anna", "A"),
    _customer("5", "bert", "B"),
    _customer("7", "anna", "A2"),
    _customer("10", "bert", None, deleted=True),
]
CHANGES = [
    ("1", "+I", "one", None),
    ("2", "+I", "two", None),
    ("3", "+I", "nobody", None),
    ("4", "-D", "one", None),
    ("4", "-D", "two", None),
    ("4", "+I", "one", "A"),
    ("4", "+I", "two", "A"),
    ("6", "-U", "one", "A"),
    ("6", "+U", "one more", "A"),
    ("7", "-U", "one more", "A"),
    ("7", "-U", "two", "A"),
    ("7", "+U", "one more", "A2"),
    ("7", "+U", "two", "A2"),
    ("8", "-D", "two", "A2"),
    ("8", "+I", "two", "B"),
    ("9", "-D", "one more", "A2"),
    ("10", "-D", "two", "B"),
    ("10", "+I", "two", None),
]


def _changes(ran: Ran) -> list[dict[str, Any]]:
    moments = [moment for batch in ran.times for moment in batch]
    return [{**pair, "at": moment} for pair, moment in zip(_pairs(ran), moments, strict=True)]


@pytest.mark.parametrize("late", [False, True])
def test_a_regular_join_emits_each_change_of_two_tables_in_order_for_any_micro_batches(surroundings: Surroundings, late: bool) -> None:
    """Late: the changes of the two tables arrive in several micro-batches, some after those that they precede."""
    # An order that moves on within one event time exists only under its last key.
    moves = [_order("8.5", "o4", "anna", "four"), _order("8.5", "o4", "bert", "four")]
    changes = [("8.5", "+I", "four", "A2"), ("8.5", "-D", "four", "A2"), ("8.5", "+I", "four", "B")]
    then = [("10", "-D", "four", "B"), ("10", "+I", "four", None)]
    expected = [{"at": at(time), "_op": op, "l": one, "r": other} for time, op, one, other in [*CHANGES, *changes, *then]]
    orders, customers = [*CHANGES_OF_ORDERS, *moves], CHANGES_OF_CUSTOMERS
    left = [orders[:2], orders[2:]] if late else [orders]
    right = [customers[2:], customers[:2]] if late else [customers]
    inputs = {
        "l": Input(ORDERS, [*left, [_order(END, "x", "x", "x", deleted=True)]], bound_s=60),
        "r": Input(CUSTOMERS, [*right, [_customer(END, "x", "x", deleted=True)]], bound_s=60),
    }
    same(_changes(run(surroundings, inputs, lambda streams: regular_join(*_tables(streams), how="left"))), expected)


@pytest.mark.parametrize("as_columns", [False, True], ids=["sql", "column"])
def test_of_rows_with_one_event_time_the_last_by_order_is_valid(surroundings: Surroundings, as_columns: bool) -> None:
    versions = [[row("1", k="a", n=3), row("1", k="a", n=1), row("1", k="a", n=2)], [row(END, k="x", n=0)]]
    inputs = _two([[row("2", k="a", n=0)], [row(END, k="x", n=0)]], versions, "k STRING, n INT")

    def build(streams: Mapping[str, Stream]) -> Stream:
        order = -F.col("n") if as_columns else "-n"
        return temporal_join(Side("l", streams["l"], "k"), Side("r", streams["r"], "k", order=order))

    assert {"l": 0, "r": 1} in _pairs(run(surroundings, inputs, build))


def _payments_and_rules() -> dict[str, Input]:
    payments = [row("1", k="a", n=10), row("6", k="a", n=10), row("7", k="b", n=99), row("8", k="a", n=99), row("9", k=None, n=99)]
    rules = [
        row("0", k="a", n=50, _deleted=False),
        row("5", k="b", n=5, _deleted=False),
        row("7.5", k="b", n=None, _deleted=True),
    ]
    return {
        "l": Input("k STRING, n INT", [payments[2:], payments[:2], [row(END, k="x", n=0)]], bound_s=60),
        "r": Input("k STRING, n INT, _deleted BOOLEAN", [rules, [], [row(END, k="x", n=0, _deleted=True)]], bound_s=60),
    }


@pytest.mark.on_executors("broadcast_join")
def test_a_broadcast_join_holds_rows_against_a_small_table_by_key(surroundings: Surroundings) -> None:
    by_key = run(surroundings, _payments_and_rules(), lambda streams: broadcast_join(*_sides(streams)))
    same(_pairs(by_key), [{"l": 10, "r": 50}, {"l": 10, "r": 50}, {"l": 99, "r": 5}, {"l": 99, "r": 50}])


@pytest.mark.parametrize("on", ["l.n > r.n", lambda payment, rule: payment.n > rule.n], ids=["sql", "columns"])
def test_a_broadcast_join_holds_rows_against_a_small_table_by_a_condition(surroundings: Surroundings, on: Any) -> None:
    above = run(surroundings, _payments_and_rules(), lambda streams: broadcast_join(*_sides(streams), on=on, how="left"))
    expected = [(10, None), (10, 5), (99, 50), (99, 5), (99, 50), (99, 50)]
    same(_pairs(above), [{"l": one, "r": other} for one, other in expected])


def test_the_copies_of_a_table_are_distributed_round_robin_among_the_state_partitions(surroundings: Surroundings) -> None:
    keys = [surroundings.session.range(1).select(F.hash(F.lit(key)).alias("hash")) for key in group_keys(40)]
    assert [one["hash"] for one in reduce(DataFrame.unionAll, keys).collect()] == list(range(40))


def test_a_file_is_read_again_for_every_micro_batch_and_its_earlier_content_on_a_replay(surroundings: Surroundings) -> None:
    key = f"{surroundings.folder.name}/names"

    def put(suffix: str, text: str) -> str:
        surroundings.s3.put_object(Bucket=OUTPUT, Key=f"{key}.{suffix}", Body=text.encode())
        return f"s3://{OUTPUT}/{key}.{suffix}"

    uri = put("csv", "k,name,n\na,Anna,1\nb,Bert,\n")
    stay = put("jsonl", json.dumps({"k": "a", "name": "Anna", "n": 1}) + "\n")
    inputs = {"l": Input("k STRING", [[row("1", k="a"), row("2", k="c"), row(None, k="a")], [row("3", k="b")]])}

    def named(streams: Mapping[str, Stream]) -> Stream:
        return table_join(streams["l"], "names", csv_file(uri), "k STRING, name STRING, n INT", on="k", how="left")

    name = surroundings.folder.name.replace("_", "-")
    first = run(surroundings, inputs, named, name=name)
    same(first.rows, [{"k": "a", "name": "Anna", "n": 1}, {"k": "c", "name": None, "n": None}, {"k": "b", "name": "Bert", "n": None}])
    assert len(first.side_outputs[Tag.QUARANTINED]) == 1
    put("csv", "k,name,n\na,Antonia,2\n")
    again = run(surroundings, {"l": Input("k STRING", [[row("4", k="a")]])}, named, name=name)
    same(again.rows, [{"k": "a", "name": "Antonia", "n": 2}])
    # The micro-batch is not committed, as after a crash, and runs again.
    put("csv", "k,name,n\na,Alma,3\n")
    surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=f"{name}/1/commits/2")
    same(run(surroundings, {"l": Input("k STRING", [])}, named, name=name).rows, again.rows)
    inner = run(
        surroundings, inputs, lambda streams: table_join(streams["l"], "n", json_lines_file(stay), "k STRING, name STRING, n INT", on="k")
    )
    same(inner.rows, [{"k": "a", "name": "Anna", "n": 1}])
    assert inner.events[-1]["totalTags"] == {Tag.DATA: 1, Tag.QUARANTINED: 1, Tag.UNMATCHED: 2}
    gone = f"s3://{OUTPUT}/{key}.gone"
    batch = Stream(surroundings.session.sql("select 'a' as k, cast(null as timestamp) as _time"), timed=False)
    # Whichever class Spark wraps it in: the driver recognizes it by its text.
    with local_properties(surroundings.session, ALL), pytest.raises(Exception, match="JOB-073") as raised:
        table_join(batch, "g", json_lines_file(gone), "k STRING, name STRING", on="k").frame.collect()
    error = of_a_task(raised.value)
    assert isinstance(error, TableFileUnread) and (error.path, error.given) == (gone, "NoSuchKey")


def test_streams_that_do_not_fit_are_reported_with_their_differences(surroundings: Surroundings) -> None:
    """No query is started: a block rejects an invalid call at once."""
    spark = surroundings.session

    def stream(schema: str, *, timed: bool = True) -> Stream:
        frame = spark.createDataFrame([], f"{schema}, _time TIMESTAMP")
        return Stream(frame, timed=timed)

    text, number, untimed = stream("k STRING, n INT"), stream("k BIGINT, n INT"), stream("k STRING, n INT", timed=False)
    deletes = stream("k STRING, _deleted BOOLEAN")
    odd = stream("k STRING, m MAP<INT, STRING>")
    a, b = Side("a", text, "k"), Side("b", text, "k")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: temporal_join(a, Side("b", number, "k")), "key types differ: a has string, b has bigint"),
        (lambda: temporal_join(a, Side("a", text, "k")), "both sides are named a"),
        (lambda: temporal_join(a, Side("b", text, "q")), "b has no field q; it has k, n"),
        (lambda: temporal_join(a, Side("b", untimed, "k")), "b has no event time"),
        (lambda: window_join(a, Side("b", untimed, "k"), tumbling("5s")), "b has no event time"),
        (lambda: regular_join(a, Side("b", deletes, "k")), "b contains deletions, but no unique fields"),
        (lambda: regular_join(a, b, ttl="soon"), 'ttl = "soon": expected'),
        (lambda: regular_join(a, b, ttl=0), "ttl = 0: must be greater than 0"),
        (lambda: temporal_join(a, Side("b", odd, "k")), "b contains a map with keys that are not STRING"),
        (lambda: broadcast_join(a, b, copies=0), "copies = 0: must be greater than 0"),
        (
            lambda: broadcast_join(a, Side("b", text, "k", unique="n")),
            'b is unique by n, but a join without a condition uses its key, k: remove unique, or join with on="a.k = b.k"',
        ),
        (lambda: union(text, number), "stream 2 differs from the first one in k"),
        (lambda: union(text, untimed), "stream 2 has no event time, unlike the first one"),
        (lambda: table_join(text, "t", list, "k STRING, n INT", on="k"), "the stream also has n"),
        (lambda: table_join(text, "t", list, "k STRING", on="q"), "q must be a field of both"),
    ]
    for call, said in calls:
        with pytest.raises(ValueError, match=re.escape(said)):
            call()


def test_rows_come_out_of_the_state_as_they_went_in(surroundings: Surroundings) -> None:
    values = {
        "s": r"'a\u2028\"\\'",
        "d": "12345678901234567.89BD",
        "f": "double('NaN')",
        "g": "0.1D",
        "h": "1.1F",
        "b": "X'00FF'",
        "l": "9007199254740993L",
        "t": "timestamp'2025-03-30T01:30:00.123456Z'",
        "n": "timestamp_ntz'2025-03-30T02:30:00.000001'",
        "o": "date'1969-12-31'",
        "e": "array(named_struct('x', 1), null)",
        "m": "map('k', timestamp'1969-12-31T23:59:59.999999Z')",
        "z": "cast(null as int)",
        "q": "true",
    }
    text = "named_struct(" + ", ".join(f"'{name}', {value}" for name, value in values.items()) + ")"
    frame = surroundings.session.range(1).selectExpr(f"{text} as v")
    of = frame.schema["v"].dataType
    assert isinstance(of, StructType)
    again = frame.select(F.col("v"), from_text(as_text(F.col("v"), of, "v"), of).alias("w"))
    # Maps can't be compared in SQL, and NaN not in Python; their text can.
    shown = again.selectExpr(
        "to_json(v.m) = to_json(w.m) as maps", *(f"v.{name} <=> w.{name} as {name}" for name in of.names if name != "m")
    )
    assert {name for name, equal in shown.collect()[0].asDict().items() if not equal} == set()
