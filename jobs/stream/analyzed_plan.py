"""A query as Spark has analyzed it: which operators keep state, and which sources it reads.

Walks the logical plan in Spark's JVM by the names of its classes (org.apache.spark.sql.catalyst.plans.logical, Spark 4.3.0). Tests cover
each class that is named here. Each step of a walk is a call into the JVM, and the expressions of a plan are thousands of parts: only those
are visited for which Spark has noted that they contain what is looked for (org.apache.spark.sql.catalyst.trees.TreePattern).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pyspark.sql import DataFrame

from penstock.jobs.stream.streams import EVENT_TIME_KEY

OperatorKind = Literal["join", "other"]

# Operators that keep state if their input is a stream; a join does if both of its inputs are.
_STATEFUL = frozenset({"Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "FlatMapGroupsWithState", "GlobalLimit"})
# Spark reads and writes their state in two steps of a task, which share it.
_READ_FIRST = frozenset({"Aggregate", "Distinct"})
_STATEFUL_OF_PYTHON = frozenset({"FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark", "TransformWithState"})
_ARBITRARY = frozenset({"TransformWithStateInPySpark", "TransformWithState"})
# A lateral join may call a table function in Python: what its subquery does is not looked at.
_STEPS_OF_PYTHON = frozenset({"MapInArrow", "MapInPandas", "FlatMapGroupsInArrow", "FlatMapGroupsInPandas", "LateralJoin"})
# They compare a row's event time with the watermark, and drop a row that is as old.
_BY_ROW = frozenset({"Join", "Deduplicate", "DeduplicateWithinWatermark", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"})


@dataclass(frozen=True)
class StatefulOperator:
    """An operator that keeps state.

    Args:
        name: of its class in Spark, such as ``Aggregate``.
        kind: ``join`` for a stream-stream join, which has more state stores than others.
        strict: whether it drops rows as old as the watermark. A window is compared by its end, which every row in it precedes.
        arbitrary: whether it is a transformWithState, which requires RocksDB.
    """

    name: str
    kind: OperatorKind
    strict: bool
    arbitrary: bool


def plan_of(frame: DataFrame) -> Any:
    """The root of a query's analyzed plan."""
    return frame._jdf.queryExecution().analyzed()


def kind_of(node: Any) -> str:
    """The class of an operator or an expression."""
    return str(node.getClass().getSimpleName())


def each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala Seq."""
    for index in range(sequence.size()):
        yield sequence.apply(index)


def nodes(plan: Any) -> Iterator[Any]:
    """A plan's operators, or an expression's parts, each before what it is computed from."""
    yield plan
    for child in each(plan.children()):
        yield from nodes(child)


def stateful_operators(frame: DataFrame) -> list[StatefulOperator]:
    """The operators of a query that keep state, in the order of Spark's plan: from the output to the sources."""
    return [_described(node) for node in nodes(plan_of(frame)) if keeps_state(node)]


def keeps_state(node: Any) -> bool:
    """Whether an operator keeps state."""
    kind = kind_of(node)
    if kind not in _STATEFUL | _STATEFUL_OF_PYTHON | {"Join"}:
        return False
    streaming = [bool(child.isStreaming()) for child in each(node.children())]
    return all(streaming) if kind == "Join" else any(streaming)


def confuses_state(operators: Sequence[StatefulOperator]) -> bool:
    """Whether Spark may take the state of an operator for that of another one, if a task computes partitions of both.

    A join opens its state by itself.
    """
    read_first = {operator.name in _READ_FIRST for operator in operators if operator.kind != "join"}
    return read_first == {True, False}


def runs_python(frame: DataFrame) -> bool:
    """Whether a query has steps or functions in Python, of which nobody knows how long they take."""
    plan = plan_of(frame)
    return bool(plan.containsPattern(pattern(frame, "PYTHON_UDF"))) or any(_is_step_of_python(node) for node in nodes(plan))


def pattern(frame: DataFrame, name: str) -> Any:
    """What Spark notes of the parts of an expression, by its name, for `parts`."""
    return getattr(_tree_patterns(frame.sparkSession._jvm), name)()


def parts(expression: Any, containing: Any) -> Iterator[Any]:
    """The parts of an expression that are, or contain, what has a pattern, each before what it is computed from.

    Args:
        expression: in the JVM.
        containing: of `pattern`.
    """
    if expression.containsPattern(containing):
        yield expression
        for child in each(expression.children()):
            yield from parts(child, containing)


def sources_of(frame: DataFrame) -> list[str]:
    """What a query reads, one per place that reads it.

    Returns:
        The name of the function that counts a source's records, see `penstock.jobs.stream.leaving.Operator`, for each of Penstock's
        sources that counts records; for any other, the operator that reads, as Spark prints it.
    """
    return list(_sources(plan_of(frame), pattern(frame, "SCALA_UDF"), counter=None))


@dataclass(frozen=True)
class Flow:
    """Where the rows of a query flow, between what its records are read from and its output.

    Args:
        operators: for each operator that keeps state, in the order of `stateful_operators`, the number of the one that takes its rows;
            None: the output.
        sources: likewise for what is read, in the order of `sources_of`.
    """

    operators: tuple[int | None, ...]
    sources: tuple[int | None, ...]


