"""GROUP BY: the aggregates of a SELECT, and the functions in Python of a group's values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.jobs.blocks.changes import changelog
from penstock.jobs.blocks.joins.regular import OP
from penstock.jobs.blocks.windows import TimeWindow, aggregate
from penstock.jobs.blocks.windows.distinct import without_distinct
from penstock.jobs.blocks.windows.firing import NUMBER
from penstock.jobs.blocks.windows.kinds import Global
from penstock.jobs.sql.statements import Group, Item, Select
from penstock.jobs.sql.tokens import Fragment
from penstock.jobs.sql_views.changes import is_changing, of_changes
from penstock.jobs.sql_views.functions import AggregateCall, Functions
from penstock.jobs.sql_views.tried import Tried
from penstock.jobs.stream.streams import Stream

_OF_WINDOWS = ("window_start", "window_end", NUMBER)


def grouped(tried: Tried, functions: Functions, query: Select, group: Group, window: TimeWindow | Global, stream: Stream) -> Stream:
    """The rows of a SELECT with GROUP BY.

    Args:
        tried: reports what can't be built.
        functions: of the text.
        query: the SELECT.
        group: its GROUP BY.
        window: that of the GROUP BY.
        stream: the rows that are grouped.

    Raises:
        PenstockError: SPEC-045.
    """
    kept, items = _items(tried, query, group)
    if stream.updates:
        need = "rows that no later ones replace; the view has current values, whose earlier ones Structured Streaming cannot take back"
        raise tried.script.refused(group.place, need, "use EMIT CHANGES in the view and select its _op, or a window")
    changing = of_changes(tried, stream, items) if is_changing(stream, items) else {}
    if changing and group.emit != "updates":
        need = f"EMIT UPDATES and no window: the view has changes ({OP}), which may take back a row at any time"
        raise tried.script.refused(group.place, need, f"add EMIT UPDATES, or use {OP} in the aggregates")
    called = {name: call for name, item in items.items() if (call := functions.aggregate_call(item.expression)) is not None}
    aggregates: dict[str, str | Column] = {
        name: called[name].values if name in called else changing.get(name, items[name].expression.text) for name in items
    }
    for name, item in items.items():
        aggregates[name] = _aggregate(tried, stream, item.expression, aggregates[name], by_row=_goes_by_row(window, group))
    aggregated = tried.tried(group.place, lambda: _aggregated(stream, window, group, aggregates))
    for name, call in called.items():
        aggregated = tried.tried(items[name].expression, partial(_applied, aggregated, name, call))
    if query.having:
        aggregated = tried.filtered(aggregated, query.having)
    columns = {item.name: f"`{kept.get(item.name, item.name)}`" for item in query.items}
    for item in query.items:
        place = item.expression
        tried.checked(aggregated, Fragment(columns[item.name], place.line, place.column))
    return tried.tried(group.place, lambda: aggregated.select(**columns))


def _aggregated(stream: Stream, window: TimeWindow | Global, group: Group, aggregates: Mapping[str, str | Column]) -> Stream:
    if group.emit == "changes":
        return changelog(stream, keys=group.keys, **aggregates)
    return aggregate(stream, window, keys=group.keys, emit=group.emit, **aggregates)


def _items(tried: Tried, query: Select, group: Group) -> tuple[dict[str, str], dict[str, Item]]:
    """Name -> key or bound of the window, and name -> aggregate, of the columns."""
    own = [*group.keys, *_OF_WINDOWS, *([OP] if group.emit == "changes" else [])]
    kept = {item.name: item.expression.text.strip("`") for item in query.items if item.expression.text.strip("`") in own}
    aggregates = {item.name: item for item in query.items if item.name not in kept}
    if len(kept) + len(aggregates) < len(query.items) or "*" in aggregates:
        raise tried.script.refused(group.place, "each column once, under its own name", "add AS name; * is not allowed with GROUP BY")
    if group.emit == "changes" and OP not in kept:
        raise tried.script.refused(group.place, f"the column {OP}, the kind of a change", f"add {OP} to the SELECT")
    return kept, aggregates


def _goes_by_row(window: TimeWindow | Global, group: Group) -> bool:
    """Whether aggregates are updated row by row, so that few are possible."""
    return group.emit == "changes" or (isinstance(window, Global) and window.triggered)


def _aggregate(tried: Tried, stream: Stream, place: Fragment, aggregate: str | Column, *, by_row: bool) -> str | Column:
    """An aggregate that Spark can analyse, without DISTINCT."""
    if isinstance(aggregate, str) and not by_row:
        text = aggregate
        aggregate = tried.tried(place, lambda: without_distinct(stream.frame, text))
    column = F.expr(aggregate) if isinstance(aggregate, str) else aggregate
    tried.tried(place, lambda: stream.frame.agg(column).schema)
    return aggregate


def _applied(stream: Stream, name: str, call: AggregateCall) -> Stream:
    """The value, or the rows, that a function returns in place of the list of a group's values."""
    columns: Mapping[str, str | Column] = {field: f"`{field}`" for field in stream.fields if field != name}
    if not call.several:
        return stream.select(**columns, **{name: call.function(F.col(name))})
    listed = "_listed"
    return stream.select(**columns, **{listed: F.col(name)}).explode(name, call.function(F.col(listed))).select(**columns, **{name: name})
