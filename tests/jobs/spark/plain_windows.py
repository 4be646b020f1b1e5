"""Windows computed by Spark and by plain Python, over the same random rows and in any micro-batches."""

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

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.windows import aggregate, count_window, cumulative, global_window, salted, session, sliding, top, tumbling
from penstock.jobs.stream.streams import ENVELOPE, Stream
from tests.jobs.spark.blocks import START, Input, Ran, row, run, same
from tests.jobs.spark.running import Surroundings

SCHEMA = "user STRING, n INT, paid DECIMAL(10, 2)"
BOUND_S = 30
# Spark neither hashes nor orders maps: the rows of these blocks contain one.
WITH_A_MAP = ("salted", "count", "sliding_count")
# A result of any block; all of them run in one query to save time.
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


def together(blocks: Mapping[str, Build]) -> Callable[[Mapping[str, Stream]], Stream]:
    """The blocks, each with the input of its name, as one stream whose rows say which block they come from."""

    def build(streams: Mapping[str, Stream]) -> Stream:
        results = {name: block(streams[name]) for name, block in blocks.items()}
        frames = [_uniform(result.frame, name) for name, result in results.items()]
        parts = results.values()
        return Stream(reduce(DataFrame.union, frames), timed=True, updates=any(s.updates for s in parts))

    return build


def _uniform(frame: DataFrame, name: str) -> DataFrame:
    columns = [(F.col(c) if c in frame.columns else F.lit(None)).cast(type_).alias(c) for c, type_ in COLUMNS.items()]
    return frame.select(F.lit(name).alias("block"), *columns, *ENVELOPE)


def results(ran: Ran) -> list[dict[str, Any]]:
    """The rows without the columns that their block does not have."""
    return [{name: value for name, value in one.items() if value is not None} for one in ran.rows]


def _events(seed: int) -> list[Event]:
    """Rows out of order by less than the bound; no two at the same time, some at a window's border, some without a number."""
    random_ = random.Random(seed)
    times = random_.sample([second + part for second in range(120) for part in (0, 0.999)], 40)
    events = [(time, random_.choice("aab"), random_.choice([1, 2, 3, 50, None]), f"{random_.randrange(1000) / 100}") for time in times]
    return sorted(events, key=lambda event: event[0] + random_.uniform(0, BOUND_S - 1))


def _cut(events: Sequence[Event], parts: int, *, bounded: bool) -> list[list[dict[str, Any]]]:
    borders = sorted(random.Random(parts).sample(range(1, len(events)), parts - 1))
    chunks = [[_row(event) for event in events[one:two]] for one, two in zip([0, *borders], [*borders, len(events)], strict=True)]
    # The last row: it closes every window, as the end does.
    return chunks if bounded else [*chunks[:-1], [*chunks[-1], row("10:00", user="end", n=1, paid="1")]]


def _row(event: Event) -> dict[str, Any]:
    return row(f"{event[0]:.3f}", user=event[1], n=event[2], paid=event[3], tags={event[1]: event[3]})


VALUES: dict[str, Any] = {"rows": "count(*)", "total": "sum(n)", "mean": "avg(n)", "paid": "sum(paid)", "most": "max(n)"}


def _columns() -> dict[str, Any]:
    """`VALUES` as columns, in several ways."""
    n = F.col("n")
    return {"rows": F.count("*"), "total": F.sum(n + 0).alias("sum"), "mean": F.mean("n"), "paid": F.expr("sum(paid)"), "most": F.max(n)}


TIME_WINDOWS: dict[str, Build] = {
    "tumbling": lambda s: aggregate(s, tumbling("20s", offset="-5s"), keys=["user"], **VALUES),
    "sliding": lambda s: aggregate(s, sliding("20s", every="10s"), keys=["user"], **VALUES),
    "session": lambda s: aggregate(s, session("5s"), keys=["user"], **VALUES),
    "cumulative": lambda s: aggregate(s, cumulative("30s", step="10s"), keys=["user"], **VALUES),
    "all": lambda s: aggregate(s, tumbling("20s", offset="-5s"), **VALUES),
    "all_sessions": lambda s: aggregate(s, session("3s"), **VALUES),
    "salted": lambda s: salted(s, sliding("20s", every="10s"), keys=["user"], salts=3, **_columns()),
    "top": lambda s: top(aggregate(s, tumbling("1m"), keys=["user"], total="sum(n)"), 2, by="total"),
}
TRIGGERED: dict[str, Build] = {
    "count": lambda s: aggregate(s, count_window(3), keys=["user"], **VALUES),
    "sliding_count": lambda s: aggregate(s, count_window(4, every=2), keys=["user"], **VALUES),
    "running": lambda s: aggregate(s, global_window(rows=1), keys=["user"], **_columns()),
    "every": lambda s: aggregate(s, global_window(every="30s"), **VALUES),
    # Without event time only the numbers are independent of the order of the rows.
    "untimed": lambda s: aggregate(s, count_window(3), keys=["user"], rows="count(*)"),
}


# A shuffle of one partition: less to write to the checkpoint. Several partitions are tested elsewhere.
FEW = {"spark.sql.shuffle.partitions": "1"}


def hold_what_plain_python_puts_in_them(
    surroundings: Surroundings, blocks: Mapping[str, Build], parts: int, *, bounded: bool = False
) -> None:
    """Runs the blocks in one query over random rows in micro-batches, and fails if a result differs from plain Python's."""
    events = _events(seed=1)
    data = Input(SCHEMA, _cut(events, parts, bounded=bounded), bound_s=BOUND_S)
    maps = replace(data, schema=f"{SCHEMA}, tags MAP<STRING, STRING>")
    inputs = {block: replace(maps if block in WITH_A_MAP else data, timed=block != "untimed") for block in blocks}
    ran = run(surroundings, inputs, together(blocks), conf=FEW, bounded=bounded)
    assert not ran.side_outputs, "no row is late"
    expected = _expected(events)
    same(results(ran), ({"block": block, **one} for block in blocks for one in expected[block]))


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
    """Values of a result, without nulls and without the empty user of windows without keys."""
    numbers = [n for _, _, n, _ in rows if n is not None]
    values = {
        "user": rows[0][1] or None,
        "rows": len(rows),
        "total": sum(numbers) if numbers else None,
        "mean": sum(numbers) / len(numbers) if numbers else None,
        "paid": sum((Decimal(paid) for *_, paid in rows), Decimal()).quantize(Decimal("0.01")),
        "most": max(numbers, default=None),
    }
    return {name: value for name, value in values.items() if value is not None}


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
