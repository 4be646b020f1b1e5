"""Reading event times."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

# ISO 8601 in the form that java.time.OffsetDateTime reads: a date, a time to the second or finer, and an offset. Spark's own cast also
# takes a bare date, a bare year or a local time, which say nothing about the moment that is meant.
ISO_8601 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"


def from_iso_8601(text: Column) -> Column:
    """A timestamp in whole milliseconds, as Flink counts event time; null where the text is not ISO 8601 with an offset."""
    moment = F.when(text.rlike(ISO_8601), text.try_cast("timestamp"))
    return F.timestamp_millis(F.unix_millis(moment))
