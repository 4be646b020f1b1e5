"""The state that the operators of a query keep, read from its plan in Spark's JVM, see `penstock.jobs.stream.analyzed_plan`.

Columns that nothing needs are not in the state, so the plan is the optimized one. Expressions of aggregates are named as the app has
written them: the optimizer replaces functions in Python by numbered columns.

Source: Spark 4.3.0, org.apache.spark.sql.execution: statefulOperators.scala, aggregate/AggUtils.scala,
streaming/operators/stateful/join/SymmetricHashJoinStateManager.scala.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from penstock.jobs.state_schema import Column, StateSchema
from penstock.jobs.stream.analyzed_plan import each, keeps_state, kind_of, nodes, parts, pattern, plan_of

# Key of a column's metadata: of a keyed function's output, with the state that the function declares, as name -> type.
DECLARED_KEY = "penstock.state"
# Ours: characters of a condition, for people.
_LONGEST = 120
# Spark numbers the columns of each plan anew, and adds the delay of an event time's watermark to its name.
_NUMBER = re.compile(r"#\d+L?(-T\d+ms)?")
# Parameters of lambda functions in Python are numbered for as long as the session lives.
_PARAMETER = re.compile(r"\blambda ([xyz])_\d+#")
# Spark's mark of a column of windows.
_WINDOWS = ("spark.timeWindow", "spark.sessionWindow")


def state_schemas(frame: DataFrame) -> list[StateSchema] | None:
    """The state of the operators of a query, in the order of `analyzed_plan.stateful_operators`.

    Args:
        frame: the query, as it is started.

    Returns:
        A schema for each operator; None if the optimizer has added or removed an operator, so that they can't be told apart.
    """
    analyzed = plan_of(frame)
    before = [node for node in nodes(analyzed) if keeps_state(node)]
    if not before:
        return []
    optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
    after = [node for node in nodes(optimizer.execute(analyzed)) if keeps_state(node)]
    if len(after) != len(before):
        return None
    read = _Reader(frame, before)
    pushed = [_pushed_filters(old, new, optimizer.execute) for old, new in zip(before, after, strict=True)]
    return [read.schema(node).model_copy(update={"filters": filters}) for node, filters in zip(after, pushed, strict=True)]


def _pushed_filters(analyzed: Any, optimized: Any, optimize: Callable[[Any], Any]) -> tuple[str, ...]:
    """Conditions that an app applies after an operator, and that the optimizer has moved before it.

    Args:
        analyzed: the operator.
        optimized: the same one, in the optimized plan.
        optimize: returns an analyzed plan as optimized by itself.
    """
    own = Counter(text for child in each(analyzed.children()) for text in _filters(optimize(child)))
    here = Counter(text for child in each(optimized.children()) for text in _filters(child))
    return tuple(sorted(map(_shortened, (here - own).elements())))


def _filters(plan: Any) -> Iterator[str]:
    """The conditions of the filters between a plan and the state or the sources that it reads, without those that Spark infers."""
    if keeps_state(plan):
        return
    if kind_of(plan) == "Filter":
        yield from (text for one in _conjuncts(plan.condition()) if not (text := _text(one)).startswith("isnotnull("))
    for child in each(plan.children()):
        yield from _filters(child)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if kind_of(condition) == "And":
        for one in each(condition.children()):
            yield from _conjuncts(one)
    else:
        yield condition


def _shortened(text: str) -> str:
    """A text that may have the expressions in it by which columns are read from a record."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({hashlib.sha256(text.encode()).hexdigest()[:8]})"


