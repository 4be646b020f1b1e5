"""Aggregates over windows, computed by Spark's own streaming aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.windows.firing import NUMBER, fired
from penstock.jobs.blocks.windows.kinds import Global, TimeWindow
from penstock.jobs.blocks.windows.results import envelope
from penstock.jobs.stream.side_outputs import data_rows
from penstock.jobs.stream.streams import ENVELOPE, TAG, TIME, Stream

Emit = Literal["final", "updates"]
START, END = "window_start", "window_end"
_UNTIMED = "the stream has no event time; set `time` of its source in the spec"


def aggregate(
    stream: Stream, window: TimeWindow | Global, /, *, keys: Sequence[str] = (), emit: Emit = "final", **aggregates: str | Column
) -> Stream:
    """Aggregates the rows of each key and window: ``aggregate(clicks, tumbling("5m"), keys=["user"], n="count(*)", paid="sum(amount)")``.

    The result of a time window is told once, when the watermark in force has reached its end; then the window is gone, and a row for it
    would be late. With an allowed lateness of the source, that is when the watermark less the lateness has. ``updates`` tells early results
    instead: after each micro-batch the current value of every window that has got rows in it, so that the last one told is the final one;
    what a sink that upserts by the keys and the window's start wants.

    A `count_window` or a `global_window` with a trigger takes the rows of a timed stream in the order of event time, each as soon as the
    watermark has passed it: the result does not depend on how the micro-batches fall. Those of a stream without event time come in the
    order of the micro-batches. Of each key some state stays for ever, after a purge too: the number of its results; what no purge takes of
    its rows; of a `count_window` with ``every`` its last rows. Keys without end, as ids of visits, want a time window, or
    `penstock.jobs.blocks.keyed.process.process` with a ``ttl``.

    Args:
        stream: rows; time windows and ``every`` need event time.
        window: `tumbling`, `sliding`, `session`, `cumulative`, `count_window` or `global_window`.
        keys: names of fields; without any there is one window for all rows (Flink's windowAll), computed by a single task.
        emit: ``final`` or ``updates``; a session has no early results, and what has a trigger is told by it.
        aggregates: name -> an aggregate of Spark SQL, as text or as a column; where there is a trigger, count, sum, min, max, avg, first or
            last of one expression. One whose value depends on the order of the rows (``first``, ``collect_list``) may differ when a
            micro-batch is run again, and so may the last digits of a sum of doubles; ``min_by(x, at)``, ``array_sort(collect_list(x))`` and
            sums of decimals do not.

    Returns:
        The keys, then ``window_start`` and ``window_end`` of a time window or, where there is a trigger, ``window_number`` (the key's
        results counted from 1), then the aggregates. The event time is the window's end less 1 µs (Flink: 1 ms), so that the result still
        lies in the window; of a global window that of its last row.

    Raises:
        ValueError: no event time where it is needed, an unknown key, no aggregates, a name twice, early results where there are none,
            updates as input, or an aggregate that a trigger can't have.
    """
    check(stream, window, keys, aggregates, emit)
    if isinstance(window, Global):
        data = data_rows(stream)
        return fired(data, window, keys, aggregates) if window.triggered else _current(data, keys, aggregates)
    frame, column = window.assigned(data_rows(stream).frame)
    # Spark's sessions need a key: the tag is the same for all.
    grouping = keys or ([TAG] if window.mergeable else [])
    grouped = frame.groupBy(*grouping, column.alias("_window")).agg(*_columns(aggregates))
    return Stream(unfolded(grouped, keys, list(aggregates)), timed=True, updates=emit == "updates", strict=stream.strict)


def _current(data: Stream, keys: Sequence[str], aggregates: Mapping[str, str | Column]) -> Stream:
    """The current value over all rows so far of each key that has got rows in the micro-batch."""
    time = F.max(TIME) if data.timed else F.max(F.lit(None).cast("timestamp"))
    # Without any key Spark would tell the value after every micro-batch. The tag is the same for all rows.
    grouped = data.frame.groupBy(*(keys or [TAG])).agg(*_columns(aggregates), time.alias("_last"))
    return replace(data, frame=grouped.select(*keys, *aggregates, *envelope(F.col("_last"))), updates=True)


def _columns(aggregates: Mapping[str, str | Column]) -> list[Column]:
    return [(F.expr(value) if isinstance(value, str) else value).alias(name) for name, value in aggregates.items()]


def check(stream: Stream, window: TimeWindow | Global, keys: Sequence[str], aggregates: Mapping[str, object], emit: Emit) -> None:
    """Whether a declaration can be run. Raises as `aggregate`."""
    if stream.updates:
        raise ValueError(
            "the stream contains updates of earlier rows, which would be counted again; aggregate final results (emit='final')"
        )
    if emit not in ("final", "updates"):
        raise ValueError(f'emit = "{emit}": must be "final" or "updates"')
    if isinstance(window, Global):
        _check_global(stream, window, emit)
        check_names(stream, keys, aggregates, (NUMBER,) if window.triggered else ())
        return
    if not stream.timed:
        raise ValueError(_UNTIMED)
    if emit == "updates" and window.mergeable:
        raise ValueError("a session window has no early results: Spark emits it when the session has ended")
    check_names(stream, keys, aggregates, (START, END))


def _check_global(stream: Stream, window: Global, emit: Emit) -> None:
    if window.every_ms is not None and not stream.timed:
        raise ValueError(_UNTIMED)
    if window.triggered and emit == "updates":
        raise ValueError("the trigger already decides when results are emitted; remove emit='updates'")
    if not window.triggered and emit == "final":
        raise ValueError("a global window never ends; set a trigger, or emit its current results: emit='updates'")


def check_names(stream: Stream, keys: Sequence[str], aggregates: Mapping[str, object], more: Sequence[str]) -> None:
    """Whether keys are there and the result's names are clear. Raises as `aggregate`."""
    unknown = [key for key in keys if key not in stream.fields]
    if unknown:
        raise ValueError(f"unknown key {', '.join(unknown)}; the stream has {', '.join(stream.fields)}")
    if not aggregates:
        raise ValueError('no aggregates; specify at least one, such as n="count(*)"')
    names = [*keys, *more, *aggregates]
    twice = sorted({name for name in names if names.count(name) > 1} | {name for name in names if name in ENVELOPE})
    if twice:
        raise ValueError(f"duplicate result column {', '.join(twice)}; rename the aggregates")


def unfolded(grouped: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """The result's columns and the envelope, from rows of keys, ``_window`` and the aggregates."""
    start, end_ms = F.col("_window").start, whole_ms(F.col("_window").end)
    end = F.timestamp_millis(end_ms)
    return grouped.select(*keys, start.alias(START), end.alias(END), *names, *envelope(last_moment(end_ms)))


def last_moment(end_ms: Column) -> Column:
    """The event time of a window's result, from the window's end in epoch milliseconds.

    It is older than the end, and not as old as the watermark that has let it go: Spark's is 1 ms behind ours where an operator comes
    behind, which would drop a result that stands exactly there.
    """
    return F.timestamp_micros(end_ms * 1000 - 1)


def whole_ms(end: Column) -> Column:
    """A window's end in epoch milliseconds. That of a session is a microsecond less, see `penstock.jobs.blocks.windows.kinds`."""
    return F.unix_millis(end + F.expr("interval 999 microseconds"))
