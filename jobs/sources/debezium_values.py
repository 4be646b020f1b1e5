"""Debezium's change events as JSON, with or without their schema: the row that an event leaves, or the row that a delete has removed.

Source: Debezium's documentation, "Change events" of its connectors, "New Record State Extraction" for the names of the metadata.

An event is read as a VARIANT, before a marker in an array of ours: of two events in a record the second would otherwise be lost. Its row is
then read as any JSON value is.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.sources import json_values

# Whether the event removes its row; null for a record without a value.
REMOVED = "_removed"
_EVENT, _ROW, _ORIGINAL, _UNREAD = "_event", "_row", "_original", "_unread"
_END = "_penstock_end"
# Created, read by a snapshot, updated; deleted.
_LEAVES, _REMOVES = ("c", "r", "u"), "d"
# Fields of the app's schema that begin with this are of the event, those of its source with both.
METADATA, _SOURCE = "__", "source_"


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Adds the fields, the error ``_wrong`` of their values and `REMOVED` to records.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        schema: fields of the row. ``__op``, ``__ts_ms`` and the like are those of the event, ``__source_ts_ms`` of its source.
    """
    text = F.col("value").cast("string")
    events = F.try_variant_get(F.try_parse_json(_in_an_array(text)), "$", "array<variant>")
    frame = records.withColumn(_EVENT, F.when(F.is_valid_utf8(text), events))
    is_end = F.try_variant_get(F.col(_EVENT)[1], f"$.{_END}", "boolean")
    first = F.when((F.size(_EVENT) == 2) & is_end, F.col(_EVENT)[0])
    frame = frame.withColumn(_EVENT, F.coalesce(_part(first, "$.payload"), first))
    op = F.try_variant_get(F.col(_EVENT), "$.op", "string")
    row = F.when(op.isin(*_LEAVES), _part(F.col(_EVENT), "$.after")).when(op == _REMOVES, _part(F.col(_EVENT), "$.before"))
    frame = frame.withColumn(REMOVED, F.when(F.col("value").isNotNull(), F.coalesce(op == _REMOVES, F.lit(False)))).withColumn(_ROW, row)
    frame = frame.withColumn(_UNREAD, _unread(text, op)).withColumn(_ORIGINAL, F.col("value"))
    # The reader of JSON takes the value for the row's; the record keeps its own.
    as_json = F.encode(_with_metadata(F.to_json(_ROW), schema), "utf-8")
    frame = json_values.parsed(frame.withColumn("value", F.when(F.col(_UNREAD).isNull(), as_json)), schema)
    frame = frame.withColumn("_wrong", F.coalesce(_UNREAD, "_wrong")).withColumn("value", F.col(_ORIGINAL))
    return frame.drop(_EVENT, _ROW, _UNREAD, _ORIGINAL)


def unwrapped_key(key: Column) -> Column:
    """The text of a record's key, which is in a payload where the connector writes schemas.

    Args:
        key: the key's bytes.
    """
    text = key.cast("string")
    payload = _part(F.try_parse_json(F.when(F.is_valid_utf8(text), text)), "$.payload")
    return F.when(payload.isNull(), text).otherwise(F.to_json(payload))


def _in_an_array(text: Column) -> Column:
    return F.concat(F.lit("["), text, F.lit(f',{{"{_END}":true}}]'))


def _part(of: Column, path: str) -> Column:
    """A part of a VARIANT; null where it is missing or null."""
    part = F.try_variant_get(of, path, "variant")
    return F.when(~F.is_variant_null(part), part)


def _unread(text: Column, op: Column) -> Column:
    """Why there is no row to read."""
    row = F.when(op == _REMOVES, F.lit("before")).otherwise(F.lit("after"))
    return (
        F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(F.col(_EVENT).isNull(), F.lit("the value is not one JSON object"))
        .when(op.isNull(), F.lit("the value is not a change event of Debezium: it has no op"))
        .when(~op.isin(*_LEAVES, _REMOVES), F.concat(F.lit("the change event is no change of a row: op is "), op))
        .when(F.col(_ROW).isNull(), F.concat(F.lit("the change event has no row: op is "), op, F.lit(" without "), row))
    )


def _with_metadata(row: Column, schema: StructType) -> Column:
    """The row's JSON with the fields of the event that the schema has."""
    named = [name for name in schema.names if name.startswith(METADATA)]
    if not named:
        return row
    fields = [F.concat(F.lit(f'"{name}":'), F.coalesce(F.to_json(_part(F.col(_EVENT), _path(name))), F.lit("null"))) for name in named]
    within = F.substring(row, F.lit(2), F.length(row) - 2)
    return F.concat(F.lit("{"), F.concat_ws(",", *fields, F.when(within != "", within)), F.lit("}"))


def _path(name: str) -> str:
    field = name.removeprefix(METADATA)
    return f"$.source['{field.removeprefix(_SOURCE)}']" if field.startswith(_SOURCE) else f"$['{field}']"
