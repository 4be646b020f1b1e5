"""The one place that reaches into Spark's streaming engine.

Spark has no public way to set a query's watermark or to read a micro-batch's observed metrics before the batch is committed. Both are
public methods of its JVM classes (org.apache.spark.sql.execution.streaming.runtime, Spark 4.3.0); tests hold each of them, so that a new
Spark version that moves one is found at once. ``docs/decisions/0004-watermark.md`` says why it is done so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream.streams import TIME

# What Spark derives from the rows by itself must never win: a delay of a hundred years keeps it below any watermark that is set.
NEVER = "36500 days"
_NEVER_MS = 36_500 * 86_400_000
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_DELAY_KEY = "spark.watermarkDelayMs"


class Engine:
    """A running query, seen from inside of its own micro-batch.

    Args:
        session: the session that started the query.
        name: the query's name.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session = session
        self._name = name

    def observed(self, metrics: str) -> Mapping[str, Any]:
        """What ``DataFrame.observe`` has counted in this micro-batch, once its rows have been computed.

        Returns:
            Metric -> value; empty where no row passed.
        """
        found = self._execution().lastExecution().observedMetrics().get(metrics)
        if not found.isDefined():
            return {}
        row = found.get()
        return {name: None if row.isNullAt(index) else row.get(index) for index, name in enumerate(row.schema().fieldNames())}

    def observing(self) -> list[str]:
        """Names of all that ``DataFrame.observe`` has counted in this micro-batch."""
        return sorted(filter(None, str(self._execution().lastExecution().observedMetrics().keys().mkString("\n")).split("\n")))

    def batch_time_ms(self) -> int:
        """The micro-batch's own time in epoch milliseconds; a replay has the same."""
        return int(self._execution().lastExecution().offsetSeqMetadata().batchTimestampMs())

    def set_watermark(self, watermark_ms: int, *, strict: bool) -> None:
        """Sets the watermark that the next micro-batch begins with, in epoch milliseconds.

        Joins, deduplication and transformWithState drop rows at or below Spark's watermark, and Penstock's late rows are strictly older:
        hence one less where such an operator is in the query (`strict`). A window is held against its end, which every row lies before:
        without such an operator it closes as soon as the watermark has reached its end, as Flink's does. Spark writes the watermark to
        the commit log, so a restart goes on with it.
        """
        self._execution().watermarkTracker().setWatermark(watermark_ms - 1 if strict else watermark_ms)

    def _execution(self) -> Any:
        queries = self._session._jsparkSession.streams().active()
        return next(query.streamingQuery() for query in queries if query.name() == self._name)


@contextmanager
def ending_with_its_input(session: SparkSession, frame: DataFrame) -> Iterator[None]:
    """While a bounded query is started: lets it end.

    An operator that lives by the clock asks for another micro-batch after each, rows or not (TransformWithStateInPySparkExec,
    shouldRunAnotherBatch, Spark 4.3.0), so that a bounded run would never end. With such an operator it ends without the micro-batches that
    have no rows; timers of the clock that are not due by then do not fire.
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
    """Marks the event time for Spark's stateful operators; the watermark itself is set by `Engine.set_watermark`."""
    return frame.withWatermark(TIME, NEVER)


def with_event_time(frame: DataFrame) -> DataFrame:
    """Marks the event time once more after a step that hides it from Spark: one that runs in Python, or one that computes it anew.

    A second withWatermark on the same path is refused (WatermarkPropagator.scala, Spark 4.3.0). What operators go by is the column's
    metadata alone, org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.delayKey.
    """
    return frame.withColumn(TIME, as_event_time(F.col(TIME), TIME))


def as_event_time(column: Column, name: str, *, delay_ms: int = _NEVER_MS) -> Column:
    """A column of times, or of windows (a struct of start and end), that Spark holds against the watermark, under a name.

    Args:
        column: the times.
        name: what it is called.
        delay_ms: what deduplication takes as its time.
    """
    return column.alias(name, metadata={_DELAY_KEY: delay_ms})


def set_watermark(session: SparkSession, watermark_ms: int | None, cleared_ms: int | None = None) -> None:
    """Tells the tasks of the next micro-batch which watermark is in force.

    A local property goes with every job that is submitted from this thread: the query's own inside of a micro-batch, and the thread that
    starts the query before the first.

    Args:
        session: Spark's session.
        watermark_ms: in epoch milliseconds; None while there is none.
        cleared_ms: up to where the operators' state may be gone; by default up to the watermark.
    """
    cleared_ms = watermark_ms if cleared_ms is None else cleared_ms
    session.sparkContext.setLocalProperty(_PROPERTY, "" if watermark_ms is None else f"{watermark_ms} {cleared_ms}")


def current_watermark(session: SparkSession) -> DataFrame:
    """One row with the watermark in force, in epoch milliseconds or null, computed anew in every micro-batch.

    Returns:
        A frame of one row with the columns ``_current`` and ``_cleared`` (bigint), as `set_watermark` was given them.
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
