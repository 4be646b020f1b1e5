"""Decomposable aggregates: computed from partial results that are merged later, or row by row.

Spark's own aggregation supports any aggregate. Two-step aggregation, or state that is updated row by row, must know how an aggregate
decomposes: so a few are supported by name, and their argument may be any expression of Spark SQL, as text or as a column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType

from penstock.jobs.stream.columns import Expression, FunctionCall, as_call, as_column

# Aggregates that can be merged from two partial results.
SPLITTABLE = ("count", "sum", "min", "max", "avg")
# Aggregates that can be updated row by row, in order.
FOLDABLE = (*SPLITTABLE, "first", "last")
_WITH_NULLS = ("first", "last")


@dataclass(frozen=True)
class Call:
    """An aggregate of one argument.

    Args:
        name: of its column.
        function: one of `FOLDABLE`.
        argument: an expression; for ``count(*)``, the number 1.
    """

    name: str
    function: str
    argument: Expression

    @property
    def value(self) -> str:
        """The partial result other than the count."""
        return f"_{self.name}_value"

    @property
    def count(self) -> str:
        """The partial result that counts non-null arguments."""
        return f"_{self.name}_count"

    def by(self, function: str) -> Column:
        """Another aggregate of the same argument.

        Args:
            function: its name in Spark SQL.
        """
        return F.call_function(function, as_column(self.argument))

    def result_type(self, frame: DataFrame) -> DataType:
        """Spark's type of the aggregate over a DataFrame's rows."""
        return _type(frame, self.by(self.function))

    def value_type(self, frame: DataFrame) -> DataType:
        """The type of the partial result that `value` names."""
        return LongType() if self.function == "count" else _type(frame, self.by("sum" if self.function == "avg" else self.function))

    def put_together(self, type_: DataType) -> Column:
        """The aggregate from its two partial results."""
        whole = {"count": F.col(self.count), "avg": F.col(self.value) / F.col(self.count)}.get(self.function, F.col(self.value))
        # Only nulls: 0 / 0, which Spark's division rejects.
        defined = F.when(F.col(self.count) > 0, whole) if self.function == "avg" else whole
        return defined.cast(type_).alias(self.name)


def calls(aggregates: Mapping[str, Expression], known: tuple[str, ...]) -> list[Call]:
    """Parses aggregates into calls.

    Args:
        aggregates: name -> SQL text or a column.
        known: the supported functions.

    Raises:
        ValueError: anything other than one of these functions with one argument.
    """
    return [_call(name, value, known) for name, value in aggregates.items()]


def _call(name: str, value: Expression, known: tuple[str, ...]) -> Call:
    called = as_call(value) if isinstance(value, Column) else value
    function, argument = _of_text(called) if isinstance(called, str) else _of_column(called)
    function = {"mean": "avg"}.get(function, function)
    all_rows = isinstance(argument, str) and argument == "*"
    if argument is None or function not in known or (all_rows and function != "count"):
        raise ValueError(f"{name} = {value} is not one of {', '.join(f'{function}(...)' for function in known)} with one argument")
    return Call(name, function, "1" if all_rows else argument)


def _of_text(text: str) -> tuple[str, Expression | None]:
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text, re.DOTALL)
    argument = match[2].strip() if match is not None else ""
    return (match[1].lower(), argument) if match is not None and _one_argument(argument) else ("", None)


def _of_column(call: FunctionCall | None) -> tuple[str, Expression | None]:
    """``F.first`` and ``F.last`` have a second argument: whether nulls are ignored, which text can't say here either."""
    if call is None or call.distinct or len(call.arguments) != 1 + (call.function in _WITH_NULLS) or call.arguments[1:] == [True]:
        return "", None
    [argument, *_] = call.arguments
    return call.function, argument if isinstance(argument, str | Column) else F.lit(argument)


def _one_argument(text: str) -> bool:
    """Whether parentheses are balanced, with neither a comma nor ``distinct`` outside of them."""
    depth = 0
    # Quoted text is ignored.
    for character in re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "x", text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth < 0 or (character == "," and depth == 0):
            return False
    return bool(text) and depth == 0 and re.match(r"(?i)(distinct|all)\b", text) is None


def _type(frame: DataFrame, aggregate: Column) -> DataType:
    return frame.agg(aggregate.alias("value")).schema["value"].dataType
