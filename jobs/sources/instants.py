"""TIMESTAMP fields of JSON and CSV: ISO 8601 with an offset, and nothing else.

Spark's parsers also take a bare date, a local time, a bare year and a bare number, each as if it were in the session's time zone, which
is not what the producer meant. So such a field is read as text, and converted here.

To convert one costs as much as to read several fields, and 200 bytes of the method that Spark generates for the steps of a source, of
which Java compiles none that is too large (docs/decisions/0037-what-binds.md): the formats convert each once.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from penstock.jobs.sources.extremes import anywhere

# Years outside of 0001 to 9999 have this form too: they have a reason of their own.
_INSTANT = r"^[+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"


def fields_as_read(schema: StructType) -> list[StructField]:
    """The fields for a parser, each nullable, with text in place of TIMESTAMP."""
    return [StructField(field.name, _as_read(field.dataType), True) for field in schema.fields]


def converted(value: Column, schema: StructType) -> dict[str, Column]:
    """Name -> the field of a parsed value with its type in the schema, null where a text is no instant; of the fields with a TIMESTAMP."""
    kinds = {field.name: field.dataType for field in schema.fields if _as_read(field.dataType) != field.dataType}
    return {name: _as_declared(value[name], kind) for name, kind in kinds.items()}


def with_converted(frame: DataFrame, value: Column, schema: StructType) -> tuple[DataFrame, dict[str, Column]]:
    """Adds what `converted` returns, each field in a column of its own: Spark would compute those of a struct anew for every use.

    Returns:
        The frame with `columns`, and name -> its column.
    """
    found = converted(value, schema)
    added = dict(zip(columns(schema), found.values(), strict=True))
    return frame.withColumns(added) if added else frame, dict(zip(found, map(F.col, added), strict=True))


def columns(schema: StructType) -> list[str]:
    """The columns that `with_converted` adds."""
    return [f"_instant_{number}" for number, field in enumerate(schema.fields) if _as_read(field.dataType) != field.dataType]


def fields_as_declared(value: Column, schema: StructType, instants: Mapping[str, Column]) -> dict[str, Column]:
    """Name -> the field of a parsed value with its type in the schema.

    Args:
        value: the parsed value.
        schema: its schema.
        instants: what `converted` has returned, wherever it has been computed.
    """
    return {name: instants.get(name, value[name]) for name in schema.names}


def misread(value: Column, schema: StructType, instants: Mapping[str, Column]) -> Column:
    """Whether a parsed value has a text that is no instant where the schema has a TIMESTAMP.

    Args:
        value: the parsed value.
        schema: its schema.
        instants: what `converted` has returned, wherever it has been computed.
    """
    wrong = F.lit(False)
    for field in schema.fields:
        if isinstance(field.dataType, TimestampType):
            wrong = wrong | (value[field.name].isNotNull() & instants[field.name].isNull())
        elif (here := anywhere(value[field.name], field.dataType, _is_no_instant)) is not None:
            wrong = wrong | F.coalesce(here, F.lit(False))
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
            fields = fields_as_declared(column, kind, converted(column, kind))
            return F.when(column.isNotNull(), F.struct(*(field.alias(name) for name, field in fields.items())))
        case ArrayType():
            return F.transform(column, lambda element: _as_declared(element, kind.elementType))
        case MapType():
            keys = F.transform(F.map_keys(column), lambda key: _as_declared(key, kind.keyType))
            return F.map_from_arrays(keys, F.transform(F.map_values(column), lambda one: _as_declared(one, kind.valueType)))
        case _:
            raise AssertionError(kind)
