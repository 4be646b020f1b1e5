"""The only module that reaches into Spark's streaming engine.

Spark has no public API to set a query's watermark or to read a micro-batch's observed metrics before the batch is committed. Both are
public methods of its JVM classes (org.apache.spark.sql.execution.streaming.runtime, Spark 4.3.0). Tests cover each of them, so a Spark
version that moves one is noticed at once. ``docs/decisions/0004-watermark.md`` gives the rationale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream.streams import TIME
from penstock.jobs.stream.task_context import CurrentWatermark
from penstock.jobs.stream.task_errors import in_a_task

# Spark's own watermark must never win: a delay of a hundred years keeps it below any watermark that is set.
NEVER = "36500 days"
_NEVER_MS = 36_500 * 86_400_000
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_DELAY_KEY = "spark.watermarkDelayMs"


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
    """Context in which a bounded query is started so that it terminates.

    An operator with processing-time timers requests another micro-batch after each one, with or without rows
    (TransformWithStateInPySparkExec, shouldRunAnotherBatch, Spark 4.3.0), so a bounded run would never end. With such an operator it
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
        batch: what foreachBatch is given.
    """
    session, frame = batch.sparkSession, batch._jdf
    return DataFrame(session._jsparkSession.internalCreateDataFrame(frame.queryExecution().toRdd(), frame.schema(), False), session)


def with_event_time(frame: DataFrame) -> DataFrame:
    """Marks the event-time column again after a step that hides it from Spark: one that runs in Python, or one that recomputes it.

    Spark rejects a second withWatermark on the same path (WatermarkPropagator.scala, Spark 4.3.0). Operators only use the column's
    metadata, org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.delayKey.
    """
    return frame.withColumn(TIME, as_event_time(F.col(TIME), TIME))


def as_event_time(column: Column, name: str, *, delay_ms: int = _NEVER_MS) -> Column:
    """A column of timestamps, or of windows (a struct of start and end), that Spark compares with the watermark, under a name.

    Args:
        column: the timestamps.
        name: the name of the result.
        delay_ms: the time that deduplication uses.
    """
    return column.alias(name, metadata={_DELAY_KEY: delay_ms})


def current_watermark(session: SparkSession) -> DataFrame:
    """One row with the current watermark, in epoch milliseconds or null, evaluated again in every micro-batch.

    Returns:
        A DataFrame of one row with the columns ``_in_force`` and ``_cleared`` (bigint), as passed to
        `penstock.jobs.stream.task_context.set_watermark`.
    """
    return session.range(1, numPartitions=1).mapInArrow(_read_property, "_in_force bigint, _cleared bigint")


def _read_property(batches: Any) -> Any:
    import pyarrow as pa

    with in_a_task():
        watermark = CurrentWatermark.here()
        columns = {"_in_force": watermark.current_ms, "_cleared": watermark.cleared_ms}
        for _ in batches:
            yield pa.RecordBatch.from_pydict({name: pa.array([value], pa.int64()) for name, value in columns.items()})
