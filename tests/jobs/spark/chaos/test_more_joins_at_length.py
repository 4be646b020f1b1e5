"""Joins behind and beside each other, and over a changed parallelism: what takes longest of their tests."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.jobs.blocks.joins import Side, broadcast_join, interval_join, regular_join, temporal_join, union, window_join
from penstock.jobs.blocks.windows import aggregate, tumbling
from penstock.jobs.stream.streams import Stream, Tag
from tests.jobs.spark.blocks import Input, row, run, same
from tests.jobs.spark.running import Surroundings
from tests.jobs.spark.test_more_joins import (
    CHANGES_OF_CUSTOMERS,
    CHANGES_OF_ORDERS,
    CUSTOMERS,
    END,
    ORDERS,
    _customer,
    _order,
    _pairs,
    _sides,
    _tables,
    _two,
)


def test_rows_without_partner_come_to_the_window_that_they_belong_to_after_an_interval_join(surroundings: Surroundings) -> None:
    left = [
        [row("1", k="a", n="l"), row("2", k="b", n="l"), row("9", k="b", n="l")],
        [row("30", k="end", n="l")],
        [row(END, k="end", n="l")],
    ]
    right = [[row("3", k="a", n="r")], [row("31", k="end", n="r")], [row(END, k="end", n="r")]]

    def build(streams: Mapping[str, Stream]) -> Stream:
        pairs = interval_join(*_sides(streams), lower="-5s", upper="5s", how="left").select(k="l.k", paired="r.n is not null")
        return aggregate(pairs, tumbling("10s"), keys=["k"], n="count(*)", paired="count_if(paired)")

    rows = [{name: one[name] for name in ("k", "n", "paired")} for one in run(surroundings, _two(left, right), build).rows]
    same([one for one in rows if one["k"] != "end"], [{"k": "a", "n": 1, "paired": 1}, {"k": "b", "n": 2, "paired": 0}])


def test_current_values_of_a_regular_join_give_a_sink_that_upserts_the_tables_join(surroundings: Surroundings) -> None:
    orders, customers = CHANGES_OF_ORDERS, CHANGES_OF_CUSTOMERS
    left = [orders[:3], orders[3:5], [_order(END, "x", "x", "x", deleted=True)]]
    right = [customers[:2], customers[2:3], [_customer(END, "x", "x", deleted=True)]]
    inputs = {"l": Input(ORDERS, left), "r": Input(CUSTOMERS, right)}
    completed = run(surroundings, inputs, lambda streams: regular_join(*_tables(streams), emit="current"))
    table: dict[str, tuple[str, str]] = {}
    for one in completed.rows:
        if one["_deleted"]:
            table.pop(one["l"]["o"], None)
        else:
            table[one["l"]["o"]] = (one["l"]["n"], one["r"]["n"])
    assert table == {"o1": ("one more", "A2"), "o2": ("two", "B")}


def test_rows_of_a_regular_join_that_only_grow_are_kept_so_long_as_asked(surroundings: Surroundings) -> None:
    left = [
        [row("0", k="a", n="l0"), row("0", k="a", n="l0"), row("5", k="a", n="l5")],
        [row("30", k="x", n="x")],
        [row(END, k="x", n="x")],
    ]
    right = [[row("9.999", k="a", n="r9")], [row("12", k="a", n="r12"), row("15", k="a", n="r15")], [row(END, k="y", n="y")]]
    ran = run(surroundings, _two(left, right), lambda streams: regular_join(*_sides(streams), ttl="10s"))
    same(
        _pairs(ran),
        [
            {"l": "l0", "r": "r9", "_op": "+I"},
            {"l": "l0", "r": "r9", "_op": "+I"},
            {"l": "l5", "r": "r9", "_op": "+I"},
            {"l": "l5", "r": "r12", "_op": "+I"},
        ],
    )


def test_the_copies_of_a_table_are_found_again_by_a_job_with_another_parallelism(surroundings: Surroundings) -> None:
    name = surroundings.folder.name.replace("_", "-")
    rules, payments = [row("0", k="a", n=50)], [row("20", k="a", n=number) for number in range(24)]
    join = lambda streams: broadcast_join(*_sides(streams))  # noqa: E731
    schema = "k STRING, n INT"
    first = _two([[row("5", k="a", n=99), row("10", k="y", n=0)]], [[*rules, row("10", k="x", n=0)]], schema)
    same(_pairs(run(surroundings, first, join, name=name)), [{"l": 99, "r": 50}])
    second = _two([payments, [row(END, k="x", n=0)]], [[row(END, k="x", n=0)], []], schema)
    then = run(surroundings, second, join, name=name, conf={"spark.sql.shuffle.partitions": "3"})
    same([one for one in _pairs(then) if one["r"] == 50], [{"l": number, "r": 50} for number in range(24)])


def test_a_union_puts_streams_of_one_kind_together_and_joins_follow_each_other(surroundings: Surroundings) -> None:
    """The watermark stands at a window's end when the window is told: a join behind it must not take its row for an old one."""
    inputs = {
        "l": Input(
            "k STRING, n STRING",
            [[row("1", k="a", n="l1"), row("9", k="b", n="l9")], [row("10", k="a", n="l10")], [row("21", k="a", n="l20")]],
        ),
        "r": Input(
            "k STRING, n STRING",
            [[row("2", k="a", n="r2")], [row("10", k="a", n="r10"), row(None, k="a", n="bad")], [row("21", k="x", n="x")]],
        ),
        "m": Input("k STRING, n STRING", [[row("3", k="a", n="m3")], [row("10", k="c", n="m10")], [row("21", k="x", n="x")]]),
        "v": Input("k STRING, n STRING", [[row("0", k="a", n="v0")], [row("12", k="a", n="v12")], [row("22", k="b", n="v22")]]),
    }

    def build(streams: Mapping[str, Stream]) -> Stream:
        both = union(streams["l"], streams["r"])
        pairs = window_join(Side("l", both, "k"), Side("m", streams["m"], "k"), tumbling("10s"), how="left")
        return temporal_join(Side("p", pairs.select(k="l.k", one="l.n", other="m.n"), "k"), Side("v", streams["v"], "k"), how="left")

    ran = run(surroundings, inputs, build)
    same(
        [{"one": one["p"]["one"], "other": one["p"]["other"], "v": one["v"] and one["v"]["n"]} for one in ran.rows],
        [
            {"one": "l1", "other": "m3", "v": "v0"},
            {"one": "r2", "other": "m3", "v": "v0"},
            {"one": "l9", "other": None, "v": None},
            {"one": "l10", "other": None, "v": "v12"},
            {"one": "r10", "other": None, "v": "v12"},
        ],
    )
    assert len(ran.side_outputs[Tag.QUARANTINED]) == 1
