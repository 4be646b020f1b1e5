"""Non-deterministic expressions of a query: rejected upstream of a sink whose exactly-once guarantee relies on replay, and upstream of
state on the heap.

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

from penstock.jobs.driver.errors import NotRepeatable, StateNotRepeatable
from penstock.jobs.stream.analyzed_plan import each, keeps_state, kind_of, pattern, plan_of
from penstock.jobs.stream.leaving import is_own

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


def refuse_unrepeatable_state(frame: DataFrame) -> None:
    """Rejects a query with state on the heap if a replay would produce other state.

    RocksDB's files have a unique id in their names and belong to a micro-batch by its commit; a second driver's are ignored. On the heap,
    Spark's provider overwrites the file of a version: that is harmless only if the content is the same.

    Args:
        frame: the query.

    Raises:
        StateNotRepeatable: JOB-085, with all such expressions upstream of state.
    """
    stateful, aggregates = _stateful(plan_of(frame)), pattern(frame, "AGGREGATE_EXPRESSION")
    expressions = list(dict.fromkeys(expression for operator in stateful for expression in _of_plan(operator, aggregates)))
    if expressions:
        need, fix = "deterministic rows upstream of state on the heap", "set state.backend: rocksdb in the spec, or remove the expression"
        raise StateNotRepeatable(path="build", given=", ".join(expressions), need=need, fix=fix)


def unrepeatable(frame: DataFrame) -> list[str]:
    """The expressions of a query whose result may change on a replay, as Spark prints them."""
    return list(_of_plan(plan_of(frame), pattern(frame, "AGGREGATE_EXPRESSION")))


def _stateful(plan: Any) -> Iterator[Any]:
    """The operators with state that are not below another one."""
    if keeps_state(plan):
        yield plan
        return
    for one in each(plan.children()):
        yield from _stateful(one)


def _of_plan(plan: Any, aggregates: Any) -> Iterator[str]:
    kind = kind_of(plan)
    if kind == "Sample":
        yield "a sample"
    for expression in each(plan.expressions()) if kind == "Aggregate" or not plan.deterministic() else ():
        yield from _of_expression(expression, aggregates, orderless=False)
    for child in each(plan.children()):
        yield from _of_plan(child, aggregates)


def _of_expression(expression: Any, aggregates: Any, *, orderless: bool) -> Iterator[str]:
    """The innermost offending expressions; an aggregate offends that is within one of `aggregates`."""
    if expression.deterministic() and not expression.containsPattern(aggregates):
        return
    kind, below = kind_of(expression), list(each(expression.children()))
    # An aggregate is wrapped in an expression of its own.
    aggregate = kind == "AggregateExpression"
    blamed = not expression.deterministic() and all(child.deterministic() for child in below) and not _is_own(expression)
    if blamed:
        yield str(expression.sql())
        return
    for child in below:
        if aggregate and kind_of(child) in _BY_ORDER and not orderless:
            yield str(child.sql())
        else:
            yield from _of_expression(child, aggregates, orderless=kind in _ORDERLESS or (orderless and aggregate))


def _is_own(expression: Any) -> bool:
    """Whether it is a function that counts or takes out rows, whose result a replay repeats."""
    return kind_of(expression) == "ScalaUDF" and expression.udfName().isDefined() and is_own(str(expression.udfName().get()))
