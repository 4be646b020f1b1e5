"""JSON values: exactly one object.

Spark's parser ignores anything after the first object: of two objects in a record the second would be lost. It is therefore given the
value as the first element of an array that a marker of ours closes; a value that does not end where it should does not reach the marker.

A field that is not in the schema is dropped, a missing one is null, and one of another type makes the value invalid; a STRING accepts
any JSON value as its text.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from penstock.jobs.sources import extremes

_CORRUPT, _ROWS, _END = "_corrupt", "_rows", "_penstock_end"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Adds the struct ``_value`` and its error ``_wrong`` to records.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        schema: fields of the value.
    """
    text = F.col("value").cast("string")
    fields = [StructField(field.name, field.dataType, True) for field in schema.fields]
    row = StructType([*fields, StructField(_END, BooleanType())])
    lenient = StructType([StructField(_ROWS, ArrayType(row)), StructField(_CORRUPT, StringType())])

    def parse(given: Column) -> Column:
        closed = F.concat(F.lit(f'{{"{_ROWS}":['), given, F.lit(f',{{"{_END}":true}}]}}'))
        return F.from_json(closed, lenient, _OPTIONS)

    value = extremes.parsed(text, schema, parse, lambda read: read[_CORRUPT].isNull())
    frame = records.withColumn("_json", F.when(F.is_valid_utf8(text), value))
    return frame.withColumn("_value", F.col("_json")[_ROWS][0]).withColumn("_wrong", _wrong(text, schema)).drop("_json")


def _wrong(text: Column, schema: StructType) -> Column:
    """The first error of a value."""
    rows, value = F.col("_json")[_ROWS], F.col("_value")
    whole = (F.size(rows) == 2) & value.isNotNull() & F.coalesce(rows[1][_END], F.lit(False))
    retyped = F.coalesce(*(_retyped(text, value, field) for field in schema.fields), F.lit(""))
    other = "the value is not JSON of the source's schema"
    return (
        F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(~F.coalesce(whole, F.lit(False)), F.lit(other))
        .when(F.col("_json")[_CORRUPT].isNotNull(), F.concat(F.lit(other), retyped))
    )


def _retyped(text: Column, value: Column, field: StructField) -> Column:
    """Names the field of another type. Only computed for values that are known not to fit."""
    text_value = F.get_json_object(text, f"$['{field.name}']")
    return F.when(value[field.name].isNull() & text_value.isNotNull(), F.lit(f": {field.name} is not {field.dataType.simpleString()}"))
