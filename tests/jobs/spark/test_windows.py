"""Windows against plain Python, with micro-batches cut in more than one way."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.streams import ENVELOPE, Stream, Tag
from jobs.windows import aggregate, count_window, cumulative, global_window, salted, session, sliding, top, tumbling
from tests.jobs.spark.blocks import START, Input, Ran, at, row, run, same
from tests.jobs.spark.running import Surroundings

SCHEMA = "user STRING, n INT, paid DECIMAL(10, 2)"
BOUND_S = 30
# A result of any block, all of them in one query, so that the tier's time goes a long way.
COLUMNS = {
    "window_start": "timestamp",
    "window_end": "timestamp",
    "window_number": "bigint",
    "rank": "int",
    "user": "string",
    "rows": "bigint",
    "total": "bigint",
    "mean": "double",
    "paid": "decimal(20,2)",
    "most": "int",
}
Event = tuple[float, str, int | None, str]
Build = Callable[[Stream], Stream]


def _together(blocks: Mapping[str, Build]) -> Callable[[Mapping[str, Stream]], Stream]:
    """The blocks, each with the input of its name, as one stream whose rows say which block they come from."""

    def build(streams: Mapping[str, Stream]) -> Stream:
        results = {name: block(streams[name]) for name, block in blocks.items()}
        frames = [_uniform(result.frame, name) for name, result in results.items()]
        parts = results.values()
        return Stream(
            reduce(DataFrame.union, frames), timed=True, updates=any(s.updates for s in parts), strict=any(s.strict for s in parts)
        )

    return build


def _uniform(frame: DataFrame, name: str) -> DataFrame:
    columns = [(F.col(c) if c in frame.columns else F.lit(None)).cast(type_).alias(c) for c, type_ in COLUMNS.items()]
    return frame.select(F.lit(name).alias("block"), *columns, *ENVELOPE)


def _told(ran: Ran) -> list[dict[str, Any]]:
    """The rows without the columns that their block does not have."""
    return [{name: value for name, value in one.items() if value is not None} for one in ran.rows]


def _events(seed: int) -> list[Event]:
    """Rows out of order by less than the bound; no two at one moment, some at a window's border, some without a number."""
    random_ = random.Random(seed)
    times = random_.sample([second + part for second in range(120) for part in (0, 0.999)], 40)
    events = [(time, random_.choice("aab"), random_.choice([1, 2, 3, 50, None]), f"{random_.randrange(1000) / 100}") for time in times]
    return sorted(events, key=lambda event: event[0] + random_.uniform(0, BOUND_S - 1))


def _cut(events: Sequence[Event], parts: int) -> list[list[dict[str, Any]]]:
    borders = sorted(random.Random(parts).sample(range(1, len(events)), parts - 1))
    pieces = [[_row(event) for event in events[one:two]] for one, two in zip([0, *borders], [*borders, len(events)], strict=True)]
    # The last word: every window of the others is over.
    return [*pieces[:-1], [*pieces[-1], row("10:00", user="end", n=1, paid="1")]]


def _row(event: Event) -> dict[str, Any]:
    return row(f"{event[0]:.3f}", user=event[1], n=event[2], paid=event[3])


VALUES: dict[str, Any] = {"rows": "count(*)", "total": "sum(n)", "mean": "avg(n)", "paid": "sum(paid)", "most": "max(n)"}
TIME_WINDOWS: dict[str, Build] = {
    "tumbling": lambda s: aggregate(s, tumbling("20s", offset="-5s"), keys=["user"], **VALUES),
    "sliding": lambda s: aggregate(s, sliding("20s", every="10s"), keys=["user"], **VALUES),
    "session": lambda s: aggregate(s, session("5s"), keys=["user"], **VALUES),
    "cumulative": lambda s: aggregate(s, cumulative("30s", step="10s"), keys=["user"], **VALUES),
    "all": lambda s: aggregate(s, tumbling("20s", offset="-5s"), **VALUES),
    "all_sessions": lambda s: aggregate(s, session("3s"), **VALUES),
    "salted": lambda s: salted(s, sliding("20s", every="10s"), keys=["user"], salts=3, **VALUES),
    "top": lambda s: top(aggregate(s, tumbling("1m"), keys=["user"], total="sum(n)"), 2, by="total"),
}
TRIGGERED: dict[str, Build] = {
    "count": lambda s: aggregate(s, count_window(3), keys=["user"], **VALUES),
    "sliding_count": lambda s: aggregate(s, count_window(4, every=2), keys=["user"], **VALUES),
    "running": lambda s: aggregate(s, global_window(rows=1), keys=["user"], **VALUES),
    "every": lambda s: aggregate(s, global_window(every="30s"), **VALUES),
    # Without event time only the numbers are the same however the rows come.
    "untimed": lambda s: aggregate(s, count_window(3), keys=["user"], rows="count(*)"),
}


