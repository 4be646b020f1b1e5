"""Quarantine: rejected records, kept with the reason and their origin.

A quarantined record is one JSON object: ``reason``, ``source``, ``topic``, ``partition``, ``offset``, ``timestamp`` (the broker's, ISO
8601), ``key`` and ``value`` as text, or ``keyBase64`` and ``valueBase64`` if they are not UTF-8. Its key is ``topic-partition-offset``,
by which a reader recognises a record that a replay wrote twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import QuarantineLimitReached
from penstock.jobs.spec import QuarantineLimit
from penstock.jobs.stream.streams import REASON, RECORD, TAG, Tag

_REASONS_SHOWN = 3


def side_records(batch: DataFrame, tag: str) -> DataFrame:
    """The rows of a micro-batch with one side-output tag, in the form that the Kafka sink takes.

    Args:
        batch: the micro-batch's rows.
        tag: `Tag.QUARANTINED`, `Tag.LATE`, or a tag of the app.

    Returns:
        Columns ``key`` and ``value``, both strings.
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
    key = F.when(record["topic"].isNotNull(), F.concat_ws("-", record["topic"], record["partition"], record["offset"]))
    return batch.where(F.col(TAG) == tag).select(key.alias("key"), F.to_json(body).alias("value"))


def _text_or_base64(raw: Column, name: str) -> tuple[Column, Column]:
    text = raw.cast("string")
    readable = F.is_valid_utf8(text)
    return F.when(readable, text).alias(name), F.when(~readable, F.base64(raw)).alias(f"{name}Base64")


def hold_limit(limit: QuarantineLimit, frames: Sequence[DataFrame], bad: int, records: int) -> None:
    """Fails a micro-batch if too many of its records are quarantined.

    Args:
        limit: the spec's limit.
        frames: the DataFrames with its quarantined rows.
        bad: number of quarantined rows.
        records: number of records that the micro-batch read.

    Raises:
        QuarantineLimitReached: JOB-070.
    """
    if bad < limit.records or bad <= limit.share * records:
        return
    # Rows from a timer, or from a window that closes, may come in a micro-batch that read nothing.
    share = f" ({bad / records:.1%})" if records else ""
    given = f"{bad} of {records} records{share}: {_why(frames)}"
    need = f"at most {limit.share:.1%} of a micro-batch, if {limit.records} or more are malformed; nothing of it is written"
    fix = "fix the producer of these records, or raise the limit; the micro-batch runs again on the next start"
    raise QuarantineLimitReached(path="spec.quarantine", given=given, need=need, fix=fix)


def _why(frames: Sequence[DataFrame]) -> str:
    """The most frequent reasons, each with its count and its first place."""
    counts: dict[str, tuple[int, str]] = {}
    for frame in frames:
        place = F.struct(*(F.col(RECORD)[part].alias(part) for part in ("topic", "partition", "offset")))
        reasons = frame.where(F.col(TAG) == Tag.QUARANTINED).groupBy(REASON).agg(F.count("*").alias("n"), F.min(place).alias("first"))
        for row in reasons.orderBy(F.desc("n")).limit(_REASONS_SHOWN).collect():
            first = "-".join(str(part) for part in row["first"] if part is not None)
            counts[row[REASON]] = (counts.get(row[REASON], (0, ""))[0] + int(row["n"]), first)
    shown = sorted(counts.items(), key=lambda item: -item[1][0])[:_REASONS_SHOWN]
    return "; ".join(f"{reason} ({count}" + (f", as {first})" if first else ")") for reason, (count, first) in shown)
