"""Aggregates of a changing result: rows that are taken back count with a minus."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from penstock.jobs.blocks.joins.regular import OP
from penstock.jobs.sql.calls import sole_call
from penstock.jobs.sql.statements import Item
from penstock.jobs.sql_views.tried import Tried
from penstock.jobs.stream.streams import DELETED, Stream

_IS_NEW = f"{OP} IN ('+I', '+U')"
_SIGN = f"IF({_IS_NEW}, 1, -1)"
# Whether no row of a group is left.
_IS_GONE = f"sum({_SIGN}) <= 0"


def is_changing(stream: Stream, items: Mapping[str, Item]) -> bool:
    """Whether rows take back earlier ones, and aggregates leave that to be considered: none of them uses the kind of the change.

    Args:
        stream: the rows that are grouped.
        items: the aggregates, by their names.
    """
    return OP in stream.fields and not any(OP in item.expression.text for item in items.values())


def of_changes(tried: Tried, stream: Stream, items: Mapping[str, Item]) -> dict[str, str]:
    """The aggregates over the rows that are left, by their names.

    Args:
        tried: reports what can't be built.
        stream: rows with the kind of their change.
        items: count, sum or avg of one expression, each alone; or ``_deleted``.

    Raises:
        PenstockError: SPEC-045, any other aggregate.
    """
    return {name: _IS_GONE if item.expression.text == DELETED else _signed(tried, stream, item) for name, item in items.items()}


def _signed(tried: Tried, stream: Stream, item: Item) -> str:
    call = sole_call(tried.script, item.expression)
    function = call.name.lower() if call is not None and len(call.arguments) == 1 else ""
    if call is None or function not in ("count", "sum", "avg") or call.arguments[0].lower().startswith("distinct"):
        need = f"count, sum or avg of one expression, alone: the view has changes ({OP}), and others cannot take a row back"
        fix = f"compute with its result in a view, use {OP} in the aggregate, or use a keyed function (PROCESS)"
        raise tried.script.refused(item.expression, need, fix)
    (argument,) = call.arguments
    count = f"sum({_SIGN})" if argument == "*" else f"sum(CASE WHEN ({argument}) IS NULL THEN 0 ELSE {_SIGN} END)"
    if function == "count":
        return count
    total = f"sum(IF({_IS_NEW}, {argument}, -({argument})))"
    if function == "sum":
        return f"CASE WHEN {count} > 0 THEN {total} END"
    kind = tried.tried(item.expression, lambda: stream.frame.agg(F.expr(f"avg({argument})").alias("value")).schema["value"].dataType)
    return f"CASE WHEN {count} > 0 THEN CAST({total} / {count} AS {kind.simpleString()}) END"
