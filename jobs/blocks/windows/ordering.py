"""Orders by several expressions, each ascending or descending, as one value that Spark compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.jobs.stream.columns import Expression, as_column

Order = Literal["desc", "asc"]
_DIGITS, _COMPLEMENTS = "0123456789ABCDEF", "FEDCBA9876543210"
# After a text's last digit: greater than any, so that of two texts with the same beginning the longer one comes first.
_END = "G"


def ordered_by(frame: DataFrame, by: Sequence[Expression], orders: Sequence[Order]) -> list[Column]:
    """Columns whose struct orders rows in the direction of the first expression.

    Args:
        frame: the rows.
        by: expressions, the most significant first.
        orders: the direction of each.

    Returns:
        ``_by`` for the first expression, ``_by1`` for the second, and so on. One of the opposite direction is turned around.

    Raises:
        ValueError: a type that cannot be turned around.
    """
    columns = []
    for number, (expression, order) in enumerate(zip(by, orders, strict=True)):
        column = as_column(expression)
        if order != orders[0]:
            kind = frame.select(column.alias("by")).schema["by"].dataType
            # A null is less than any value, turned around greater.
            column = F.struct(column.isNull().alias("is_null"), _turned(column, kind).alias("turned"))
        columns.append(column.alias(f"_by{number or ''}"))
    return columns


def _turned(column: Column, kind: DataType) -> Column:
    """A value that is the greater, the less the column is."""
    match kind:
        case BooleanType():
            return ~column
        case DecimalType():
            return -column
        case FloatType() | DoubleType():
            # To Spark, NaN is greater than any number.
            return F.struct((~F.isnan(column)).alias("is_number"), (-column).alias("negative"))
        case IntegralType() | DateType() | TimestampType() | TimestampNTZType():
            # Unlike the negative, the complement exists for the least number too.
            return F.bitwise_not(_number(column, kind))
        case StringType() | BinaryType():
            return F.concat(F.translate(F.hex(column), _DIGITS, _COMPLEMENTS), F.lit(_END))
        case _:
            need = "a number, a string, a boolean, a date or a timestamp if its direction is not that of the first one"
            raise ValueError(f"an order by {kind.simpleString()}: must be {need}")


def _number(column: Column, kind: DataType) -> Column:
    """An integer in the order of the column."""
    match kind:
        case DateType():
            return F.unix_date(column)
        case TimestampType():
            return F.unix_micros(column)
        case TimestampNTZType():
            return F.timestamp_diff("MICROSECOND", F.expr("TIMESTAMP_NTZ '1970-01-01'"), column)
        case _:
            return column
