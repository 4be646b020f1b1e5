"""What is still open at the end of a bounded input comes out: each kind of block, without a record that moves the watermark past it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, broadcast_join, interval_join, temporal_join, window_join
from penstock.jobs.blocks.keyed import Step, deduplicate, pattern, process, value
from penstock.jobs.blocks.keyed.plan import Order
from penstock.jobs.blocks.windows import aggregate, tumbling
from penstock.jobs.stream.streams import ENVELOPE, Stream, Tag
from penstock.jobs.watermark import END_MS
from tests.jobs.spark.apps.keyed_functions import Soon, Visits
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.plain_windows import FEW, TIME_WINDOWS, TRIGGERED, hold_what_plain_python_puts_in_them
from tests.jobs.spark.running import Surroundings

# Far more than the times of all rows are apart: without an end nothing would come out.
LONG_S = 3_600
COLUMNS = {"l": "string", "r": "string", "n": "bigint", "window_start": "timestamp"}
Joined = Callable[[Stream, Stream], Stream]


def test_windows_hold_what_plain_python_puts_in_them(surroundings: Surroundings) -> None:
    hold_what_plain_python_puts_in_them(surroundings, TIME_WINDOWS | TRIGGERED, parts=2, bounded=True)


def _pairs(how: str) -> Joined:
    return lambda left, right: interval_join(*_sides(left, right), lower="-5s", upper="5s", how=how)  # type: ignore[arg-type]


def _sides(left: Stream, right: Stream) -> tuple[Side, Side]:
    return Side("l", left, "k"), Side("r", right, "k")


JOINS: dict[str, Joined] = {
    "inner": _pairs("inner"),
    "left": _pairs("left"),
    "full": _pairs("full"),
    "window": lambda left, right: window_join(*_sides(left, right), tumbling("10s"), how="full"),
    "temporal": lambda left, right: temporal_join(*_sides(left, right), how="left"),
    "broadcast": lambda left, right: broadcast_join(*_sides(left, right), how="left"),
}
CHAINED: dict[str, Joined] = {
    "left, counted": lambda left, right: _counted(_pairs("left")(left, right)),
    "full, counted": lambda left, right: _counted(_pairs("full")(left, right)),
    "temporal, counted": lambda left, right: _counted(temporal_join(*_sides(left, right), how="left")),
}


def _counted(pairs: Stream) -> Stream:
    return aggregate(pairs.select(r="r.n"), tumbling("30s"), n="count(r)")


def _run_joins(surroundings: Surroundings, joins: Mapping[str, Joined]) -> dict[str, list[tuple[Any, ...]]]:
    """Join -> its rows."""
    left = [[row("10", k="a", n="l10")], [row("20", k="b", n="l20"), row("50", k="a", n="l50")]]
    right = [[row("12", k="a", n="r12")], [row("14", k="c", n="r14"), row("46", k="a", n="r46")]]
    sides = {"l": Input("k STRING, n STRING", left, bound_s=LONG_S), "r": Input("k STRING, n STRING", right, bound_s=LONG_S)}

    def build(streams: Mapping[str, Stream]) -> Stream:
        results = {name: join(streams[f"{name} l"], streams[f"{name} r"]) for name, join in joins.items()}
        frames = [_uniform(result, name) for name, result in results.items()]
        return Stream(reduce(DataFrame.union, frames), timed=True)

    ran = run(surroundings, {f"{name} {side}": data for name in joins for side, data in sides.items()}, build, conf=FEW, bounded=True)
    assert Tag.LATE not in ran.side_outputs
    assert [event["watermarks"]["inForceMs"] == END_MS for event in ran.events] == [False, True, True]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in joins}
    for one in ran.rows:
        found[one["block"]].append(tuple(one[name] for name in COLUMNS if one[name] is not None or name in "lr"))
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def _uniform(stream: Stream, name: str) -> DataFrame:
    frame = stream.frame
    for side in ("l", "r"):
        if side in frame.columns:
            frame = frame.withColumn(side, F.col(side)["n"])
    columns = [(F.col(c) if c in frame.columns else F.lit(None)).cast(type_).alias(c) for c, type_ in COLUMNS.items()]
    return frame.select(F.lit(name).alias("block"), *columns, *ENVELOPE)


def test_joins_emit_their_pairs_and_the_rows_that_stay_without_partner(surroundings: Surroundings) -> None:
    found = _run_joins(surroundings, JOINS)
    pairs: list[tuple[str | None, str | None]] = [("l10", "r12"), ("l50", "r46")]
    assert found["inner"] == pairs
    assert found["left"] == sorted([*pairs, ("l20", None)], key=repr)
    assert found["full"] == sorted([*pairs, ("l20", None), (None, "r14")], key=repr)
    windows = [(one[0], one[1], one[2].second) for one in found["window"]]
    assert windows == [("l10", "r12", 10), ("l20", None, 20), ("l50", None, 50), (None, "r14", 10), (None, "r46", 40)]
    # The right row of 46 s is the one in force at 50 s; none was at 10 s.
    assert found["temporal"] == found["broadcast"] == [("l10", None), ("l20", None), ("l50", "r46")]


def test_windows_after_joins_hold_the_rows_that_the_joins_emit_at_the_end(surroundings: Surroundings) -> None:
    found = _run_joins(surroundings, CHAINED)
    counts = {name: sorted((one[-1].second, one[-2]) for one in rows) for name, rows in found.items()}
    assert counts == {
        "left, counted": [(0, 1), (30, 1)],
        "full, counted": [(0, 2), (30, 1)],
        "temporal, counted": [(0, 0), (30, 1)],
    }


def _visits(stream: Stream, order: Order = "arrival") -> Stream:
    clicks = stream.transform(lambda frame: frame.withColumn("at", frame["_time"]))
    state = {"visit": value("clicks int, ends timestamp")}
    return process(clicks, ["user"], Visits(), output="user string, clicks int, ended timestamp", state=state, order=order)


def test_timers_fire_and_rows_that_were_held_back_are_processed(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a", n=1), row("5", user="b", n=2)],
        [row("4", user="a", n=3), row("40", user="a", n=4), row("4", user="a", n=3)],
    ]
    blocks: dict[str, Callable[[Stream], Stream]] = {
        "visits": lambda s: _visits(s, "time").select(user="user", n="clicks"),
        "visits, counted": lambda s: aggregate(_visits(s), tumbling("30s"), n="sum(clicks)"),
        "once": lambda s: aggregate(deduplicate(s, ["user", "n"], within="1m"), tumbling("30s"), keys=["user"], n="count(*)"),
        "first": lambda s: deduplicate(s, ["user"], within="10s", keep="first"),
        "pattern": lambda s: pattern(s, ["user"], [Step("one", "n = 1"), Step("two", "n = 3")], within="10s").select(
            user="user", n="two[0].n"
        ),
    }

    def build(streams: Mapping[str, Stream]) -> Stream:
        columns = {"user": "string", "n": "int", "window_start": "timestamp"}
        frames = []
        for name, block in blocks.items():
            frame = block(streams[name]).frame
            fields = [(F.col(c) if c in frame.columns else F.lit(None)).cast(type_).alias(c) for c, type_ in columns.items()]
            frames.append(frame.select(F.lit(name).alias("block"), *fields, *ENVELOPE))
        return Stream(reduce(DataFrame.union, frames), timed=True)

    ran = run(surroundings, dict.fromkeys(blocks, Input("user STRING, n INT", batches, bound_s=LONG_S)), build, conf=FEW, bounded=True)
    first, second = {"window_start": at("0")}, {"window_start": at("30")}
    expected: dict[str, list[dict[str, Any]]] = {
        "visits": [{"user": "a", "n": 3}, {"user": "b", "n": 1}, {"user": "a", "n": 1}],
        # Its rows are not held back, so the last of them finds the first visit still open.
        "visits, counted": [{"n": 1, **first}, {"n": 4, **second}],
        "once": [{"user": "a", "n": 2, **first}, {"user": "b", "n": 1, **first}, {"user": "a", "n": 1, **second}],
        "first": [{"user": "a", "n": 1}, {"user": "b", "n": 2}, {"user": "a", "n": 4}],
        "pattern": [{"user": "a", "n": 3}],
    }
    found = [{name: field for name, field in one.items() if field is not None} for one in ran.rows]
    same(found, ({"block": block, **one} for block, rows in expected.items() for one in rows))


def test_event_time_closes_though_a_timer_waits_for_the_clock(surroundings: Surroundings) -> None:
    batches = [[row("1", user="a", n=1)], [row("2", user="a", n=2)]]

    def build(streams: Mapping[str, Stream]) -> Stream:
        soon = process(streams["soon"], ["user"], Never(), output="user string, n int", state={"sum": value("int")}, time="processing")
        counts = aggregate(streams["counts"], tumbling("10s"), keys=["user"], n="count(*)")
        frames = [one.frame.select("user", F.col("n").cast("int").alias("n"), *ENVELOPE) for one in (soon, counts)]
        return Stream(reduce(DataFrame.union, frames), timed=True)

    ran = run(surroundings, dict.fromkeys(("soon", "counts"), Input("user STRING, n INT", batches, bound_s=LONG_S)), build, bounded=True)
    same(ran.rows, [{"user": "a", "n": 2}])


class Never(Soon):
    """Sets a timer for a time that does not come."""

    def on_row(self, row: Any, key: Any) -> None:
        super().on_row(row, key)
        key.cancel_timer(key.now_ms + 1)
        key.set_timer(key.now_ms + LONG_S * 1000)
