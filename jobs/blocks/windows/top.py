"""The first rows of each key and window by an order (top-n)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.keyed.content import has_map
from penstock.jobs.blocks.windows.aggregation import END, START, Emit, all_rows, check, check_names, last_moment, whole_ms
from penstock.jobs.blocks.windows.kinds import Global, TimeWindow
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import as_event_time, with_one_event_time
from penstock.jobs.stream.streams import TIME, Stream

RANK = "rank"


def top(
    stream: Stream,
    n: int,
    /,
    *,
    by: str | Column,
    keys: Sequence[str] = (),
    window: TimeWindow | Global | None = None,
    order: Literal["desc", "asc"] = "desc",
    emit: Emit = "final",
) -> Stream:
    """The first `n` rows of each key and window: ``top(counts, 3, by="n", keys=["region"])``.

    Downstream of `aggregate` it needs no window: it uses that of its rows. Its state is `n` rows for each key and window.

    Args:
        stream: rows.
        n: how many, 1 to 10,000.
        by: a SQL expression or a column; rows where it is null are not ranked. Ties are ordered by the other fields.
        keys: names of fields; without keys there is one list for all rows.
        window: a time window; ``global_window()`` with ``emit="updates"`` for the top of all rows so far; None: that of the rows.
        order: descending or ascending.
        emit: as for `aggregate`; ``updates`` emits the whole list after each micro-batch with rows for it.

    Returns:
        The keys, ``window_start`` and ``window_end`` (not for a global window), ``rank`` from 1, and the other fields. The event time is
        that of `aggregate`.

    Raises:
        ValueError: as `aggregate`; n out of range; no window; a field that is named as a column of the result.
    """
    if not 1 <= n <= 10_000:
        raise ValueError(f"n = {n}: must be from 1 to 10,000")
    if order not in ("desc", "asc"):
        raise ValueError(f'order = "{order}": must be "desc" or "asc"')
    if isinstance(window, Global) and window.triggered:
        raise ValueError("top-n does not support triggers; use global_window() with emit='updates', or a time window")
    windowed = {START, END} <= set(stream.fields)
    if window is None and not (windowed and stream.timed):
        raise ValueError(f"the rows lack {START} and {END}, which identify the window; specify a window")
    own = [START, END] if window is None else []
    rest = [name for name in stream.fields if name not in (*keys, *own)]
    check(stream, _Same() if window is None else window, keys, {"_best": ""}, emit)
    check_names(stream, keys, dict.fromkeys(rest), (RANK,) if isinstance(window, Global) else (START, END, RANK))
    frame, group = _grouped(with_one_event_time(stream.frame), window)
    ordering = as_column(by).alias("_by")
    best = F.max_by if order == "desc" else F.min_by
    ranked = frame.withColumn("_by", ordering).where(F.col("_by").isNotNull())
    row = F.struct(*rest) if rest else F.struct(F.lit(None).cast("string").alias("_none"))
    alike = [F.to_json(name).alias(name) if has_map(frame, name) else F.col(name) for name in rest]
    lists = ranked.groupBy(*keys, *group).agg(best(row, F.struct("_by", *alike), n).alias("_best"), F.max(TIME).alias("_last"))
    result = _emitted(lists, keys, rest, stream.timed, has_window=not isinstance(window, Global))
    return replace(stream, frame=result, updates=emit == "updates")


def _grouped(frame: DataFrame, window: TimeWindow | Global | None) -> tuple[DataFrame, list[Column]]:
    if isinstance(window, Global):
        # Without a key Spark would emit the list after every micro-batch.
        return frame, [all_rows()]
    frame, column = (window or _Same()).assigned(frame)
    return frame, [column.alias("_window")]


def _emitted(lists: DataFrame, keys: Sequence[str], rest: Sequence[str], timed: bool, *, has_window: bool) -> DataFrame:
    end_ms = whole_ms(F.col("_window").end)
    time = last_moment(end_ms) if has_window else F.col("_last")
    bounds = [F.col("_window").start.alias(START), F.timestamp_millis(end_ms).alias(END)] if has_window else []
    # In two steps: an array is only exploded where nothing else is computed.
    rows = lists.select(*keys, *bounds, time.alias("_at"), F.posexplode("_best").alias("_position", "_row"))
    fields = [F.col("_row")[name].alias(name) for name in rest]
    at = F.col("_at") if timed else F.lit(None).cast("timestamp")
    return rows.select(*keys, *([START, END] if has_window else []), (F.col("_position") + 1).alias(RANK), *fields, as_event_time(at, TIME))


class _Same:
    """The window of the incoming rows."""

    mergeable = False

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        window = F.struct(F.col(START).alias("start"), F.col(END).alias("end"))
        return frame.withColumn("_window", as_event_time(window, "_window")), F.col("_window")
