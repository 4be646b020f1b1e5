"""A stream of a job: a frame whose rows are either data or tagged with why they go aside.

Spark reads a source once for each branch of a plan, so a job never branches: a row that does not parse or is late stays in the one frame
with a tag, passes through joins untouched, and is told apart when the micro-batch is written. Beside its data columns a frame has:

==========  =========  ==================================================================================================
column      type       what it is
==========  =========  ==================================================================================================
``_tag``    string     one of `Tag`
``_reason`` string     why the row goes aside; null for data
``_time``   timestamp  event time, whole milliseconds; null for what goes aside and for sources without event time
``_record`` struct     the Kafka record (source, topic, partition, offset, timestamp, key, value) that went aside; else null
==========  =========  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TAG, REASON, TIME, RECORD = "_tag", "_reason", "_time", "_record"
ENVELOPE = (TAG, REASON, TIME, RECORD)


class Tag(StrEnum):
    """What becomes of a row."""

    DATA = "data"
    QUARANTINED = "quarantined"
    LATE = "late"
    FILTERED = "filtered"
    UNMATCHED = "unmatched"


@dataclass(frozen=True)
class Stream:
    """Rows on their way through a job.

    Args:
        frame: the rows, with the envelope's columns beside the data.
        timed: whether the rows have an event time.
    """

    frame: DataFrame
    timed: bool

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

    def transform(self, step: Callable[[DataFrame], DataFrame]) -> Stream:
        """Any step of Spark's own that keeps the envelope's columns.

        Raises:
            ValueError: a column of the envelope is gone.
        """
        frame = step(self.frame)
        gone = [name for name in ENVELOPE if name not in frame.columns]
        if gone:
            raise ValueError(f"the step has dropped {', '.join(gone)}; keep the columns that begin with an underscore")
        return replace(self, frame=frame)
