"""Keys of records: the fields of a deleted row in the key of its tombstone."""

from __future__ import annotations

import functools

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources.extremes import outside_of_the_calendar, parsed
from penstock.jobs.spec import KafkaKey


def key_columns(key: KafkaKey, schema: StructType, where: str, text: Column) -> tuple[dict[str, Column], Column]:
    """The row of a tombstone.

    Args:
        key: format and fields of the key.
        schema: fields of the source.
        where: the source in the app, for errors.
        text: the key as text.

    Returns:
        Name -> value of the fields of `schema`, null except those of the key, and the error of the key (null for none).

    Raises:
        BadDeclaration: JOB-004, the schema lacks a field of the key.
    """
    gone = [name for name in key.fields if name not in schema.names]
    if gone:
        need = f"the fields of the source's key: {', '.join(key.fields)}"
        raise BadDeclaration(
            path=where, given=schema.simpleString(), need=need, fix=f"add {', '.join(gone)}, or correct the key in the spec"
        )
    known = _as_text(text, schema[key.fields[0]]) if key.format == "text" else _as_json(text, key, schema)
    columns = {field.name: F.lit(None).cast(field.dataType) for field in schema.fields} | known
    wrong = F.when(F.col("key").isNull(), F.lit("the record has neither value nor key")).when(
        ~F.is_valid_utf8(text), F.lit("the key is not UTF-8")
    )
    for name, column in known.items():
        wrong = wrong.when(column.isNull(), F.lit(f"the key has no {name} of type {schema[name].dataType.simpleString()}"))
        outside = outside_of_the_calendar(column, schema[name].dataType)
        if outside is not None:
            wrong = wrong.when(outside, F.lit(f"the key's {name} is not within the years 0001 to 9999"))
    return columns, wrong


def _as_text(text: Column, field: StructField) -> dict[str, Column]:
    return {field.name: text if isinstance(field.dataType, StringType) else text.try_cast(field.dataType)}


def _as_json(text: Column, key: KafkaKey, schema: StructType) -> dict[str, Column]:
    fields = StructType([StructField(name, schema[name].dataType) for name in key.fields])
    options = {"mode": "PERMISSIVE", "allowSingleQuotes": "false"}
    columns = parsed(
        text,
        fields,
        lambda given: F.from_json(given, fields, options),
        lambda key: functools.reduce(Column.__and__, (key[name].isNotNull() for name in fields.names)),
    )
    return {name: columns[name] for name in key.fields}
