"""Values that parse but would stop a job: timestamps outside Python's range, decimals that take minutes to round."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, MapType, StructType, TimestampNTZType, TimestampType

# Spark 4.3.0 writes out all digits of a decimal before it rejects their number: 30 s for 1e9999999, and 1e2147483647 never ends.
_LONG_EXPONENT = r"(?<=[0-9.])[eE][+-]?[0-9]{5,}"
# The first microsecond of the year 1 and that after 9999, both UTC, from 1970 on.
_FIRST_US, _AFTER_US = -62_135_596_800_000_000, 253_402_300_800_000_000
# The replacement: turns the text, in a string or not, into a number that exceeds any decimal and is rejected at once.
_TAMED = "1e9999"


def outside_of_the_calendar(column: Column, kind: DataType) -> Column | None:
    """Whether a field has a timestamp outside the years 0001 to 9999.

    Python functions receive timestamps as ``datetime``, which is limited to these years: such a row would stop the job at every restart.

    Args:
        column: the field.
        kind: its type.

    Returns:
        Null for a null; None for a type without timestamps.
    """
    return anywhere(column, kind, _outside)


def _outside(column: Column, kind: DataType) -> Column | None:
    if isinstance(kind, TimestampType):
        # Two comparisons of numbers: the year of an instant is 250 bytes more of the method that Spark generates for a source.
        return (column < F.timestamp_micros(F.lit(_FIRST_US))) | (column >= F.timestamp_micros(F.lit(_AFTER_US)))
    return ~F.year(column).between(1, 9999) if isinstance(kind, DateType | TimestampNTZType) else None


def anywhere(column: Column, kind: DataType, holds: Callable[[Column, DataType], Column | None]) -> Column | None:
    """Whether a condition holds for a value or, of structs, arrays and maps, for one within it.

    Args:
        column: the value.
        kind: its type.
        holds: the condition for a value of a type; None: it holds for none of that type.

    Returns:
        Null for a null; None for a type of which the condition holds for no value.
    """
    match kind:
        case StructType():
            return _either([anywhere(column[field.name], field.dataType, holds) for field in kind.fields])
        case ArrayType():
            return _any_element(column, kind.elementType, holds)
        case MapType():
            keys, values = F.map_keys(column), F.map_values(column)
            return _either([_any_element(keys, kind.keyType, holds), _any_element(values, kind.valueType, holds)])
        case _:
            return holds(column, kind)


def _any_element(array: Column, kind: DataType, holds: Callable[[Column, DataType], Column | None]) -> Column | None:
    def one(element: Column) -> Column:
        condition = _either([anywhere(element, kind, holds)])
        assert condition is not None
        return condition

    return None if anywhere(F.lit(None), kind, holds) is None else F.exists(array, one)


def _either(conditions: Sequence[Column | None]) -> Column | None:
    sure = [F.coalesce(one, F.lit(False)) for one in conditions if one is not None]
    return functools.reduce(Column.__or__, sure) if sure else None


def parsed(text: Column, schema: StructType, parse: Callable[[Column], Column], sound: Callable[[Column], Column]) -> Column:
    """Result of a Spark parser for a text, without decimals that take minutes to parse.

    A text that appears to contain such a number is first parsed with another number in its place, which exceeds any decimal as well. If
    that parses without an error, the number was not a decimal but part of a string or a double, and the original text is parsed.

    Args:
        text: the value.
        schema: schema to parse it with.
        parse: the parser.
        sound: whether a result of the parser has no errors.
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
