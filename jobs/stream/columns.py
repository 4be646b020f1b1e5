"""Expressions of an app, which are SQL text or Spark's columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

Expression = str | Column


def as_column(expression: Expression) -> Column:
    """A column of SQL text, ``amount * 1.19``, or the column itself."""
    return F.expr(expression) if isinstance(expression, str) else expression
