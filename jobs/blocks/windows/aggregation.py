"""Window aggregates, computed by Spark's own streaming aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.windows.distinct import without_distinct
from penstock.jobs.blocks.windows.firing import NUMBER, fired
from penstock.jobs.blocks.windows.kinds import END, START, Global, Same, TimeWindow
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import as_event_time, with_one_event_time
from penstock.jobs.stream.streams import ENVELOPE, TIME, Stream

Emit = Literal["final", "updates"]
_UNTIMED = "the stream has no event time; set `time` of its source in the spec"


def aggregate(
    stream: Stream, window: TimeWindow | Global, /, *, keys: Sequence[str] = (), emit: Emit = "final", **aggregates: str | Column
) -> Stream:
    """Aggregates the rows of each key and window: ``aggregate(clicks, tumbling("5m"), keys=["user"], n="count(*)", paid="sum(amount)")``.

    The result of a time window is emitted once, when the current watermark has reached its end; then the window is cleared, and a row
    for it would be late. With an allowed lateness of the source, that is when the watermark minus the lateness has. ``updates`` emits
    early results instead: after each micro-batch the current value of every window that received rows in it, so that the last one
    emitted is final; this is what a sink needs that upserts by the keys and the window's start.

    A `count_window` or a `global_window` with a trigger processes the rows of a timed stream in the order of event time, each as soon as
    the watermark has passed it: the result does not depend on the micro-batch boundaries. Rows of a stream without event time are
    processed in the order of the micro-batches. Some state of each key is kept forever, even after a purge: the number of its results;
    its rows that no purge removes; the last rows of a `count_window` with ``every``. For unbounded keys, such as visit ids, use a time
    window, or `penstock.jobs.blocks.keyed.process.process` with a ``ttl``.

    Args:
        stream: rows; time windows and ``every`` require event time.
        window: `tumbling`, `sliding`, `session`, `cumulative`, `same_window`, `count_window` or `global_window`.
        keys: names of fields; without keys there is one window for all rows (Flink's windowAll), computed by a single task.
        emit: ``final`` or ``updates``; a session has no early results, and a trigger decides for itself.
        aggregates: name -> an aggregate of Spark SQL, as text or as a column; with a trigger, count, sum, min, max, avg, first or last
            of one expression. An aggregate that depends on row order (``first``, ``collect_list``) may differ on a replay, and so may
            the last digits of a sum of doubles; ``min_by(x, at)``, ``array_sort(collect_list(x))`` and sums of decimals do not.

    Returns:
        The keys, then ``window_start`` and ``window_end`` of a time window or, with a trigger, ``window_number`` (the key's results
        counted from 1), then the aggregates. The event time is the window's end minus 1 µs (Flink: 1 ms), so that the result still lies
        in the window; for a global window that of its last row.

    Raises:
        ValueError: no event time where it is required, an unknown key, no aggregates, a duplicate name, early results where there are
            none, updates as input, or an aggregate that a trigger does not support.
    """
    check(stream, window, keys, aggregates, emit)
    data = replace(stream, frame=with_one_event_time(stream.frame))
    if isinstance(window, Global):
        return fired(data, window, keys, aggregates) if window.triggered else _current(data, keys, aggregates)
    frame, column = window.assigned(data.frame)
    # Spark's sessions require a key.
    grouping: Sequence[str | Column] = keys or ([all_rows()] if window.mergeable else [])
    grouped = frame.groupBy(*grouping, column.alias("_window")).agg(*_columns(data.frame, aggregates))
    return Stream(unfolded(grouped, keys, list(aggregates)), timed=True, updates=emit == "updates")


def _current(data: Stream, keys: Sequence[str], aggregates: Mapping[str, str | Column]) -> Stream:
    """The current value, over all rows so far, of each key that received rows in the micro-batch."""
    time = F.max(TIME) if data.timed else F.max(F.lit(None).cast("timestamp"))
    # Without a key Spark would emit the value after every micro-batch.
    grouping: Sequence[str | Column] = keys or [all_rows()]
    grouped = data.frame.groupBy(*grouping).agg(*_columns(data.frame, aggregates), time.alias("_last"))
    return replace(data, frame=grouped.select(*keys, *aggregates, as_event_time(F.col("_last"), TIME)), updates=True)


def _columns(frame: DataFrame, aggregates: Mapping[str, str | Column]) -> list[Column]:
    return [_column(frame, value).alias(name) for name, value in aggregates.items()]


def _column(frame: DataFrame, value: str | Column) -> Column:
    return as_column(without_distinct(frame, value) if isinstance(value, str) else value)


def all_rows() -> Column:
    """A key that all rows have. Spark takes a constant for no key."""
    return F.pmod(F.unix_millis(TIME), F.lit(1)).alias("_all")


def check(stream: Stream, window: TimeWindow | Global, keys: Sequence[str], aggregates: Mapping[str, object], emit: Emit) -> None:
    """Validates a declaration. Raises as `aggregate`."""
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
    if isinstance(window, Same) and not {START, END} <= set(stream.fields):
        raise ValueError(f"the rows lack {START} and {END}, by which an earlier aggregate identifies its window; specify a window")
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
    """Checks that the keys exist and the result's names are unique. Raises as `aggregate`."""
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
    """The result's columns and its event time, from rows of keys, ``_window`` and the aggregates."""
    start, end_ms = F.col("_window").start, whole_ms(F.col("_window").end)
    end = F.timestamp_millis(end_ms)
    return grouped.select(*keys, start.alias(START), end.alias(END), *names, as_event_time(last_moment(end_ms), TIME))


def last_moment(end_ms: Column) -> Column:
    """The event time of a window's result, from the window's end in epoch milliseconds.

    It is earlier than the end, and later than the watermark that closed the window: Spark's watermark is 1 ms behind Penstock's if an
    operator follows, which would drop a result exactly at the watermark.
    """
    return F.timestamp_micros(end_ms * 1000 - 1)


def whole_ms(end: Column) -> Column:
    """A window's end in epoch milliseconds. A session's end is a microsecond earlier, see `penstock.jobs.blocks.windows.kinds`."""
    return F.unix_millis(end + F.expr("interval 999 microseconds"))
