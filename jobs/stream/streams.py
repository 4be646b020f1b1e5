"""A stream of a job: a DataFrame whose rows are either data or tagged for a side output.

Spark reads a source once for every branch of a plan, so a job never branches: a row that does not parse or is late stays in the one
DataFrame with a tag, passes through joins untouched, and is routed when the micro-batch is written. Beside its data columns the
DataFrame has:

==========  =========  ==================================================================================================
column      type       what it is
==========  =========  ==================================================================================================
``_tag``    string     one of `Tag`
``_reason`` string     why the row goes to a side output; null for data
``_time``   timestamp  event time, whole milliseconds; null for side-output rows and for sources without event time
``_record`` struct     the record (source, topic, partition, offset, timestamp, key, value) of a side-output row; else null
==========  =========  ==================================================================================================

Stateless steps and the interval join pass side-output rows through. Any other stateful operator would have to keep them: upstream of
one, `penstock.jobs.stream.side_outputs.data_rows` takes them out of the DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.stream.declaration import name_tag

TAG, REASON, TIME, RECORD = "_tag", "_reason", "_time", "_record"
ENVELOPE = (TAG, REASON, TIME, RECORD)
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
    HEARTBEAT = "heartbeat"


# Tags that need no side output. Rows with any other tag would be lost without one.
NO_SIDE_OUTPUT = frozenset({Tag.DATA, Tag.LATE, Tag.FILTERED, Tag.UNMATCHED, Tag.HEARTBEAT})
_RESERVED = frozenset({Tag.DATA, Tag.HEARTBEAT})
# The struct of ``_record`` as Spark DDL.
RECORD_TYPE = "struct<source: string, topic: string, partition: int, offset: bigint, timestamp: timestamp, key: binary, value: binary>"


@dataclass(frozen=True)
class Stream:
    """The rows of a job between its sources and its sinks.

    Args:
        frame: the rows, with the envelope's columns beside the data.
        timed: whether the rows have an event time.
        updates: whether a row replaces the earlier row with the same key (Spark's output mode ``update``).
        strict: whether an upstream operator drops rows as old as the watermark, so that Spark's watermark must stay 1 ms behind
            Penstock's.
    """

    frame: DataFrame
    timed: bool
    updates: bool = False
    strict: bool = False

    @property
    def fields(self) -> list[str]:
        """Names of the data columns."""
        return [name for name in self.frame.columns if name not in ENVELOPE]

    def select(self, **columns: str | Column) -> Stream:
        """New data columns from SQL expressions over the current ones: ``select(token="a.token", spent="a.amount + b.fee")``.

        The expressions see nulls for side-output rows.
        """
        wanted = [(F.expr(value) if isinstance(value, str) else value).alias(name) for name, value in columns.items()]
        return replace(self, frame=self.frame.select(*wanted, *ENVELOPE))

    def filter(self, condition: str | Column) -> Stream:
        """Keeps the data rows that satisfy a condition; the rest is counted as filtered. A null condition counts as false."""
        holds = F.expr(condition) if isinstance(condition, str) else condition
        tag = F.when((F.col(TAG) == Tag.DATA) & ~F.coalesce(holds, F.lit(False)), Tag.FILTERED).otherwise(F.col(TAG))
        return replace(self, frame=self.frame.withColumn(TAG, tag))

    def explode(self, name: str, array: str | Column) -> Stream:
        """One row per element of an array, as Flink's flatMap; a data row whose array is empty or null yields none.

        Args:
            name: of the column with the element.
            array: a SQL expression or a column.
        """
        elements = F.expr(array) if isinstance(array, str) else array
        # Side-output rows must pass exactly once; an empty array would drop them.
        once = F.when(F.col(TAG) == Tag.DATA, elements).otherwise(F.array(F.lit(None)))
        return replace(self, frame=self.frame.select("*", F.explode(once).alias(name)))

    def divert(self, tag: str, condition: str | Column, reason: str | Column) -> Stream:
        """Sends the data rows that satisfy a condition to a side output, as in Flink; the rest continues. A null condition counts as false.

        Args:
            tag: the rows' tag, for ``job.side_output(sink, tag)``, without which the app is rejected; a lower-case name.
            condition: a SQL expression or a column.
            reason: a SQL expression or a column of type string.

        Raises:
            ValueError: a reserved tag.
        """
        if tag in _RESERVED:
            raise ValueError(f'divert("{tag}"): {tag} is a reserved tag; use another one')
        name_tag(tag, "stream.divert")
        holds = F.coalesce(F.expr(condition) if isinstance(condition, str) else condition, F.lit(False)) & (F.col(TAG) == Tag.DATA)
        why = F.expr(reason) if isinstance(reason, str) else reason
        marked = self.frame.withColumn("_diverted", holds)
        row = F.to_json(F.struct(*self.fields), {"ignoreNullFields": "false"}).cast("binary")
        return replace(
            self,
            frame=marked.withColumn(RECORD, F.when(F.col("_diverted"), record(F.lit(tag), row)).otherwise(F.col(RECORD)))
            .withColumn(REASON, F.when(F.col("_diverted"), why).otherwise(F.col(REASON)))
            .withColumn(TAG, F.when(F.col("_diverted"), F.lit(tag)).otherwise(F.col(TAG)))
            .drop("_diverted"),
        )

    def transform(self, step: Callable[[DataFrame], DataFrame]) -> Stream:
        """Applies any Spark transformation that keeps the envelope's columns.

        Raises:
            ValueError: an envelope column is missing afterwards.
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
        F.lit(None).cast("timestamp").alias("timestamp"),
        F.lit(None).cast("binary").alias("key"),
        value.alias("value"),
    )
