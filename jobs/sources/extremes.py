"""Values that parse and yet would stop a job: times that Python does not know, decimals that a task would round for minutes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, MapType, StructType, TimestampNTZType, TimestampType

# Spark 4.3.0 writes out all the digits of a decimal before it finds that it has too many: 30 s for 1e9999999, and 1e2147483647 never ends.
_LONG_EXPONENT = r"(?<=[0-9.])[eE][+-]?[0-9]{5,}"
# In its place: makes a number, in a text or not, one that no decimal takes, and is found out at once.
_TAMED = "1e9999"


def outside_of_the_calendar(column: Column, kind: DataType) -> Column | None:
    """Whether a field has a time outside the years 0001 to 9999.

    Functions of Python get times as ``datetime``, which knows no others: such a row would stop the job for ever.

    Args:
        column: the field.
        kind: its type.

    Returns:
        Null for a null; None for a type that has no times.
    """
    match kind:
        case DateType() | TimestampType() | TimestampNTZType():
            return ~F.year(column).between(1, 9999)
        case StructType():
            return _either([outside_of_the_calendar(column[field.name], field.dataType) for field in kind.fields])
        case ArrayType():
            return _any_element(column, kind.elementType)
        case MapType():
            return _either([_any_element(F.map_keys(column), kind.keyType), _any_element(F.map_values(column), kind.valueType)])
        case _:
            return None


def _any_element(array: Column, kind: DataType) -> Column | None:
    def outside(element: Column) -> Column:
        condition = _either([outside_of_the_calendar(element, kind)])
        assert condition is not None
        return condition

    return None if outside_of_the_calendar(F.lit(None), kind) is None else F.exists(array, outside)


def _either(conditions: Sequence[Column | None]) -> Column | None:
    sure = [F.coalesce(one, F.lit(False)) for one in conditions if one is not None]
    return functools.reduce(Column.__or__, sure) if sure else None


def parsed(text: Column, schema: StructType, parse: Callable[[Column], Column], sound: Callable[[Column], Column]) -> Column:
    """What a parser of Spark's gives for a text, without the decimals that it would spend minutes on.

    A text in which such a number seems to stand is parsed with another number in its place first, which is too great as well. Where that
    finds nothing wrong, it stood in no decimal but in a string or a double, and the text itself is parsed.

    Args:
        text: the value.
        schema: what it is read by.
        parse: the parser.
        sound: whether what it gave is all right.
    """
    if not _has_decimals(schema):
        return parse(text)
    tamed = parse(F.regexp_replace(text, _LONG_EXPONENT, _TAMED))
    return F.when(text.rlike(_LONG_EXPONENT) & ~F.coalesce(sound(tamed), F.lit(False)), tamed).otherwise(parse(text))


def _has_decimals(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_has_decimals(field.dataType) for field in kind.fields)
        case ArrayType():
            return _has_decimals(kind.elementType)
        case MapType():
            return _has_decimals(kind.keyType) or _has_decimals(kind.valueType)
        case _:
            return isinstance(kind, DecimalType)
