"""What a task knows of its micro-batch: local properties that the driver sets and Spark sends along with every task.

A task runs in another process, perhaps on another machine, so nothing else of the driver reaches it. A missing property is an error:
with a default, a task would stage rows for micro-batch 0 or treat no row as late, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.stream.errors import TaskWithoutContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINT = "penstock.checkpoint"
_TOKEN = "penstock.fencingToken"
_SIDE_OUTPUTS = "penstock.sideOutputs"
WATERMARK = "penstock.watermark"
BATCH_TIME = "penstock.batchTime"
# org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution.BATCH_ID_KEY, Spark 4.3.0.
_BATCH = "streaming.sql.batchId"
# The job group of a query's jobs is its run id (StreamExecution.runStream); org.apache.spark.SparkContext.SPARK_JOB_GROUP_ID.
_RUN = "spark.jobGroup.id"


@dataclass(frozen=True)
class TaskPlace:
    """Identifies an attempt of a task of a micro-batch.

    Args:
        checkpoint: ``s3a://bucket/folder``.
        token: the driver's fencing token.
        run: id of the run of the query; a query that is planned again has another one.
        batch: the micro-batch's number.
        partition: the task's number in its stage; the same on a replay unless its input is split differently.
        attempt: unique among all attempts of all tasks of a Spark application.
    """

    checkpoint: str
    token: int
    run: str
    batch: int
    partition: int
    attempt: int

    @classmethod
    def here(cls) -> TaskPlace:
        """Of the current task.

        Raises:
            TaskWithoutContext: JOB-084.
        """
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise _missing("a Spark task")
        return cls(
            batch=int(_property(_BATCH)),
            checkpoint=_property(_CHECKPOINT),
            token=int(_property(_TOKEN)),
            run=_property(_RUN),
            partition=context.partitionId(),
            attempt=context.taskAttemptId(),
        )


def set_checkpoint(session: SparkSession, checkpoint: str, token: int, side_outputs: Iterable[str]) -> None:
    """Passes what a job's tasks need to keep rows to the tasks of this thread's queries.

    Args:
        session: Spark's session.
        checkpoint: its URI.
        token: the driver's fencing token.
        side_outputs: tags that have one; the rows of others are only counted.
    """
    session.sparkContext.setLocalProperty(_CHECKPOINT, checkpoint)
    session.sparkContext.setLocalProperty(_SIDE_OUTPUTS, ",".join(side_outputs))
    session.sparkContext.setLocalProperty(_TOKEN, str(token))


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
    # Spark deletes a property that is set to null; an empty one says that there is no watermark yet.
    session.sparkContext.setLocalProperty(WATERMARK, "" if watermark_ms is None else f"{watermark_ms} {cleared_ms}")


def set_batch_time(session: SparkSession, time_ms: int) -> None:
    """Passes the micro-batch's own timestamp to its tasks, inside of it.

    Args:
        session: Spark's session.
        time_ms: in epoch milliseconds.
    """
    session.sparkContext.setLocalProperty(BATCH_TIME, str(time_ms))


def current_run(session: SparkSession) -> str:
    """The id of the query's run, inside its own micro-batch."""
    return session.sparkContext.getLocalProperty(_RUN) or ""


def _property(name: str) -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    value = context.getLocalProperty(name) if context else None
    if value is None:
        raise _missing(f"the local property {name}")
    return value


def _missing(what: str) -> TaskWithoutContext:
    return TaskWithoutContext(
        path="task",
        given="none",
        need=f"{what}, by which a task knows its micro-batch",
        fix="run the block in a job's query, and call no action on its DataFrame outside the query's thread",
    )
