"""Decomposable aggregates: computed from partial results that are merged later, or row by row.

Spark's own aggregation supports any aggregate. Two-step aggregation, or state that is updated row by row, must know how an aggregate
decomposes: so a few are supported by name, and their argument may be any expression of Spark SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType

# Aggregates that can be merged from two partial results.
SPLITTABLE = ("count", "sum", "min", "max", "avg")
# Aggregates that can be updated row by row, in order.
FOLDABLE = (*SPLITTABLE, "first", "last")


@dataclass(frozen=True)
class Call:
    """An aggregate of one argument.

    Args:
        name: of its column.
        function: one of `FOLDABLE`.
        argument: a SQL expression; for ``count(*)``, the number 1.
    """

    name: str
    function: str
    argument: str

    @property
    def value(self) -> str:
        """The partial result other than the count."""
        return f"_{self.name}_value"

    @property
    def count(self) -> str:
        """The partial result that counts non-null arguments."""
        return f"_{self.name}_count"

    @property
    def text(self) -> str:
        """As Spark SQL."""
        return f"{self.function}({self.argument})"

    def result_type(self, frame: DataFrame) -> DataType:
        """Spark's type of the aggregate over a DataFrame's rows."""
        return _type(frame, self.text)

    def value_type(self, frame: DataFrame) -> DataType:
        """The type of the partial result that `value` names."""
        return LongType() if self.function == "count" else _type(frame, f"sum({self.argument})" if self.function == "avg" else self.text)

    def put_together(self, type_: DataType) -> Column:
        """The aggregate from its two partial results."""
        whole = {"count": F.col(self.count), "avg": F.col(self.value) / F.col(self.count)}.get(self.function, F.col(self.value))
        # Only nulls: 0 / 0, which Spark's division rejects.
        defined = F.when(F.col(self.count) > 0, whole) if self.function == "avg" else whole
        return defined.cast(type_).alias(self.name)


def calls(aggregates: Mapping[str, str | Column], known: tuple[str, ...]) -> list[Call]:
    """Parses aggregates into calls.

    Args:
        aggregates: name -> text.
        known: the supported functions.

    Raises:
        ValueError: anything other than one of these functions with one argument, as text.
    """
    return [_call(name, value, known) for name, value in aggregates.items()]


def _call(name: str, value: str | Column, known: tuple[str, ...]) -> Call:
    need = f"one of {', '.join(f'{function}(...)' for function in known)} with one argument, as text"
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", value, re.DOTALL) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{name} = {value} is not {need}")
    function, argument = match[1].lower(), match[2].strip()
    function = {"mean": "avg"}.get(function, function)
    if function not in known or not _one_argument(argument) or (argument == "*" and function != "count"):
        raise ValueError(f"{name} = {value} is not {need}")
    return Call(name, function, "1" if argument == "*" else argument)


def _one_argument(text: str) -> bool:
    """Whether parentheses are balanced, with neither a comma nor ``distinct`` outside of them."""
    depth = 0
    # Quoted text is ignored.
    for character in re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "x", text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth < 0 or (character == "," and depth == 0):
            return False
    return bool(text) and depth == 0 and re.match(r"(?i)(distinct|all)\b", text) is None


def _type(frame: DataFrame, text: str) -> DataType:
    return frame.agg(F.expr(text).alias("value")).schema["value"].dataType