def flow_of(frame: DataFrame) -> Flow:
    """The flow of a query's rows."""
    operators: list[int | None] = []
    sources: list[int | None] = []
    _follow(plan_of(frame), None, operators, sources)
    return Flow(tuple(operators), tuple(sources))


def _follow(node: Any, taker: int | None, operators: list[int | None], sources: list[int | None]) -> None:
    if keeps_state(node):
        operators.append(taker)
        taker = len(operators) - 1
    children = list(each(node.children()))
    if not children and node.isStreaming():
        sources.append(taker)
    for child in children:
        _follow(child, taker, operators, sources)


def functions_of(frame: DataFrame) -> frozenset[str]:
    """Names of the functions of `penstock.jobs.stream.leaving` in a query."""
    containing = pattern(frame, "SCALA_UDF")
    return frozenset(name for node in nodes(plan_of(frame)) for name in _functions(node, containing) if name.startswith("penstock_"))


def has_distinct_aggregate(frame: DataFrame) -> bool:
    """Whether a streaming aggregation has an aggregate of distinct values."""
    containing = pattern(frame, "AGGREGATE_EXPRESSION")
    aggregates = (part for node in _aggregations(frame) for part in _expressions(node, containing))
    return any(kind_of(part) == "AggregateExpression" and part.isDistinct() for part in aggregates)


def is_grouped_without_event_time(frame: DataFrame) -> bool:
    """Whether a query has a streaming aggregation that never finishes a group, because no event time closes it."""
    return not all(map(_is_closed_by_event_time, _aggregations(frame)))


def has_windows_only(frame: DataFrame) -> bool:
    """Whether a query has streaming aggregations, and event time finishes every group of them."""
    return bool(_aggregations(frame)) and not is_grouped_without_event_time(frame)


def foreign_watermarks(frame: DataFrame, own: str) -> list[str]:
    """The columns of a query that have a watermark with another delay than Penstock's."""
    marks = [node for node in nodes(plan_of(frame)) if kind_of(node) == "EventTimeWatermark"]
    return [str(node.eventTime().name()) for node in marks if str(node.delay()) != own]


def longest_deduplication_ms(frame: DataFrame) -> int:
    """How long the longest ``dropDuplicatesWithinWatermark`` of a query keeps a key, in milliseconds; 0 without one."""
    inputs = [node.children().apply(0) for node in nodes(plan_of(frame)) if kind_of(node) == "DeduplicateWithinWatermark"]
    times = [column for one in inputs for column in each(one.output()) if column.metadata().contains(EVENT_TIME_KEY)]
    return max((int(column.metadata().getLong(EVENT_TIME_KEY)) for column in times), default=0)


def _aggregations(frame: DataFrame) -> list[Any]:
    return [node for node in nodes(plan_of(frame)) if kind_of(node) == "Aggregate" and keeps_state(node)]


def _is_closed_by_event_time(aggregation: Any) -> bool:
    return any(_has_event_time(group) for group in each(aggregation.groupingExpressions()))


def _described(node: Any) -> StatefulOperator:
    kind = kind_of(node)
    return StatefulOperator(kind, "join" if kind == "Join" else "other", _is_strict(node, kind), kind in _ARBITRARY)


def _is_strict(node: Any, kind: str) -> bool:
    if kind in _ARBITRARY:
        return str(node.timeMode()) == "EventTime"
    if kind == "Aggregate":
        return any(_is_event_time(expression) for expression in each(node.groupingExpressions()))
    return kind in _BY_ROW


def _is_event_time(expression: Any) -> bool:
    return _has_event_time(expression) and str(expression.dataType().typeName()) == "timestamp"


def _has_event_time(expression: Any) -> bool:
    """Whether it is a column of event times, or of windows of them."""
    return kind_of(expression) == "AttributeReference" and bool(expression.metadata().contains(EVENT_TIME_KEY))


def _is_step_of_python(node: Any) -> bool:
    kind = kind_of(node)
    return "Python" in kind or kind in _STEPS_OF_PYTHON


def _expressions(node: Any, containing: Any) -> Iterator[Any]:
    """The parts of an operator's expressions that are, or contain, what has a pattern."""
    for expression in each(node.expressions()):
        yield from parts(expression, containing)


def _functions(node: Any, containing: Any) -> Iterator[str]:
    return map(_function, _expressions(node, containing))


def _sources(node: Any, containing: Any, counter: str | None) -> Iterator[str]:
    children = list(each(node.children()))
    if not children:
        if node.isStreaming():
            yield counter or str(node.simpleString(10))
        return
    # The counter nearest to the source is the source's.
    counters = _counters(node, containing)
    for child in children:
        yield from _sources(child, containing, counters[0] if counters else counter)


def _counters(node: Any, containing: Any) -> Sequence[str]:
    if kind_of(node) not in ("Project", "Filter"):
        return ()
    return [name for name in _functions(node, containing) if name.startswith("penstock_count_")]


def _function(part: Any) -> str:
    """The name of a function that is registered with the session; empty for any other part of an expression."""
    return str(part.udfName().get()) if kind_of(part) == "ScalaUDF" and part.udfName().isDefined() else ""


@lru_cache(maxsize=1)
def _tree_patterns(jvm: Any) -> Any:
    """Looked up once: py4j takes each part of the name for a class at first, and looks for it in every jar."""
    return jvm.org.apache.spark.sql.catalyst.trees.TreePattern
