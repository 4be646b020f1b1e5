"""JSON values: records to columns, and the reason for each record that is no row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

_CORRUPT = "_corrupt"


def parsed(records: DataFrame, schema: StructType, time_field: str | None, event_time: Column | None) -> DataFrame:
    """Records with their fields, and a reason where they have none.

    Args:
        records: Kafka's columns; `value` is binary.
        schema: fields of the value; one that is not nullable has to be there.
        time_field: the field of the event time, for the reason's text.
        event_time: the event time from the struct ``_value``; null where it can't be read.

    Returns:
        The records with ``_value`` (struct of `schema`), ``_time`` and ``_reason`` (null for a row).
    """
    text = F.col("value").cast("string")
    lenient = StructType([StructField(f.name, f.dataType, True) for f in schema.fields] + [StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    frame = records.withColumn("_value", F.when(F.is_valid_utf8(text), F.from_json(text, lenient, options)))
    frame = frame.withColumn("_time", event_time if event_time is not None else F.lit(None).cast("timestamp"))
    frame = frame.withColumn("_reason", _reason(text, schema, time_field))
    # What is no row has no time: it must not move the watermark.
    return frame.withColumn("_time", F.when(F.col("_reason").isNull(), F.col("_time")))


def _reason(text: Column, schema: StructType, time_field: str | None) -> Column:
    """The first thing that is wrong with a record."""
    value = F.col("_value")
    reason = (
        F.when(F.col("value").isNull(), F.lit("the record has no value"))
        .when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(value.isNull() | value[_CORRUPT].isNotNull(), F.lit("the value is not JSON of the source's schema"))
    )
    for field in schema.fields:
        if not field.nullable:
            reason = reason.when(value[field.name].isNull(), F.lit(f"{field.name} is missing"))
    if time_field:
        reason = reason.when(value[time_field].isNull(), F.lit(f"{time_field} is missing"))
        reason = reason.when(F.col("_time").isNull(), F.lit(f"{time_field} is not ISO-8601 with an offset"))
    return reason
