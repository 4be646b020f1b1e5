"""The only module that reaches into Spark's streaming engine.

Spark has no public API to set a query's watermark or to read a micro-batch's observed metrics before the batch is committed. Both are
public methods of its JVM classes (org.apache.spark.sql.execution.streaming.runtime, Spark 4.3.0). Tests cover each of them, so a Spark
version that moves one is noticed at once. ``docs/decisions/0004-watermark.md`` gives the rationale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream.event_time.executed_plan import ExecutedPlan, read_plan
from penstock.jobs.stream.streams import EVENT_TIME_KEY, TIME

# Spark's own watermark must never win: a delay of a hundred years keeps it below any watermark that is set.
NEVER = "36500 days"
NEVER_MS = 36_500 * 86_400_000
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


class Engine:
    """A running query, seen from inside its own micro-batch.

    Args:
        session: the session that started the query.
        name: the query's name.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session = session
        self._name = name

    def observed(self, metrics: str) -> Mapping[str, Any]:
        """The values that ``DataFrame.observe`` collected in this micro-batch, once its rows have been computed.

        Returns:
            Metric -> value; empty if no row passed.
        """
        metric = self._execution().lastExecution().observedMetrics().get(metrics)
        if not metric.isDefined():
            return {}
        row = metric.get()
        return {name: None if row.isNullAt(index) else row.get(index) for index, name in enumerate(row.schema().fieldNames())}

    def observing(self) -> list[str]:
        """Names of everything that ``DataFrame.observe`` collected in this micro-batch."""
        return sorted(filter(None, str(self._execution().lastExecution().observedMetrics().keys().mkString("\n")).split("\n")))

    def executed(self) -> ExecutedPlan:
        """The partitions of this micro-batch, once its rows have been computed."""
        return read_plan(self._execution().lastExecution().executedPlan())

    def partitions(self) -> list[str]:
        """The partitions that this micro-batch reads, ``topic-number`` of each; none for sources other than Kafka."""
        return [f"{topic}-{number}" for topics in self.ends() for topic, parts in topics.items() for number in parts]

    def ends(self) -> list[dict[str, dict[int, int]]]:
        """Where this micro-batch ends, for each source: topic -> partition -> offset; empty for sources other than Kafka."""
        sources = self._offsets("endOffsets")
        return [{topic: {int(number): offset for number, offset in parts.items()} for topic, parts in topics.items()} for topics in sources]

    def latest(self) -> list[dict[str, dict[int, int]]]:
        """Where the topics ended when this micro-batch was planned, as `ends`; empty for a replayed one, which is not planned again."""
        sources = self._offsets("latestOffsets")
        return [{topic: {int(number): offset for number, offset in parts.items()} for topic, parts in topics.items()} for topics in sources]

    def records(self) -> int:
        """How many records this micro-batch reads at most, by its offsets; 0 for sources other than Kafka."""
        return max(0, _sum(self._offsets("endOffsets")) - _sum(self._offsets("startOffsets")))

    def _offsets(self, which: str) -> list[dict[str, dict[str, int]]]:
        """Topic -> partition -> offset, of each source."""
        found = []
        entries = getattr(self._execution().getLatestExecutionContext(), which)().iterator()
        while entries.hasNext():
            text = str(entries.next()._2().json())
            document = json.loads(text) if text.startswith("{") else {}
            found.append({topic: partitions for topic, partitions in document.items() if isinstance(partitions, dict)})
        return found

    def batch_time_ms(self) -> int:
        """The micro-batch's own timestamp in epoch milliseconds; the same on a replay."""
        return int(self._execution().lastExecution().offsetSeqMetadata().batchTimestampMs())

    def set_watermark(self, watermark_ms: int, *, strict: bool) -> None:
        """Sets the watermark of the next micro-batch, in epoch milliseconds.

        Joins, deduplication and transformWithState drop rows at or below Spark's watermark, whereas Penstock's late rows are strictly
        older. Hence one millisecond less if such an operator is in the query (`strict`). A window is compared by its end, which every
        row in it precedes: without such an operator it closes as soon as the watermark reaches its end, as in Flink. Spark writes the
        watermark to the commit log, so a restart continues with it.
        """
        self._execution().watermarkTracker().setWatermark(watermark_ms - 1 if strict else watermark_ms)

    def _execution(self) -> Any:
        queries = self._session._jsparkSession.streams().active()
        return next(query.streamingQuery() for query in queries if query.name() == self._name)


@contextmanager
def ending_with_its_input(session: SparkSession, frame: DataFrame) -> Iterator[None]:
    """Context in which a query of the available data is started so that it terminates.

    An operator with processing-time timers requests another micro-batch after each one, with or without rows
    (TransformWithStateInPySparkExec, shouldRunAnotherBatch, Spark 4.3.0), so it would never end. With such an operator it
    ends without the no-data micro-batches; processing-time timers that are not due by then do not fire.
    """
    if not re.search(r"TransformWithState.*, ProcessingTime,", frame._jdf.queryExecution().analyzed().toString()):
        yield
        return
    before = session.conf.get(_NO_DATA) or "true"
    session.conf.set(_NO_DATA, "false")
    try:
        yield
    finally:
        session.conf.set(_NO_DATA, before)


def with_watermark(frame: DataFrame) -> DataFrame:
    """Marks the event-time column for Spark's stateful operators; the watermark itself is set by `Engine.set_watermark`."""
    return frame.withWatermark(TIME, NEVER)


def unordered(batch: DataFrame) -> DataFrame:
    """The rows of a micro-batch, of which Spark knows no order.

    Spark 4.3.0 takes the order of a micro-batch from the query's physical plan, whose columns the optimizer may have renamed; where the
    rows are then persisted, the order names a column that they don't have: NoSuchElementException, key not found.

    Args:
        batch: what foreachBatch is given: a plan of one operator, LogicalRDD, that has the rows.
    """
    session, frame = batch.sparkSession, batch._jdf
    rows = frame.queryExecution().logical().rdd()
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, frame.schema(), False), session)


def evaluated(rows: DataFrame) -> None:
    """Evaluates all rows, once, without a result."""
    rows.write.format("noop").mode("overwrite").save()


def with_event_time(frame: DataFrame) -> DataFrame:
    """Marks the event-time column again after a step that hides it from Spark: one that runs in Python, or one that recomputes it.

    Spark rejects a second withWatermark on the same path (WatermarkPropagator.scala, Spark 4.3.0). Operators only use the column's
    metadata, org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.delayKey.
    """
    return frame.withColumn(TIME, as_event_time(F.col(TIME), TIME))


def with_one_event_time(frame: DataFrame) -> DataFrame:
    """The rows, for a stateful operator: a column that was derived from the event time is an ordinary one.

    Spark rejects a query in which several columns have the metadata of an event time (MULTIPLE_EVENT_TIME_COLUMNS).
    """
    derived = [field.name for field in frame.schema.fields if field.name != TIME and EVENT_TIME_KEY in field.metadata]
    return frame.withColumns({name: F.col(name).alias(name, metadata={}) for name in derived}) if derived else frame


def as_event_time(column: Column, name: str, *, delay_ms: int = NEVER_MS) -> Column:
    """A column of timestamps, or of windows (a struct of start and end), that Spark compares with the watermark, under a name.

    Args:
        column: the timestamps.
        name: the name of the result.
        delay_ms: the time that deduplication uses.
    """
    return column.alias(name, metadata={EVENT_TIME_KEY: delay_ms})


def _sum(offsets: list[dict[str, dict[str, int]]]) -> int:
    return sum(offset for topics in offsets for partitions in topics.values() for offset in partitions.values())