class _Reader:
    """Reads the operators of an optimized plan.

    Args:
        frame: the query.
        before: its operators in the analyzed plan.
    """

    def __init__(self, frame: DataFrame, before: list[Any]) -> None:
        self._jvm: Any = frame.sparkSession._jvm
        self._aggregates = pattern(frame, "AGGREGATE_EXPRESSION")
        self._texts = {self._id(one.resultId()): _text(one) for node in before for one in self._aggregated(node)}
        self._windows = dict(item for node in before for item in self._window_definitions(node))

    def schema(self, node: Any) -> StateSchema:
        """Of an operator."""
        of: Mapping[str, Callable[[Any], StateSchema]] = {
            "Aggregate": self._aggregate,
            "Join": self._join,
            "Deduplicate": lambda node: StateSchema(keys=tuple(map(_column, each(node.keys())))),
            "DeduplicateWithinWatermark": lambda node: StateSchema(keys=tuple(map(_column, each(node.keys())))),
            "FlatMapGroupsInPandasWithState": self._groups,
            "TransformWithStateInPySpark": self._keyed,
        }
        return of.get(kind_of(node), lambda node: StateSchema())(node)

    def _aggregate(self, node: Any) -> StateSchema:
        values = {}
        for one in self._aggregated(node):
            text = self._texts.get(self._id(one.resultId())) or _text(one)
            values[text] = ", ".join(_type(part) for part in each(one.aggregateFunction().aggBufferAttributes()))
        keys = list(each(node.groupingExpressions()))
        windows = {f"window {_text(key)}": self._windows[number] for key in keys if (number := self._id_of(key)) in self._windows}
        columns = tuple(Column(name=name, type=kind) for name, kind in values.items())
        return StateSchema(keys=tuple(map(_column, keys)), values=columns, details=windows)

    def _join(self, node: Any) -> StateSchema:
        extracted = self._jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(node)
        keys = [*each(extracted.get()._2()), *each(extracted.get()._3())] if extracted.isDefined() else []
        sides = {"left": node.left(), "right": node.right()}
        values = [Column(name=f"{side}.{_text(one)}", type=_type(one)) for side, plan in sides.items() for one in each(plan.output())]
        return StateSchema(keys=tuple(map(_column, keys)), values=tuple(values), details={"join": str(node.joinType())})

    def _groups(self, node: Any) -> StateSchema:
        state = (Column(name="state", type=str(node.stateType().catalogString())),)
        return StateSchema(keys=tuple(map(_column, each(node.groupingAttributes()))), values=state)

    def _keyed(self, node: Any) -> StateSchema:
        declared = [one.metadata().getString(DECLARED_KEY) for one in each(node.outputAttrs()) if one.metadata().contains(DECLARED_KEY)]
        states: dict[str, str] = json.loads(declared[0]) if declared else {}
        values = tuple(Column(name=name, type=kind) for name, kind in sorted(states.items()))
        return StateSchema(keys=tuple(map(_column, each(node.leftAttributes()))), values=values)

    def _aggregated(self, node: Any) -> Iterator[Any]:
        """The aggregates of an aggregation."""
        if kind_of(node) == "Aggregate":
            for expression in each(node.aggregateExpressions()):
                yield from (part for part in parts(expression, self._aggregates) if kind_of(part) == "AggregateExpression")

    def _window_definitions(self, node: Any) -> Iterator[tuple[int, str]]:
        """Number of a column of windows that an aggregation groups by -> a hash of the expression that computes it."""
        if kind_of(node) == "Aggregate":
            for key in each(node.groupingExpressions()):
                if kind_of(key) == "AttributeReference" and any(key.metadata().contains(mark) for mark in _WINDOWS):
                    number = self._id_of(key)
                    text = next((text for below in nodes(node) if (text := self._definition(below, number))), "")
                    yield number, hashlib.sha256(text.encode()).hexdigest()[:8]

    def _definition(self, node: Any, number: int) -> str:
        if kind_of(node) == "Project":
            named = (one for one in each(node.projectList()) if kind_of(one) == "Alias" and self._id_of(one) == number)
            return next((_text(one) for one in named), "")
        if kind_of(node) == "Expand" and any(self._id_of(one) == number for one in each(node.output())):
            return _NUMBER.sub("", str(node.projections().toString()))
        return ""

    def _id_of(self, named: Any) -> int:
        return self._id(named.exprId()) if kind_of(named) in ("AttributeReference", "Alias") else -1

    @staticmethod
    def _id(expression_id: Any) -> int:
        return int(expression_id.id())


def _column(expression: Any) -> Column:
    return Column(name=_text(expression), type=_type(expression))


def _text(expression: Any) -> str:
    """An expression, without what Spark numbers anew for each plan."""
    return _NUMBER.sub("", _PARAMETER.sub(r"lambda \1#", str(expression.toString())))


def _type(expression: Any) -> str:
    return str(expression.dataType().catalogString())
