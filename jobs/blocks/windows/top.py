"""The first rows of each key and window by an order (top-n)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.keyed.content import has_map
from penstock.jobs.blocks.windows.aggregation import Emit, all_rows, check, check_names, last_moment, whole_ms
from penstock.jobs.blocks.windows.kinds import END, START, Global, TimeWindow, same_window
from penstock.jobs.blocks.windows.ordering import Order, ordered_by
from penstock.jobs.blocks.windows.ties import Ties, in_order, with_ranks
from penstock.jobs.stream.columns import Expression
from penstock.jobs.stream.event_time.engine import as_event_time, with_one_event_time
from penstock.jobs.stream.streams import TIME, Stream

RANK = "rank"


def top(
    stream: Stream,
    n: int,
    /,
    *,
    by: Expression | Sequence[Expression],
    keys: Sequence[str] = (),
    window: TimeWindow | Global | None = None,
    order: Order | Sequence[Order] = "desc",
    ties: Ties | None = None,
    emit: Emit = "final",
) -> Stream:
    """The first `n` rows of each key and window: ``top(counts, 3, by="n", keys=["region"])``.

    Downstream of `aggregate` it needs no window: it uses that of its rows. Its state is `n` rows for each key and window; with `ties`, all
    rows of each key and window, which must fit in an executor's memory.

    Args:
        stream: rows.
        n: how many, 1 to 10,000.
        by: a SQL expression or a column, or several, the most significant first; rows where the first one is null are not ranked. Of the
            others a null is less than any value.
        keys: names of fields; without keys there is one list for all rows.
        window: a time window; ``global_window()`` with ``emit="updates"`` for the top of all rows so far; None: that of the rows.
        order: descending or ascending; of several expressions one for all, or one for each.
        ties: ranks of rows that are equal in `by`. None: they differ, and the other fields decide, in the direction of the first
            expression (SQL's ROW_NUMBER). ``rank``: they are the same, and as many ranks are left out after them. ``dense_rank``: they are
            the same, and none is left out. With either, all rows of the ranks 1 to `n` are emitted.
        emit: as for `aggregate`; ``updates`` emits the whole list after each micro-batch with rows for it.

    Returns:
        The keys, ``window_start`` and ``window_end`` (not for a global window), ``rank`` from 1, and the other fields. The event time is
        that of `aggregate`.

    Raises:
        ValueError: as `aggregate`; n out of range; no window; a field that is named as a column of the result.
    """
    if not 1 <= n <= 10_000:
        raise ValueError(f"n = {n}: must be from 1 to 10,000")
    expressions, orders = _order(by, order)
    _check_window(stream, window, ties)
    own = [START, END] if window is None else []
    rest = [name for name in stream.fields if name not in (*keys, *own)]
    check(stream, same_window() if window is None else window, keys, {"_best": ""}, emit)
    check_names(stream, keys, dict.fromkeys(rest), (RANK,) if isinstance(window, Global) else (START, END, RANK))
    frame, group = _grouped(with_one_event_time(stream.frame), window)
    ordering = ordered_by(frame, expressions, orders)
    ranked = frame.withColumns({f"_by{number or ''}": column for number, column in enumerate(ordering)}).where(F.col("_by").isNotNull())
    row = F.struct(*rest) if rest else F.struct(F.lit(None).cast("string").alias("_none"))
    bys = [f"_by{number or ''}" for number in range(len(ordering))]
    alike = [F.to_json(name).alias(name) if has_map(frame, name) else F.col(name) for name in rest]
    best = _best(n, row, bys, alike, orders[0]) if ties is None else in_order(row, F.struct(*bys), F.struct(*bys, *alike), orders[0])
    lists = ranked.groupBy(*keys, *group).agg(best.alias("_best"), F.max(TIME).alias("_last"))
    if ties is not None:
        lists = with_ranks(lists, n, orders[0], ties)
    result = _emitted(lists, keys, rest, stream.timed, has_window=not isinstance(window, Global), ranks=ties is not None)
    return replace(stream, frame=result, updates=emit == "updates")


def _order(by: Expression | Sequence[Expression], order: Order | Sequence[Order]) -> tuple[list[Expression], list[Order]]:
    """The expressions and the direction of each."""
    expressions = [by] if isinstance(by, str | Column) else list(by)
    orders: list[Order] = [order] * len(expressions) if isinstance(order, str) else list(order)
    unknown = [one for one in orders if one not in ("desc", "asc")]
    if unknown:
        raise ValueError(f'order = "{unknown[0]}": must be "desc" or "asc"')
    if not expressions or len(orders) != len(expressions):
        raise ValueError(f"{len(expressions)} expressions and {len(orders)} orders: must be at least one, and as many")
    return expressions, orders


def _check_window(stream: Stream, window: TimeWindow | Global | None, ties: Ties | None) -> None:
    if ties not in (None, "rank", "dense_rank"):
        raise ValueError(f'ties = "{ties}": must be "rank" or "dense_rank", or None')
    if isinstance(window, Global) and window.triggered:
        raise ValueError("top-n does not support triggers; use global_window() with emit='updates', or a time window")
    if isinstance(window, Global) and ties is not None:
        raise ValueError("equal ranks require all rows of a window, and a global window keeps its rows forever: use a time window")
    if window is None and not ({START, END} <= set(stream.fields) and stream.timed):
        raise ValueError(f"the rows lack {START} and {END}, which identify the window; specify a window")


def _best(n: int, row: Column, bys: Sequence[str], alike: Sequence[Column], order: Order) -> Column:
    """An aggregate of the first rows."""
    best = F.max_by if order == "desc" else F.min_by
    return best(row, F.struct(*bys, *alike), n)


def _grouped(frame: DataFrame, window: TimeWindow | Global | None) -> tuple[DataFrame, list[Column]]:
    if isinstance(window, Global):
        # Without a key Spark would emit the list after every micro-batch.
        return frame, [all_rows()]
    frame, column = (window or same_window()).assigned(frame)
    return frame, [column.alias("_window")]


def _emitted(lists: DataFrame, keys: Sequence[str], rest: Sequence[str], timed: bool, *, has_window: bool, ranks: bool) -> DataFrame:
    """The rows of the lists. A list has rows, or structs of a rank and a row."""
    end_ms = whole_ms(F.col("_window").end)
    time = last_moment(end_ms) if has_window else F.col("_last")
    bounds = [F.col("_window").start.alias(START), F.timestamp_millis(end_ms).alias(END)] if has_window else []
    # In two steps: an array is only exploded where nothing else is computed.
    rows = lists.select(*keys, *bounds, time.alias("_at"), F.posexplode("_best").alias("_position", "_row"))
    row = F.col("_row.row") if ranks else F.col("_row")
    rank = F.col("_row.rank") if ranks else F.col("_position") + 1
    fields = [row[name].alias(name) for name in rest]
    at = F.col("_at") if timed else F.lit(None).cast("timestamp")
    return rows.select(*keys, *([START, END] if has_window else []), rank.alias(RANK), *fields, as_event_time(at, TIME))
