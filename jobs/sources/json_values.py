"""JSON values: one object, and nothing after it.

Spark's parser takes what follows the first object for no concern of its own: of two objects in one record the second would be lost. So it
is given the value as the first element of an array that is closed by a mark of ours; what does not end where it should does not get there.

A field that the schema does not have is left out, one that is not there is null, and one of another type makes the value no row; but a
STRING takes any JSON value, as its text.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from penstock.jobs.sources import extremes

_CORRUPT, _ROWS, _END = "_corrupt", "_rows", "_penstock_end"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Records with the struct ``_value`` and what is ``_wrong`` with it.

    Args:
        records: as `penstock.jobs.sources.records` has them.
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
    """The first thing that is wrong with a value."""
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
    """Says which field is of another type. Computed for values alone that are known not to fit."""
    text_value = F.get_json_object(text, f"$['{field.name}']")
    return F.when(value[field.name].isNull() & text_value.isNotNull(), F.lit(f": {field.name} is not {field.dataType.simpleString()}"))
