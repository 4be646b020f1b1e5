"""TIMESTAMP fields of JSON and CSV: ISO 8601 with an offset, and nothing else.

Spark's parsers also take a bare date, a local time, a bare year and a bare number, each as if it were in the session's time zone, which
is not what the producer meant. So such a field is read as text, and converted here.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from penstock.jobs.sources.extremes import anywhere

# Years outside of 0001 to 9999 have this form too: they have a reason of their own.
_INSTANT = r"^[+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"


def fields_as_read(schema: StructType) -> list[StructField]:
    """The fields for a parser, each nullable, with text in place of TIMESTAMP."""
    return [StructField(field.name, _as_read(field.dataType), True) for field in schema.fields]


def fields_as_declared(value: Column, schema: StructType) -> dict[str, Column]:
    """Name -> the field of a parsed value with its type in the schema; null where a text is no instant."""
    return {field.name: _as_declared(value[field.name], field.dataType) for field in schema.fields}


def misread(value: Column, schema: StructType) -> Column:
    """Whether a parsed value has a text that is no instant where the schema has a TIMESTAMP."""
    wrong = F.lit(False)
    for field in schema.fields:
        here = anywhere(value[field.name], field.dataType, _is_no_instant)
        wrong = wrong if here is None else wrong | F.coalesce(here, F.lit(False))
    return wrong


def _is_no_instant(text: Column, kind: DataType) -> Column | None:
    return text.isNotNull() & _instant(text).isNull() if isinstance(kind, TimestampType) else None


def _instant(text: Column) -> Column:
    return F.when(text.rlike(_INSTANT), text.try_cast("timestamp"))


def _as_read(kind: DataType) -> DataType:
    match kind:
        case TimestampType():
            return StringType()
        case StructType():
            return StructType([StructField(field.name, _as_read(field.dataType), field.nullable) for field in kind.fields])
        case ArrayType():
            return ArrayType(_as_read(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_as_read(kind.keyType), _as_read(kind.valueType), kind.valueContainsNull)
        case _:
            return kind


def _as_declared(column: Column, kind: DataType) -> Column:
    if _as_read(kind) == kind:
        return column
    match kind:
        case TimestampType():
            return _instant(column)
        case StructType():
            return F.when(column.isNotNull(), F.struct(*(field.alias(name) for name, field in fields_as_declared(column, kind).items())))
        case ArrayType():
            return F.transform(column, lambda element: _as_declared(element, kind.elementType))
        case MapType():
            keys = F.transform(F.map_keys(column), lambda key: _as_declared(key, kind.keyType))
            return F.map_from_arrays(keys, F.transform(F.map_values(column), lambda one: _as_declared(one, kind.valueType)))
        case _:
            raise AssertionError(kind)
