"""The interface of all sinks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.storage.checkpoint import Checkpoint

# A time at which everything is due: passed to a sink when its job ends.
FOREVER_MS = 2**62


@dataclass(frozen=True)
class Batch:
    """A micro-batch, as passed to a sink.

    Args:
        number: Spark's number of the micro-batch; the same in a replay.
        rows: number of rows for this sink; where it evaluates the query itself, the number of records that the micro-batch reads.
        time_ms: time of the micro-batch in epoch milliseconds; the same in a replay.
        few: whether few rows may be left to few tasks; not if these also have to do what the query does with state or in Python.
        apart: whether a task must not read several partitions of the rows. It recomputes those that were lost with an executor, and
            in one task Spark 4.3.0 can't recompute a partition of a streaming aggregation and then one of another operator: the
            latter finds the state of the former in `StateStoreThreadLocalTracker`.
    """

    number: int
    rows: int
    time_ms: int
    few: bool = False
    apart: bool = False

    def spread(self, rows: DataFrame, rows_a_task: int) -> DataFrame:
        """The rows for the tasks that write them: no more tasks than needed, where there are few rows."""
        tasks = max(1, math.ceil(self.rows / rows_a_task))
        if not self.few or self.apart or tasks >= rows.sparkSession.sparkContext.defaultParallelism:
            return rows
        return self.gathered(rows, tasks)

    def gathered(self, rows: DataFrame, tasks: int) -> DataFrame:
        """The rows in at most so many tasks, with a shuffle if a task must not read several partitions."""
        return rows.repartition(tasks) if self.apart else rows.coalesce(tasks)


class BatchSink(Protocol):
    """Destination of the rows of each micro-batch.

    A micro-batch may be written again after a failure: a sink recognizes that by its number, or its docstring states what readers then
    see.
    """

    def check(self) -> None:
        """Checks before the query starts that the sink can be written to.

        Raises:
            PenstockError: it can't be written to, or its settings do not fit the existing table, topic or bucket.
        """

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch: data columns and the event time."""

    def idle(self, now_ms: int) -> None:
        """Called between micro-batches while the query is idle, with the wall-clock time in `now_ms`; with `FOREVER_MS` at the end."""


@dataclass(frozen=True)
class SinkContext:
    """Context that sinks are built with, in addition to their spec.

    Args:
        job: name of the job.
        session: Spark session.
        kafka: connection to the brokers.
        connections: name -> URL of databases and endpoints, credentials included.
        output_bucket: output bucket of the environment.
        identity: unique id of the checkpoint.
        checkpoint: checkpoint with the manifests.
        app: the app's module, for the functions it defines.
        updates: whether a row of an output replaces the earlier one with its key, see `penstock.jobs.stream.streams.Stream`.
    """

    job: str
    session: SparkSession
    kafka: KafkaAccess
    output_bucket: str
    identity: str
    checkpoint: Checkpoint
    connections: Mapping[str, str] = field(default_factory=dict)
    app: ModuleType | None = None
    updates: bool = True
