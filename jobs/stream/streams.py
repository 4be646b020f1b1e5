"""A stream of a job: a DataFrame of data rows.

Spark reads a source once for every branch of a plan, so a job never branches: a row that does not parse, or is late, or that the app
diverts, leaves the stream in the task that finds it (`penstock.jobs.stream.leaving`), and is written with its micro-batch. What stays is
data. Beside the data columns the DataFrame has ``_time``, the event time in whole milliseconds; null for sources without event time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.declaration import name_tag
from penstock.jobs.stream.leaving import kept

TIME = "_time"
# Name of the event time in a DataFrame. Not `TIME`: a pandas frame of transformWithState has no column that begins with an underscore
# (it is made of named tuples, Spark 4.3.0).
EVENT_TIME = "event_time"
# Spark's metadata key of an event-time column (org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.delayKey, Spark 4.3.0).
EVENT_TIME_KEY = "spark.watermarkDelayMs"
# Columns that are not data.
ENVELOPE = (TIME,)
# A data column, only of sources whose tombstones delete: whether the row deletes its key.
DELETED = "_deleted"


class Tag(StrEnum):
    """What a row is. An app may define tags of its own: any other lower-case name."""

    DATA = "data"
    QUARANTINED = "quarantined"
    LATE = "late"
    FILTERED = "filtered"
    UNMATCHED = "unmatched"
    FAILED = "failed"


# Tags of rows that are only counted, and cannot have a side output.
ONLY_COUNTED = frozenset({Tag.DATA, Tag.FILTERED, Tag.UNMATCHED})
# Tags that need no side output. Rows with any other tag would be lost without one.
NO_SIDE_OUTPUT = ONLY_COUNTED | {Tag.LATE}


@dataclass(frozen=True)
class Stream:
    """The rows of a job between its sources and its sinks.

    Args:
        frame: the rows, with the column of the event time beside the data.
        timed: whether the rows have an event time.
        updates: whether a row replaces the earlier row with the same key (Spark's output mode ``update``).
        bound_ms: the source's ``outOfOrderness``; None for rows that stateful blocks have made.
    """

    frame: DataFrame
    timed: bool
    updates: bool = False
    bound_ms: int | None = None

    @property
    def df(self) -> DataFrame:
        """The rows as a Spark DataFrame, see `dataframe`."""
        return self.dataframe()

    def dataframe(self, event_time: str = EVENT_TIME) -> DataFrame:
        """The rows as a Spark DataFrame, for all of its API: expressions, UDFs, joins, aggregations, ``transformWithState``.

        It has the data columns and the event time, if the stream has one. The watermark is Penstock's: ``withWatermark`` is neither
        needed nor possible. ``dropDuplicatesWithinWatermark`` uses the source's ``outOfOrderness``. Give the result to ``job.write``, or
        to ``job.stream`` to go on with blocks.

        Args:
            event_time: name of the column with the event time, a TIMESTAMP.

        Raises:
            ValueError: a data column already has the name.
        """
        if not self.timed:
            return self.frame.drop(TIME)
        if event_time in self.fields and EVENT_TIME_KEY not in self.frame.schema[event_time].metadata:
            raise ValueError(f'the rows have a column {event_time} of their own; name the event time: .dataframe(event_time="...")')
        metadata = self.frame.schema[TIME].metadata if self.bound_ms is None else {EVENT_TIME_KEY: self.bound_ms}
        data = [F.col(_quoted(name)) for name in self.fields if name != event_time]
        return self.frame.select(*data, F.col(TIME).alias(event_time, metadata=metadata))

    @property
    def fields(self) -> list[str]:
        """Names of the data columns."""
        return [name for name in self.frame.columns if name not in ENVELOPE]

    def select(self, **columns: str | Column) -> Stream:
        """New data columns from SQL expressions over the current ones: ``select(token="a.token", spent="a.amount + b.fee")``."""
        wanted = [as_column(value).alias(name) for name, value in columns.items()]
        return replace(self, frame=self.frame.select(*wanted, *ENVELOPE))

    def filter(self, condition: str | Column) -> Stream:
        """Keeps the rows that satisfy a condition; the rest is counted as filtered. A null condition counts as false."""
        return replace(self, frame=kept(self.frame, _holds(condition), Tag.FILTERED))

    def explode(self, name: str, array: str | Column) -> Stream:
        """One row per element of an array, as Flink's flatMap; a row whose array is empty or null yields none.

        Args:
            name: of the column with the element.
            array: a SQL expression or a column.
        """
        return replace(self, frame=self.frame.select("*", F.explode(as_column(array)).alias(name)))

    def divert(self, tag: str, condition: str | Column, reason: str | Column) -> Stream:
        """Sends the rows that satisfy a condition to a side output, as in Flink; the rest continues. A null condition counts as false.

        Args:
            tag: the rows' tag, for ``job.side_output(sink, tag)``, without which the app is rejected; a lower-case name.
            condition: a SQL expression or a column.
            reason: a SQL expression or a column of type string.

        Raises:
            ValueError: a reserved tag.
        """
        if tag in ONLY_COUNTED:
            raise ValueError(f'divert("{tag}"): {tag} is a reserved tag; use another one')
        name_tag(tag, "stream.divert")
        row = F.to_json(F.struct(*self.fields), {"ignoreNullFields": "false"}).cast("binary")
        return replace(self, frame=kept(self.frame, ~_holds(condition), tag, as_column(reason).cast("string"), record(F.lit(tag), row)))

    def transform(self, step: Callable[[DataFrame], DataFrame]) -> Stream:
        """Applies any Spark transformation that keeps the column of the event time. What it removes is not counted.

        Raises:
            ValueError: the column is missing afterwards.
        """
        frame = step(self.frame)
        gone = [name for name in ENVELOPE if name not in frame.columns]
        if gone:
            raise ValueError(f"the step dropped {', '.join(gone)}; keep the columns that start with an underscore")
        return replace(self, frame=frame)


def record(source: Column, value: Column) -> Column:
    """The record of a side-output row that does not correspond to one Kafka record: its origin, and the row as JSON bytes."""
    return F.struct(
        source.alias("source"),
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.lit(None).cast("bigint").alias("timestamp"),
        F.lit(None).cast("binary").alias("key"),
        value.alias("value"),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _holds(condition: str | Column) -> Column:
    return F.coalesce(as_column(condition), F.lit(False))
