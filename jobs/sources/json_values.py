"""JSON values: exactly one object.

Most values are read by `penstock.jobs.sources.plain_json`, and Spark's parser reads the rest. That ignores anything after the first object:
of two objects in a record the second would be lost. So it gets a value as the first element of an array that a marker of ours closes; a
value that does not end where it should does not reach the marker. Where a schema has types that only Spark's parser reads, a value whose
first closing brace is its last character, which cannot have a second object, is first parsed as it is.

A TIMESTAMP is ISO 8601 with an offset. A field that is not in the schema is dropped, a missing one is null, and one of another type makes
the value invalid; a STRING accepts any JSON value as its text.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from penstock.jobs.sources import extremes, instants, plain_json
from penstock.jobs.sources.fields import with_fields

_CORRUPT, _ROWS, _END = "_penstock_corrupt", "_rows", "_penstock_end"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Adds the fields and the error ``_wrong`` of their values to records.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        schema: fields of the value.
    """
    text = F.col("value").cast("string")
    corrupt, end = StructField(_CORRUPT, StringType()), StructField(_END, BooleanType())
    # One type for the values of all parsers, so that a column takes the struct of whichever has read it.
    row = StructType([*instants.fields_as_read(schema), end, corrupt])

    def flat(given: Column) -> Column:
        return F.from_json(given, row, _OPTIONS)

    def closed(given: Column) -> Column:
        array = StructType([StructField(_ROWS, ArrayType(row)), corrupt])
        return F.from_json(F.concat(F.lit(f'{{"{_ROWS}":['), given, F.lit(f',{{"{_END}":true}}]}}')), array, _OPTIONS)

    def sound(read: Column) -> Column:
        return read[_CORRUPT].isNull()

    readable = F.is_valid_utf8(text)
    whole = plain_json.read(records.sparkSession, F.col("value"), row)
    is_sound = F.lit(True)
    if whole is None:
        whole = F.when(readable & _is_flat(F.col("value")), extremes.parsed(text, schema, flat, sound))
        is_sound = sound(F.col("_json"))
    # Each in a column of its own, so that it is computed once.
    frame = records.withColumn("_json", whole)
    frame, converted = instants.with_converted(frame, F.col("_json"), schema)
    frame = frame.withColumn("_done", F.col("_json").isNotNull() & is_sound & ~instants.misread(F.col("_json"), schema, converted))
    in_an_array = F.when(readable, extremes.parsed(text, schema, closed, sound))
    # Only a function of elements has a name for a value that it uses several times, within a step for which Spark generates no code because
    # of from_json. Of the steps around it, Spark makes one method: Java would not compile it with the reasons of each field in it, nor with
    # a choice between the parsers for each (docs/decisions/0037-what-binds.md).
    rest = F.transform(F.array(in_an_array), lambda one: _by_spark(one, text, schema))[0]
    done = _read(F.col("_json"), converted, F.lit(None).cast("string"))
    frame = frame.withColumn("_parsed", F.when(F.col("_done"), done).otherwise(rest)).drop("_json", "_done", *instants.columns(schema))
    parsed = F.col("_parsed")
    declared = {name: parsed["instants"][name] for name in converted}
    frame = with_fields(frame, instants.fields_as_declared(parsed["row"], schema, declared))
    return frame.withColumn("_wrong", parsed["wrong"]).drop("_parsed")


def _by_spark(closed: Column, text: Column, schema: StructType) -> Column:
    row = closed[_ROWS][0]
    return _read(row, instants.converted(row, schema), _wrong(closed, text, schema))


def _read(row: Column, converted: Mapping[str, Column], wrong: Column) -> Column:
    times = [F.struct(*(value.alias(name) for name, value in converted.items())).alias("instants")] if converted else []
    return F.struct(row.alias("row"), wrong.alias("wrong"), *times)


def _is_flat(value: Column) -> Column:
    """Whether bytes can only be one object: they begin with a brace, and the first closing one is the last byte."""
    text = value.cast("string")
    # A part of bytes is copied at once; one of a text would be searched for by its characters.
    before = F.substring(value, F.lit(1), F.octet_length(value) - 1).cast("string")
    return text.startswith("{") & text.endswith("}") & ~before.contains("}")


def _wrong(closed: Column, text: Column, schema: StructType) -> Column:
    """The first error of a value that has been read as an element of an array; null if it is sound."""
    rows = closed[_ROWS]
    whole = (F.size(rows) == 2) & rows[0].isNotNull() & F.coalesce(rows[1][_END], F.lit(False))
    converted = instants.converted(rows[0], schema)
    fields = instants.fields_as_declared(rows[0], schema, converted)
    retyped = F.coalesce(*(_retyped(text, one, fields[one.name]) for one in schema.fields), F.lit(""))
    other = "the value is not JSON of the source's schema"
    return (
        F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(~F.coalesce(whole, F.lit(False)), F.lit(other))
        .when(closed[_CORRUPT].isNotNull() | instants.misread(rows[0], schema, converted), F.concat(F.lit(other), retyped))
    )


def _retyped(text: Column, one: StructField, value: Column) -> Column:
    """Names the field of another type. Only computed for values that are known not to fit."""
    text_value = F.get_json_object(text, f"$['{one.name}']")
    return F.when(value.isNull() & text_value.isNotNull(), F.lit(f": {one.name} is not {one.dataType.simpleString()}"))
