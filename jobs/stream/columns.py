"""Expressions of an app, which are SQL text or Spark's columns.

What a column is made of is read from Spark's JVM by the names of its classes (org.apache.spark.sql.internal, Spark 4.3.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F

Expression = str | Column


def as_column(expression: Expression) -> Column:
    """A column of SQL text, ``amount * 1.19``, or the column itself."""
    return F.expr(expression) if isinstance(expression, str) else expression


@dataclass(frozen=True)
class FunctionCall:
    """A column that is the call of a function by its name.

    Args:
        function: its name, lower-case.
        arguments: its arguments; those that are constants are values.
        distinct: whether it is of distinct arguments.
    """

    function: str
    arguments: Sequence[Any]
    distinct: bool


def as_call(column: Column) -> FunctionCall | str | None:
    """The call that a column is, without its alias; SQL text if the column was made of that; None if it is something else.

    Args:
        column: such as ``F.sum(F.col("amount") * 2)``.
    """
    java: Any = column._jc
    node = java.node()
    while _class(node) == "Alias":
        node = node.child()
    if _class(node) == "SqlExpression":
        return str(node.expression())
    if _class(node) != "UnresolvedFunction":
        return None
    arguments = node.arguments()
    parts = [_argument(arguments.apply(number)) for number in range(arguments.size())]
    return FunctionCall(str(node.functionName()).lower(), parts, bool(node.isDistinct()))


def _argument(node: Any) -> Any:
    match _class(node):
        case "Literal":
            return node.value()
        case "UnresolvedStar":
            return "*"
        case _:
            jvm: Any = SparkContext._jvm
            made: Any = Column
            return made(jvm.org.apache.spark.sql.Column(node))


def _class(node: Any) -> str:
    return str(node.getClass().getSimpleName())
