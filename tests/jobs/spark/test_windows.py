"""Windows compared with plain Python, their results and when they are emitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import union
from penstock.jobs.blocks.keyed.deduplicate import deduplicate
from penstock.jobs.blocks.windows import WindowRows, aggregate, count_window, global_window, process_window, salted, session, top, tumbling
from penstock.jobs.stream.streams import Stream, Tag
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.plain_windows import FEW, TIME_WINDOWS, TRIGGERED, Build, hold_what_plain_python_puts_in_them, results, together
from tests.jobs.spark.running import Surroundings

# One of each kind of state, in one query; tests/jobs/spark/chaos/test_windows_random.py has all of them, and other micro-batches.
SHORT = ("session", "all_sessions", "cumulative", "sliding_count", "every", "untimed")


def test_windows_hold_what_plain_python_puts_in_them(surroundings: Surroundings) -> None:
    blocks = TIME_WINDOWS | TRIGGERED
    hold_what_plain_python_puts_in_them(surroundings, {name: blocks[name] for name in SHORT}, parts=2)


def test_salted_windows_hold_what_plain_python_puts_in_them(surroundings: Surroundings) -> None:
    hold_what_plain_python_puts_in_them(surroundings, {"salted": TIME_WINDOWS["salted"]}, parts=2)


def test_a_result_passes_a_strict_block_though_the_watermark_has_stood_at_its_windows_very_end(surroundings: Surroundings) -> None:
    # With a downstream deduplication, the first micro-batch leaves Spark's watermark 1 ms before the end of a window, which the second
    # closes.
    tags = {"a": "b"}
    batches = [[row("1", user="a", n=1, tags=tags), row("10", user="a", n=2, tags=tags)], [row("25", user="a", n=4, tags=tags)]]
    blocks: dict[str, Build] = {
        "aggregate": lambda s: aggregate(s, tumbling("10s"), keys=["user"], most="max(n)"),
        "top": lambda s: top(s.select(user="user", most="n", tags="tags"), 1, by="most", keys=["user"], window=tumbling("10s")),
    }
    strict = {name: _deduplicated(block) for name, block in blocks.items()}
    data = Input("user STRING, n INT, tags MAP<STRING, STRING>", batches)
    ran = run(surroundings, dict.fromkeys(blocks, data), together(strict), conf=FEW)
    windows = [
        {"user": "a", "window_start": at(f"{start}"), "window_end": at(f"{start + 10}"), "most": start // 10 + 1} for start in (0, 10)
    ]
    expected = {"aggregate": windows, "top": [{**one, "rank": 1} for one in windows]}
    same(results(ran), ({"block": block, **one} for block in blocks for one in expected[block]))


def _deduplicated(block: Build) -> Build:
    return lambda stream: deduplicate(block(stream), ["user", "window_end"], within="1m")


def test_an_aggregate_that_sorts_may_keep_the_name_of_its_key(surroundings: Surroundings) -> None:
    # Spark sorts for the maximum of a string, and then says that the micro-batch's rows are in the order of a column that they don't have:
    # its optimizer has removed the column's alias.
    batches = [[row("1", user="a", name="x"), row("2", user="a", name="y")], [row("40", user="a", name="z")]]
    ran = run(
        surroundings,
        {"clicks": Input("user STRING, name STRING", batches)},
        lambda streams: aggregate(streams["clicks"], tumbling("10s"), keys=["user"], most="max(name)").select(user="user", most="most"),
        conf=FEW,
    )
    same(ran.rows, [{"user": "a", "most": "y"}])


def test_early_results_are_emitted_after_each_micro_batch_that_changes_them(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a", n=1), row("5", user="a", n=2), row("2", user="b", n=5)],
        [row("12", user="a", n=3), row("9", user="a", n=4)],
        [row("40", user="b", n=7), row("1", user="a", n=100)],
    ]
    blocks: dict[str, Build] = {
        "window": lambda s: aggregate(s, tumbling("10s"), keys=["user"], emit="updates", total="sum(n)"),
        "global": lambda s: aggregate(s, global_window(), keys=["user"], emit="updates", total="sum(n)", rows=F.count("*")),
        "best": lambda s: top(s.select(user="user", most="n"), 1, by="most", window=global_window(), emit="updates"),
    }
    ran = run(surroundings, dict.fromkeys(blocks, Input("user STRING, n INT", batches, bound_s=5)), together(blocks), conf=FEW)
    window = {"block": "window", "window_start": at("0"), "window_end": at("10")}
    result = [
        [
            {**window, "user": "a", "total": 3},
            {**window, "user": "b", "total": 5},
            {"block": "global", "user": "a", "total": 3, "rows": 2},
            {"block": "global", "user": "b", "total": 5, "rows": 1},
            {"block": "best", "rank": 1, "user": "b", "most": 5},
        ],
        [
            {**window, "user": "a", "total": 7},
            {"block": "window", "window_start": at("10"), "window_end": at("20"), "user": "a", "total": 3},
            {"block": "global", "user": "a", "total": 10, "rows": 4},
            {"block": "best", "rank": 1, "user": "b", "most": 5},
        ],
        [
            {"block": "window", "window_start": at("40"), "window_end": at("50"), "user": "b", "total": 7},
            {"block": "global", "user": "b", "total": 12, "rows": 2},
            {"block": "best", "rank": 1, "user": "b", "most": 7},
        ],
    ]
    for rows, expected in zip(ran.batches, result, strict=False):
        same(({name: value for name, value in one.items() if value is not None} for one in rows), expected)
    # The micro-batch without rows, in which windows are cleared, changes none.
    assert [len(rows) for rows in ran.batches] == [5, 4, 3, 0]
    assert len(ran.side_outputs[Tag.LATE]) == len(blocks), "each input's late row"


def _told(window: WindowRows) -> list[dict[str, Any]]:
    length = int((window.end - window.start).total_seconds())
    rows = ",".join(f"{time.second}:{one.n}" for time, one in zip(window.times, window.rows, strict=True))
    return [{"told": f"{window.key!r} {length} s {rows}"}]


def _none_or_two(window: WindowRows) -> Iterator[dict[str, Any]]:
    yield from () if window.key == "b" else ({"told": f"{one.n}"} for one in window.rows[:2])


def test_a_function_gets_the_rows_of_each_window_in_the_order_of_time_and_returns_any_number(surroundings: Surroundings) -> None:
    batches = [
        [row("5", user="a", n=3), row("1", user="a", n=1), row("4", user="b", n=5)],
        [row("12", user="a", n=4), row("5", user="a", n=2)],
        [row("50", user="b", n=7)],
        [row("2", user="a", n=100), row("90", user="b", n=9)],
    ]
    output = "told STRING"
    blocks: dict[str, Build] = {
        "tumbling": lambda s: process_window(s, tumbling("10s"), _told, keys=["user"], output=output),
        "session": lambda s: process_window(s, session("6s"), _told, output=output),
        "two": lambda s: process_window(s, tumbling("1m"), _told, keys=["user", "kind"], output=output),
        "some": lambda s: process_window(s, tumbling("10s"), _none_or_two, keys=["user"], output=output),
    }
    data = Input("user STRING, n INT, kind STRING", batches, bound_s=10)
    ran = run(surroundings, dict.fromkeys(blocks, data), lambda streams: union(*_with_names(blocks, streams)), conf=FEW)
    expected = [
        ("tumbling", "0", "'a' 10 s 1:1,5:2,5:3"),
        ("tumbling", "0", "'b' 10 s 4:5"),
        ("tumbling", "10", "'a' 10 s 12:4"),
        ("tumbling", "50", "'b' 10 s 50:7"),
        ("session", "1", "() 10 s 1:1,4:5,5:2,5:3"),
        ("session", "12", "() 6 s 12:4"),
        ("session", "50", "() 6 s 50:7"),
        ("two", "0", "('a', None) 60 s 1:1,5:2,5:3,12:4"),
        ("two", "0", "('b', None) 60 s 4:5,50:7"),
        ("some", "0", "1"),
        ("some", "0", "2"),
        ("some", "10", "4"),
    ]
    same(ran.rows, ({"block": block, "start": at(start), "told": told} for block, start, told in expected))
    assert len(ran.side_outputs[Tag.LATE]) == len(blocks), "each input's late row"


def _with_names(blocks: Mapping[str, Build], streams: Mapping[str, Stream]) -> list[Stream]:
    return [block(streams[name]).select(block=f"'{name}'", start="window_start", told="told") for name, block in blocks.items()]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda s: aggregate(s, tumbling("10s")), "no aggregates"),
        (lambda s: aggregate(s, tumbling("10s"), keys=["who"], n="count(*)"), "unknown key who; the stream has user, n"),
        (lambda s: aggregate(s, tumbling("10s"), keys=["user"], user="count(*)"), "duplicate result column user"),
        (lambda s: aggregate(s, tumbling("10s"), window_end="count(*)"), "duplicate result column window_end"),
        (lambda s: aggregate(replace(s, timed=False), session("10s"), n="count(*)"), "no event time"),
        (lambda s: aggregate(replace(s, timed=False), global_window(every="1m"), n="count(*)"), "no event time"),
        (lambda s: aggregate(replace(s, updates=True), tumbling("10s"), n="count(*)"), "updates of earlier rows"),
        (lambda s: aggregate(s, session("10s"), emit="updates", n="count(*)"), "a session window has no early results"),
        (lambda s: aggregate(s, global_window(), n="count(*)"), "never ends"),
        (lambda s: aggregate(s, count_window(3), emit="updates", n="count(*)"), "the trigger already decides when"),
        (lambda s: salted(s, session("10s"), n="count(*)"), "a session window cannot be split"),
        (lambda s: process_window(s, count_window(3), _told, output="n INT"), "has no end at which its rows are complete"),
        (lambda s: process_window(s, tumbling("1m"), _told, keys=["who"], output="n INT"), "unknown key who"),
        (lambda s: process_window(s, tumbling("1m"), _told, output="window_end INT"), "duplicate result column window_end"),
        (lambda s: salted(s, tumbling("10s"), salts=1, n="count(*)"), "must be from 2 to 1024"),
        (lambda s: salted(s, tumbling("10s"), n="count(DISTINCT n)"), r"n = count\(DISTINCT n\) is not one of count\(...\), sum"),
        (lambda s: salted(s, tumbling("10s"), n=F.count_distinct("n")), "with one argument"),
        (lambda s: salted(s, tumbling("10s"), n=F.sum("n").cast("int")), "with one argument"),
        (lambda s: salted(s, tumbling("10s"), n=F.first("n")), "avg"),
        (lambda s: aggregate(s, count_window(3), n=F.first("n", ignorenulls=True)), r"first\(...\)"),
        (lambda s: aggregate(s, count_window(3), n=F.min_by("n", "user")), r"first\(...\)"),
        (lambda s: top(s, 3, by="n"), "lack window_start and window_end"),
        (lambda s: top(s, 0, by="n", window=tumbling("10s")), "n = 0"),
    ],
)
def test_an_invalid_window_is_reported_before_the_query_starts(session: SparkSession, wrong: Build, message: str) -> None:
    stream = Stream(session.createDataFrame([], "user STRING, n INT"), timed=True)
    with pytest.raises(ValueError, match=message):
        wrong(stream)
