"""Quarantine: records that go aside, kept with why and where they came from.

A record that was set aside is one JSON object: ``reason``, ``source``, ``topic``, ``partition``, ``offset``, ``timestamp`` (of the broker,
ISO 8601), ``key`` and ``value`` as text, or ``keyBase64`` and ``valueBase64`` where they are not UTF-8. Its key is
``topic-partition-offset``, by which a reader tells a record that a replay has written twice.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.streams import REASON, RECORD, TAG, Tag


def set_aside(batch: DataFrame, tag: Tag) -> DataFrame:
    """The rows of a micro-batch that go aside with one tag, as Kafka's sink takes them.

    Args:
        batch: the micro-batch's rows.
        tag: `Tag.QUARANTINED` or `Tag.LATE`.

    Returns:
        Columns ``key`` and ``value``, both text.
    """
    record = F.col(RECORD)
    timestamp = F.date_format(F.to_utc_timestamp(record["timestamp"], F.current_timezone()), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    body = F.struct(
        F.col(REASON).alias("reason"),
        record["source"].alias("source"),
        record["topic"].alias("topic"),
        record["partition"].alias("partition"),
        record["offset"].alias("offset"),
        timestamp.alias("timestamp"),
        *_text_or_base64(record["key"], "key"),
        *_text_or_base64(record["value"], "value"),
    )
    key = F.concat_ws("-", record["topic"], record["partition"], record["offset"])
    return batch.where(F.col(TAG) == tag).select(key.alias("key"), F.to_json(body).alias("value"))


def _text_or_base64(raw: Column, name: str) -> tuple[Column, Column]:
    text = raw.cast("string")
    readable = F.is_valid_utf8(text)
    return F.when(readable, text).alias(name), F.when(~readable, F.base64(raw)).alias(f"{name}Base64")