# A shuffle of one partition: less to write to the checkpoint. Keys of several partitions are the engine's business.
FEW = {"spark.sql.shuffle.partitions": "1"}


@pytest.mark.parametrize("parts", [2, 1])
@pytest.mark.parametrize("blocks", [TIME_WINDOWS, TRIGGERED], ids=["time", "triggered"])
def test_windows_hold_what_plain_python_puts_in_them_however_the_micro_batches_fall(
    surroundings: Surroundings, blocks: Mapping[str, Build], parts: int
) -> None:
    events = _events(seed=1)
    data = Input(SCHEMA, _cut(events, parts), bound_s=BOUND_S)
    inputs = {block: replace(data, timed=block != "untimed") for block in blocks}
    ran = run(surroundings, inputs, _together(blocks), conf=FEW)
    assert not ran.aside, "no row is late"
    expected = _expected(events)
    same(_told(ran), ({"block": block, **one} for block in blocks for one in expected[block]))


def test_early_results_are_told_after_each_micro_batch_that_changes_them(surroundings: Surroundings) -> None:
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
    ran = run(surroundings, dict.fromkeys(blocks, Input("user STRING, n INT", batches, bound_s=5)), _together(blocks), conf=FEW)
    window = {"block": "window", "window_start": at("0"), "window_end": at("10")}
    told = [
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
    for found, expected in zip(ran.batches, told, strict=False):
        same(({name: value for name, value in one.items() if value is not None} for one in found), expected)
    # The micro-batch without rows, in which windows go, changes none.
    assert [len(found) for found in ran.batches] == [5, 4, 3, 0]
    assert len(ran.aside[Tag.LATE]) == len(blocks), "each input's late row"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda s: aggregate(s, tumbling("10s")), "no aggregates"),
        (lambda s: aggregate(s, tumbling("10s"), keys=["who"], n="count(*)"), "no field who to be a key; the stream has user, n"),
        (lambda s: aggregate(s, tumbling("10s"), keys=["user"], user="count(*)"), "two columns user"),
        (lambda s: aggregate(s, tumbling("10s"), window_end="count(*)"), "two columns window_end"),
        (lambda s: aggregate(replace(s, timed=False), session("10s"), n="count(*)"), "no event time"),
        (lambda s: aggregate(replace(s, timed=False), global_window(every="1m"), n="count(*)"), "no event time"),
        (lambda s: aggregate(replace(s, updates=True), tumbling("10s"), n="count(*)"), "updates of earlier rows"),
        (lambda s: aggregate(s, session("10s"), emit="updates", n="count(*)"), "a session has no early results"),
        (lambda s: aggregate(s, global_window(), n="count(*)"), "never ends"),
        (lambda s: aggregate(s, count_window(3), emit="updates", n="count(*)"), "a trigger says when"),
        (lambda s: salted(s, session("10s"), n="count(*)"), "a session can't be split"),
        (lambda s: salted(s, tumbling("10s"), salts=1, n="count(*)"), "not from 2 to 1024"),
        (lambda s: salted(s, tumbling("10s"), n=F.count("*")), "as text"),
        (lambda s: top(s, 3, by="n"), "no window_start and window_end"),
        (lambda s: top(s, 0, by="n", window=tumbling("10s")), "n = 0"),
    ],
)
def test_a_window_that_can_not_be_is_told_before_the_query_starts(session: SparkSession, wrong: Build, told: str) -> None:
    stream = Stream(session.createDataFrame([], "user STRING, n INT"), timed=True)
    with pytest.raises(ValueError, match=told):
        wrong(stream)


