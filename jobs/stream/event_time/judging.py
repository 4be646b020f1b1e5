"""Compares a row's event time with the micro-batch's clock and with the watermark: what is ahead, what is late, what still counts.

The clock is the micro-batch's own timestamp, which Spark keeps in its offset log: unlike the machine's clock, it is the same on a
replay.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.spec.sources import EventTime
from penstock.jobs.stream.event_time.timestamps import NEEDED, event_time
from penstock.jobs.stream.leaving import batch_time, current_watermark
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import DELETED, TIME

# How far a row is behind the watermark in ms (null if it is not), and whether that makes it late. `judged` adds both.
BEHIND, LATE = "_behind_ms", "_late"
_NOW = "_now_ms"


def timed(frame: DataFrame, name: str, time: EventTime | None, field: Callable[[str], Column], schema: StructType) -> DataFrame:
    """Adds the event time to rows, or the reason why a row has none.

    Args:
        frame: with the column ``_reason``, null for rows that are valid so far.
        name: name of the source, for errors.
        time: the source's `time`; None: no event time.
        field: name -> column of a field of the schema.
        schema: of the fields.

    Returns:
        The DataFrame with ``_time``, null for rejected records, which must not advance the watermark.

    Raises:
        BadDeclaration: JOB-004, a field whose type cannot have the format.
    """
    if time is None:
        return frame.withColumn(TIME, F.lit(None).cast("timestamp"))
    # In a step of its own: it is asked once a row.
    frame = frame.withColumn(_NOW, batch_time(frame.sparkSession))
    return (_of_clock(frame) if time.kind == "processing" else _of_record(frame, name, time, field, schema)).drop(_NOW)


def _of_clock(frame: DataFrame) -> DataFrame:
    return frame.withColumn(TIME, F.when(F.col(REASON).isNull(), F.timestamp_millis(_NOW)))


def _of_record(frame: DataFrame, name: str, time: EventTime, field: Callable[[str], Column], schema: StructType) -> DataFrame:
    if time.field is not None:
        read = _from_field(frame, name, time.field, time.format, field(time.field), schema)
    else:
        # Truncated to milliseconds, as in Kafka; a file's modification time may be finer.
        read = frame.withColumn(TIME, F.timestamp_millis(F.unix_millis("timestamp")))
    ahead_ms = F.unix_millis(TIME) - F.col(_NOW)
    ahead = F.when(ahead_ms > time.max_ahead, F.concat(F.lit("ahead of the clock by ms: "), ahead_ms.cast("string")))
    # Spark's watermark starts at 1970, and stateful operators silently drop rows as old as that.
    ancient = F.when(F.unix_millis(TIME) <= 0, F.concat(F.lit("not after 1970-01-01T00:00:00Z: "), F.col(TIME).cast("string")))
    read = read.withColumn(REASON, F.coalesce(REASON, ahead, ancient))
    return read.withColumn(TIME, F.when(F.col(REASON).isNull(), F.col(TIME)))


def judged(session: SparkSession, frame: DataFrame, time: EventTime | None) -> DataFrame:
    """Compares rows with the current watermark.

    Args:
        session: Spark's session.
        frame: with the column ``_time``, null for rows without event time.
        time: the source's `time`; None: nothing is late.

    Returns:
        The DataFrame with `BEHIND` and `LATE`.
    """
    if time is None:
        return frame.withColumn(BEHIND, F.lit(None).cast("bigint")).withColumn(LATE, F.lit(False))
    current, cleared = current_watermark(session)
    # In a step of their own: each is asked once a row.
    frame = frame.withColumns({"_current_ms": current, "_cleared_ms": cleared})
    current_ms, cleared_ms = F.col("_current_ms"), F.col("_cleared_ms")
    if time.kind == "processing":
        # Never before the watermark: a clock that was set back must not make rows late.
        frame = frame.withColumn(TIME, F.when(F.col(TIME).isNotNull(), F.greatest(TIME, F.timestamp_millis(current_ms))))
    behind_ms = current_ms - F.unix_millis(TIME)
    # State that an operator has cleared cannot come back, even if the spec allows more lateness than before a restart.
    late = (behind_ms > time.allowed_lateness) | (F.unix_millis(TIME) < cleared_ms)
    judged = {BEHIND: F.when(behind_ms > 0, behind_ms), LATE: F.coalesce(late, F.lit(False))}
    return frame.withColumns(judged).drop("_current_ms", "_cleared_ms")


def behind_reason() -> Column:
    """The reason recorded for a late row."""
    return F.concat(F.lit("older than the watermark by ms: "), F.col(BEHIND).cast("string"))


def _from_field(frame: DataFrame, name: str, named: str, form: str, field: Column, schema: StructType) -> DataFrame:
    moment = event_time(field, schema[named].dataType, form, f'job.source("{name}"), field {named}')
    if DELETED in frame.columns:
        # A tombstone has no value and hence no field: only the broker's timestamp is available.
        moment = F.when(F.col(DELETED), F.timestamp_millis(F.unix_millis("timestamp"))).otherwise(moment)
        field = F.when(F.col(DELETED), F.lit("none is needed")).otherwise(field.cast("string"))
    missing = F.when(field.isNull(), F.lit(f"{named} is missing"))
    unread = F.when(F.col(TIME).isNull(), F.lit(f"{named} is not {NEEDED[form]}"))
    return frame.withColumn(TIME, moment).withColumn(REASON, F.coalesce(REASON, missing, unread))
