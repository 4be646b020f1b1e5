"""A stream of a job: a frame whose rows are either data or tagged with why they go aside.

Spark reads a source once for each branch of a plan, so a job never branches: a row that does not parse or is late stays in the one frame
with a tag, passes through joins untouched, and is told apart when the micro-batch is written. Beside its data columns a frame has:

==========  =========  ==================================================================================================
column      type       what it is
==========  =========  ==================================================================================================
``_tag``    string     one of `Tag`
``_reason`` string     why the row goes aside; null for data
``_time``   timestamp  event time, whole milliseconds; null for what goes aside and for sources without event time
``_record`` struct     the record (source, topic, partition, offset, timestamp, key, value) that went aside; else null
==========  =========  ==================================================================================================

Stateless steps and the interval join let rows that go aside pass. Every other stateful operator would have to keep them: before one,
`penstock.jobs.stream.side_outputs.data_rows` takes them out of the frame.
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
# A data column, of sources alone whose tombstones delete: whether the row says that its key is gone.
DELETED = "_deleted"


class Tag(StrEnum):
    """What becomes of a row. An app may have tags of its own: any other lower-case name."""

    DATA = "data"
    QUARANTINED = "quarantined"
    LATE = "late"
    FILTERED = "filtered"
    UNMATCHED = "unmatched"
    FAILED = "failed"
    HEARTBEAT = "heartbeat"


# What needs no side output. Rows with any other tag would be lost without one.
NO_SIDE_OUTPUT = frozenset({Tag.DATA, Tag.LATE, Tag.FILTERED, Tag.UNMATCHED, Tag.HEARTBEAT})
_RESERVED = frozenset({Tag.DATA, Tag.HEARTBEAT})
# The struct of ``_record``, as Spark writes it.
RECORD_TYPE = "struct<source: string, topic: string, partition: int, offset: bigint, timestamp: timestamp, key: binary, value: binary>"


@dataclass(frozen=True)
class Stream:
    """Rows on their way through a job.

    Args:
        frame: the rows, with the envelope's columns beside the data.
        timed: whether the rows have an event time.
        updates: whether a row stands for the one with the same key before it (Spark's output mode ``update``).
        strict: whether an operator before would drop rows as old as the watermark itself, so that Spark's has to stay 1 ms behind ours.
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
        """New data columns from SQL expressions over the old ones: ``select(token="a.token", spent="a.amount + b.fee")``.

        The expressions see nulls for rows that go aside.
        """
        wanted = [(F.expr(value) if isinstance(value, str) else value).alias(name) for name, value in columns.items()]
        return replace(self, frame=self.frame.select(*wanted, *ENVELOPE))

    def filter(self, condition: str | Column) -> Stream:
        """Keeps the data for which a condition holds; the rest is counted as filtered, not lost. A null condition does not hold."""
        holds = F.expr(condition) if isinstance(condition, str) else condition
        tag = F.when((F.col(TAG) == Tag.DATA) & ~F.coalesce(holds, F.lit(False)), Tag.FILTERED).otherwise(F.col(TAG))
        return replace(self, frame=self.frame.withColumn(TAG, tag))

    def explode(self, name: str, array: str | Column) -> Stream:
        """A row for each element of an array, as Flink's flatMap; data whose array is empty or null gives none.

        Args:
            name: of the column that has the element.
            array: as a SQL expression or a column.
        """
        elements = F.expr(array) if isinstance(array, str) else array
        # What goes aside has to pass once, and an array without elements would take it away.
        once = F.when(F.col(TAG) == Tag.DATA, elements).otherwise(F.array(F.lit(None)))
        return replace(self, frame=self.frame.select("*", F.explode(once).alias(name)))

    def divert(self, tag: str, condition: str | Column, reason: str | Column) -> Stream:
        """Sends the data for which a condition holds aside, as Flink's side outputs do; the rest goes on. A null condition does not hold.

        Args:
            tag: what the rows are called, for ``job.side_output(sink, tag)``, without which the app is refused; a lower-case name.
            condition: as a SQL expression or a column.
            reason: why, as a text's SQL expression or a column.

        Raises:
            ValueError: a tag that means something else.
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
        """Any step of Spark's own that keeps the envelope's columns.

        Raises:
            ValueError: a column of the envelope is gone.
        """
        frame = step(self.frame)
        gone = [name for name in ENVELOPE if name not in frame.columns]
        if gone:
            raise ValueError(f"the step dropped {', '.join(gone)}; keep the columns that start with an underscore")
        return replace(self, frame=frame)


def record(source: Column, value: Column) -> Column:
    """The record of a row that no Kafka record stands for: where it went aside, and the row as JSON in bytes."""
    return F.struct(
        source.alias("source"),
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.lit(None).cast("timestamp").alias("timestamp"),
        F.lit(None).cast("binary").alias("key"),
        value.alias("value"),
    )