def _expected(events: Sequence[Event]) -> dict[str, list[dict[str, Any]]]:
    ordered = sorted(events)
    sliding_windows = _assigned(events, lambda t: [(s, s + 20) for s in (t // 10 * 10 - 10, t // 10 * 10)])
    everyone = [(time, "", n, paid) for time, _, n, paid in ordered]
    minutes = _assigned(events, lambda t: [(t // 60 * 60, t // 60 * 60 + 60)])
    return {
        "tumbling": _assigned(events, lambda t: [((t + 5) // 20 * 20 - 5, (t + 5) // 20 * 20 + 15)]),
        "sliding": sliding_windows,
        "salted": sliding_windows,
        "session": [one for rows in _by_user(ordered) for one in _sessions(rows, 5)],
        "all_sessions": list(_sessions(everyone, 3)),
        "cumulative": _assigned(events, lambda t: [(t // 30 * 30, end) for end in _steps(t)]),
        "all": _assigned(everyone, lambda t: [((t + 5) // 20 * 20 - 5, (t + 5) // 20 * 20 + 15)]),
        "top": _ranked(minutes),
        "count": [one for rows in _by_user(ordered) for one in _numbered([rows[i - 2 : i + 1] for i in range(2, len(rows), 3)])],
        "sliding_count": [
            one for rows in _by_user(ordered) for one in _numbered([rows[max(i - 3, 0) : i + 1] for i in range(1, len(rows), 2)])
        ],
        "untimed": [
            {"user": rows[0][1], "window_number": number, "rows": 3}
            for rows in _by_user(ordered)
            for number in range(1, len(rows) // 3 + 1)
        ],
        "running": [one for rows in _by_user(ordered) for one in _numbered([rows[: i + 1] for i in range(len(rows))])],
        "every": _numbered([everyone[: bisect_left(everyone, (border,))] for border in _borders(everyone)]),
    }


def _borders(ordered: Sequence[Event]) -> list[float]:
    """Each multiple of 30 s before which there are rows since the one before."""
    return sorted({event[0] // 30 * 30 + 30 for event in ordered})


def _steps(time: float) -> Iterator[float]:
    start = time // 30 * 30
    return (start + step for step in (10, 20, 30) if start + step > time)


def _assigned(events: Iterable[Event], windows: Callable[[float], Iterable[tuple[float, float]]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, float, float], list[Event]] = defaultdict(list)
    for event in events:
        for start, end in windows(event[0]):
            groups[event[1], start, end].append(event)
    return [_windowed(rows, start, end) for (_, start, end), rows in groups.items()]


def _sessions(ordered: Sequence[Event], gap_s: float) -> Iterator[dict[str, Any]]:
    sessions = [[ordered[0]]]
    for event in ordered[1:]:
        if round((event[0] - sessions[-1][-1][0]) * 1000) < gap_s * 1000:
            sessions[-1].append(event)
        else:
            sessions.append([event])
    return (_windowed(one, one[0][0], one[-1][0] + gap_s) for one in sessions)


def _by_user(ordered: Sequence[Event]) -> list[list[Event]]:
    return [[event for event in ordered if event[1] == user] for user in "ab"]


def _windowed(rows: Sequence[Event], start: float, end: float) -> dict[str, Any]:
    return {"window_start": _moment(start), "window_end": _moment(end), **_values(rows)}


def _numbered(windows: Iterable[Sequence[Event]]) -> list[dict[str, Any]]:
    return [{"window_number": number, **_values(rows)} for number, rows in enumerate(windows, start=1)]


def _values(rows: Sequence[Event]) -> dict[str, Any]:
    """What stands in a result; what is null is left out, and so is the empty user of windows without keys."""
    numbers = [n for _, _, n, _ in rows if n is not None]
    found = {
        "user": rows[0][1] or None,
        "rows": len(rows),
        "total": sum(numbers) if numbers else None,
        "mean": sum(numbers) / len(numbers) if numbers else None,
        "paid": sum((Decimal(paid) for *_, paid in rows), Decimal()).quantize(Decimal("0.01")),
        "most": max(numbers, default=None),
    }
    return {name: value for name, value in found.items() if value is not None}


def _ranked(minutes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    ranked = []
    for end in {one["window_end"] for one in minutes}:
        best = sorted((one for one in minutes if one["window_end"] == end), key=lambda one: -one["total"])
        ranked += [
            {name: one[name] for name in ("window_start", "window_end", "user", "total")} | {"rank": rank}
            for rank, one in enumerate(best[:2], start=1)
        ]
    return ranked


def _moment(seconds: float) -> datetime:
    return START + timedelta(milliseconds=round(seconds * 1000))
