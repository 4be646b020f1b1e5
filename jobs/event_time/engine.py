"""The one place that reaches into Spark's streaming engine.

Spark has no public way to set a query's watermark or to read a micro-batch's observed metrics before the batch is committed. Both are
public methods of its JVM classes (org.apache.spark.sql.execution.streaming.runtime, Spark 4.3.0); tests hold each of them, so that a new
Spark version that moves one is found at once. ``docs/decisions/0004-watermark.md`` says why it is done so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

# What Spark derives from the rows by itself must never win: a delay of a hundred years keeps it below any watermark that is set.
NEVER = "36500 days"


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

    def batch_time_ms(self) -> int:
        """The micro-batch's own time in epoch milliseconds; a replay has the same."""
        return int(self._execution().lastExecution().offsetSeqMetadata().batchTimestampMs())

    def set_watermark(self, watermark_ms: int) -> None:
        """Sets the watermark that the next micro-batch begins with, in epoch milliseconds.

        Spark drops rows at or below its watermark and Penstock's late rows are strictly older, hence one less. Spark writes it to the
        commit log, so a restart goes on with it.
        """
        self._execution().watermarkTracker().setWatermark(watermark_ms - 1)

    def _execution(self) -> Any:
        queries = self._session._jsparkSession.streams().active()
        return next(query.streamingQuery() for query in queries if query.name() == self._name)


def put_in_force(session: SparkSession, watermark_ms: int | None) -> None:
    """Tells the tasks of the next micro-batch which watermark is in force.

    A local property goes with every job that is submitted from this thread: the query's own inside of a micro-batch, and the thread that
    starts the query before the first.
    """
    session.sparkContext.setLocalProperty(_PROPERTY, "" if watermark_ms is None else str(watermark_ms))


def in_force(session: SparkSession) -> DataFrame:
    """One row with the watermark in force, in epoch milliseconds or null, computed anew in every micro-batch.

    Returns:
        A frame of one row with the column ``_in_force`` (bigint).
    """
    return session.range(1, numPartitions=1).mapInArrow(_read_property, "_in_force bigint")


_PROPERTY = "penstock.watermark.inForceMs"


def _read_property(batches: Any) -> Any:
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    text = context.getLocalProperty(_PROPERTY) if context else None
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"_in_force": pa.array([int(text) if text else None], pa.int64())})
