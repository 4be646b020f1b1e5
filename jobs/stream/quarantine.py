"""Quarantine: records that go aside, kept with why and where they came from.

A record that was set aside is one JSON object: ``reason``, ``source``, ``topic``, ``partition``, ``offset``, ``timestamp`` (of the broker,
ISO 8601), ``key`` and ``value`` as text, or ``keyBase64`` and ``valueBase64`` where they are not UTF-8. Its key is
``topic-partition-offset``, by which a reader tells a record that a replay has written twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import QuarantineLimitReached
from penstock.jobs.spec import QuarantineLimit
from penstock.jobs.stream.streams import REASON, RECORD, TAG, Tag

_REASONS_TOLD = 3


def side_records(batch: DataFrame, tag: str) -> DataFrame:
    """The rows of a micro-batch that go aside with one tag, as Kafka's sink takes them.

    Args:
        batch: the micro-batch's rows.
        tag: that of `Tag.QUARANTINED`, `Tag.LATE`, or one of the app's own.

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
    key = F.when(record["topic"].isNotNull(), F.concat_ws("-", record["topic"], record["partition"], record["offset"]))
    return batch.where(F.col(TAG) == tag).select(key.alias("key"), F.to_json(body).alias("value"))


def _text_or_base64(raw: Column, name: str) -> tuple[Column, Column]:
    text = raw.cast("string")
    readable = F.is_valid_utf8(text)
    return F.when(readable, text).alias(name), F.when(~readable, F.base64(raw)).alias(f"{name}Base64")


def hold_limit(limit: QuarantineLimit, frames: Sequence[DataFrame], bad: int, records: int) -> None:
    """Lets a micro-batch pass unless too much of it goes to quarantine.

    Args:
        limit: the spec's.
        frames: where its rows in quarantine are.
        bad: how many these are.
        records: that the micro-batch read.

    Raises:
        QuarantineLimitReached: JOB-070.
    """
    if bad < limit.records or bad <= limit.share * records:
        return
    # Rows of a timer, or of a window that closes, come in a micro-batch that has read nothing.
    share = f" ({bad / records:.1%})" if records else ""
    given = f"{bad} of {records} records{share}: {_why(frames)}"
    need = f"at most {limit.share:.1%} of a micro-batch, if {limit.records} or more are malformed; nothing of it is written"
    fix = "fix the producer of these records, or raise the limit; the micro-batch runs again on the next start"
    raise QuarantineLimitReached(path="spec.quarantine", given=given, need=need, fix=fix)


def _why(frames: Sequence[DataFrame]) -> str:
    """The commonest reasons, each with how often and where first."""
    found: dict[str, tuple[int, str]] = {}
    for frame in frames:
        place = F.struct(*(F.col(RECORD)[part].alias(part) for part in ("topic", "partition", "offset")))
        reasons = frame.where(F.col(TAG) == Tag.QUARANTINED).groupBy(REASON).agg(F.count("*").alias("n"), F.min(place).alias("first"))
        for row in reasons.orderBy(F.desc("n")).limit(_REASONS_TOLD).collect():
            first = "-".join(str(part) for part in row["first"] if part is not None)
            found[row[REASON]] = (found.get(row[REASON], (0, ""))[0] + int(row["n"]), first)
    told = sorted(found.items(), key=lambda item: -item[1][0])[:_REASONS_TOLD]
    return "; ".join(f"{reason} ({count}" + (f", as {first})" if first else ")") for reason, (count, first) in told)
