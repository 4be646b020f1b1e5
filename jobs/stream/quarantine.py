"""Quarantine: rejected records, kept with the reason and their origin, and every other row of a side output.

Such a row is one JSON object: ``id``, ``reason``, ``source``, ``topic``, ``partition``, ``offset``, ``timestamp`` (the broker's, ISO
8601), ``key`` and ``value`` as text, or ``keyBase64`` and ``valueBase64`` if they are not UTF-8. By its id, which is also the key of its
Kafka record, a reader recognizes a row that a replay wrote twice:

- ``topic-partition-offset`` of a Kafka record.
- ``source-batch-digest-ordinal`` of any other row; ``source-query-batch-digest-ordinal`` in a further query of a job. The source is that
  of the record, or the name of the tag or the call that made the row; the digest is that of its content; the ordinal counts from 0 the
  rows of the micro-batch that have the same. A replay has the same rows, so it gives them the same ids.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from penstock.jobs.spec import QuarantineLimit
from penstock.jobs.stream.errors import QuarantineLimitReached
from penstock.jobs.stream.leaving import TagCount
from penstock.jobs.stream.side_outputs import REASON, RECORD, TAG
from penstock.jobs.stream.streams import Tag

_REASONS_SHOWN = 3
_DIGEST_DIGITS = 16
_ID = "_id"


def side_records(rows: DataFrame, batch: int, count: TagCount, query: str = "") -> DataFrame:
    """The side-output rows that a micro-batch writes to one sink, in the form that sinks take.

    Args:
        rows: all of them, with the columns of `penstock.jobs.stream.side_outputs.SCHEMA`: with those of another call, two different rows
            could get one id.
        batch: the micro-batch's number.
        count: how many there are. Only those without an offset are shuffled.
        query: name of the query within the job; empty for the first.

    Returns:
        Columns ``key`` and ``value``, both strings.
    """
    if not count.unlocated:
        return _written(_located(rows))
    if count.unlocated == count.rows:
        return _written(_numbered(rows, batch, query))
    return _written(_located(rows.where(~_is_unlocated())).unionByName(_numbered(rows.where(_is_unlocated()), batch, query)))


def _is_unlocated() -> Column:
    return F.col(RECORD)["offset"].isNull()


def _located(rows: DataFrame) -> DataFrame:
    return rows.withColumn(_ID, F.concat_ws("-", *(F.col(RECORD)[part] for part in ("topic", "partition", "offset"))))


def _numbered(rows: DataFrame, batch: int, query: str) -> DataFrame:
    record = F.col(RECORD)
    # Hexadecimal, because a value need not be text.
    content = F.to_json(F.struct(TAG, REASON, record["source"], record["topic"], F.hex(record["key"]), F.hex(record["value"])))
    rows = rows.withColumn("_content", content)
    digest = F.substring(F.sha2("_content", 256), 1, _DIGEST_DIGITS)
    place = [F.lit(part) for part in (query, batch) if part != ""]
    rows = rows.withColumn(_ID, F.concat_ws("-", F.coalesce(record["source"], TAG), *place, digest))
    # By content, in case that two have the same digest.
    same_id = Window.partitionBy(_ID).orderBy("_content")
    ordinal = F.row_number().over(same_id) - 1
    return rows.withColumn(_ID, F.concat_ws("-", _ID, ordinal)).drop("_content")


def _written(rows: DataFrame) -> DataFrame:
    record = F.col(RECORD)
    local = F.to_utc_timestamp(F.timestamp_micros(record["timestamp"]), F.current_timezone())
    timestamp = F.date_format(local, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    body = F.struct(
        F.col(_ID).alias("id"),
        F.col(REASON).alias("reason"),
        record["source"].alias("source"),
        record["topic"].alias("topic"),
        record["partition"].alias("partition"),
        record["offset"].alias("offset"),
        timestamp.alias("timestamp"),
        *_text_or_base64(record["key"], "key"),
        *_text_or_base64(record["value"], "value"),
    )
    return rows.select(F.col(_ID).alias("key"), F.to_json(body).alias("value"))


def _text_or_base64(raw: Column, name: str) -> tuple[Column, Column]:
    text = raw.cast("string")
    readable = F.is_valid_utf8(text)
    return F.when(readable, text).alias(name), F.when(~readable, F.base64(raw)).alias(f"{name}Base64")


def hold_limit(limit: QuarantineLimit, rows: DataFrame | None, bad: int, records: int) -> None:
    """Fails a micro-batch if too many of its records are quarantined.

    Args:
        limit: the spec's limit.
        rows: its side-output rows; None if it has none.
        bad: number of quarantined rows.
        records: number of records that the micro-batch read.

    Raises:
        QuarantineLimitReached: JOB-070.
    """
    if bad < limit.records or bad <= limit.share * records:
        return
    # Rows from a timer, or from a window that closes, may come in a micro-batch that read nothing.
    share = f" ({bad / records:.1%})" if records else ""
    given = f"{bad} of {records} records{share}: {_why(rows)}"
    need = f"at most {limit.share:.1%} of a micro-batch, if {limit.records} or more are malformed; nothing of it is written"
    fix = "fix the producer of these records, or raise the limit; the micro-batch runs again on the next start"
    raise QuarantineLimitReached(path="spec.quarantine", given=given, need=need, fix=fix)


def _why(rows: DataFrame | None) -> str:
    """The most frequent reasons, each with its count and its first place."""
    if rows is None:
        return "their reasons are not kept"
    place = F.struct(*(F.col(RECORD)[part].alias(part) for part in ("topic", "partition", "offset")))
    reasons = rows.where(F.col(TAG) == Tag.QUARANTINED).groupBy(REASON).agg(F.count("*").alias("n"), F.min(place).alias("first"))
    return "; ".join(_said(row) for row in reasons.orderBy(F.desc("n"), REASON).limit(_REASONS_SHOWN).collect())


def _said(row: Row) -> str:
    first = "-".join(str(part) for part in row["first"] if part is not None)
    return f"{row[REASON]} ({row['n']}" + (f", as {first})" if first else ")")
