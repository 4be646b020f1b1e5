"""The envelope of rows produced by a stateful operator."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.jobs.stream.event_time.engine import as_event_time
from penstock.jobs.stream.streams import REASON, RECORD, RECORD_TYPE, TAG, TIME, Tag


def envelope(time: Column) -> list[Column]:
    """The envelope's columns for data.

    Args:
        time: the rows' event time.
    """
    return [
        F.lit(Tag.DATA.value).alias(TAG),
        F.lit(None).cast("string").alias(REASON),
        as_event_time(time, TIME),
        F.lit(None).cast(RECORD_TYPE).alias(RECORD),
    ]
