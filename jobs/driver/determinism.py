"""Non-deterministic expressions of a query: rejected upstream of a sink whose exactly-once guarantee relies on replay.

Spark marks expressions whose result is not a function of their input: random numbers, positional ids, and Python functions declared
``asNondeterministic``. It does not mark what depends on row order, which a shuffle changes: samples, and aggregates such as ``first``
and ``collect_list`` (unless their list is sorted at once). ``current_timestamp()`` is deterministic in a stream: it is the micro-batch's
timestamp, which a replay repeats. A Python function that reads a clock or calls another system without declaring it cannot be detected
here; the sinks' digests detect it when it matters (JOB-007).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame

from penstock.jobs.errors import NotRepeatable

# Spark's aggregate classes whose result is the first row or depends on row order; and the functions that ignore the order of the list
# passed to them.
_BY_ORDER = frozenset({"First", "Last", "AnyValue", "CollectList", "CollectSet"})
_ORDERLESS = frozenset({"SortArray", "ArraySort", "Size"})


def refuse_unrepeatable(frame: DataFrame, sinks: Sequence[str]) -> None:
    """Rejects a query for exactly-once sinks if a replay would produce other rows.

    Args:
        frame: the query.
        sinks: names of the exactly-once sinks that its rows go to; if empty, nothing is rejected.

    Raises:
        NotRepeatable: JOB-062, with all such expressions.
    """
    expressions = list(dict.fromkeys(unrepeatable(frame))) if sinks else []
    if expressions:
        fix = "remove it, or move it to where its result is persisted: a call, state, or the source's records"
        need = f"deterministic rows, for exactly-once delivery to {', '.join(sinks)}"
        raise NotRepeatable(path="build", given=", ".join(expressions), need=need, fix=fix)


def unrepeatable(frame: DataFrame) -> list[str]:
    """The expressions of a query whose result may change on a replay, as Spark prints them."""
    return list(_of_plan(frame._jdf.queryExecution().analyzed()))


def _of_plan(plan: Any) -> Iterator[str]:
    kind = _kind(plan)
    if kind == "Sample":
        yield "a sample"
    for expression in _each(plan.expressions()) if kind == "Aggregate" or not plan.deterministic() else ():
        yield from _of_expression(expression, orderless=False)
    for child in _each(plan.children()):
        yield from _of_plan(child)


def _of_expression(expression: Any, *, orderless: bool) -> Iterator[str]:
    """The innermost offending expressions."""
    kind, below = _kind(expression), list(_each(expression.children()))
    blamed = not expression.deterministic() and all(child.deterministic() for child in below)
    if blamed or (kind in _BY_ORDER and not orderless):
        yield str(expression.sql())
        return
    for child in below:
        # An aggregate is wrapped in an expression of its own.
        yield from _of_expression(child, orderless=kind in _ORDERLESS or (orderless and kind == "AggregateExpression"))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala Seq."""
    for index in range(sequence.size()):
        yield sequence.apply(index)
