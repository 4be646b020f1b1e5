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


def set_watermark(session: SparkSession, watermark_ms: int | None, cleared_ms: int | None = None) -> None:
    """Passes the current watermark to the tasks of the next micro-batch.

    A local property applies to every job submitted from this thread: the query's own thread inside a micro-batch, and the thread that
    starts the query before the first one.

    Args:
        session: Spark's session.
        watermark_ms: in epoch milliseconds; None if there is none yet.
        cleared_ms: up to where the operators' state may have been cleared; the watermark by default.
    """
    cleared_ms = watermark_ms if cleared_ms is None else cleared_ms
    session.sparkContext.setLocalProperty(_PROPERTY, "" if watermark_ms is None else f"{watermark_ms} {cleared_ms}")


def current_watermark(session: SparkSession) -> DataFrame:
    """One row with the current watermark, in epoch milliseconds or null, evaluated again in every micro-batch.

    Returns:
        A DataFrame of one row with the columns ``_current`` and ``_cleared`` (bigint), as passed to `set_watermark`.
    """
    return session.range(1, numPartitions=1).mapInArrow(_read_property, "_in_force bigint, _cleared bigint")


_PROPERTY = "penstock.watermark.inForceMs"


def _read_property(batches: Any) -> Any:
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    text = context.getLocalProperty(_PROPERTY) if context else None
    current_ms, cleared_ms = map(int, text.split()) if text else (None, None)
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"_in_force": pa.array([current_ms], pa.int64()), "_cleared": pa.array([cleared_ms], pa.int64())})
