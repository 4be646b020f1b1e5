"""What every sink is to a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.storage.checkpoint import Checkpoint

# A time at which everything is due: what a sink is told once its job ends.
FOREVER_MS = 2**62


@dataclass(frozen=True)
class Batch:
    """A micro-batch as a sink sees it.

    Args:
        number: Spark's number of it; a replay has the same.
        rows: rows for this sink.
        time_ms: the micro-batch's own time in epoch milliseconds; a replay has the same.
    """

    number: int
    rows: int
    time_ms: int


class BatchSink(Protocol):
    """Where the rows of each micro-batch go.

    A micro-batch may be written again after a failure: a sink recognises that by the number, or its docstring says what a reader then sees.
    """

    def check(self) -> None:
        """Looks before the query starts whether the sink can be written to.

        Raises:
            PenstockError: it can't, or its settings do not fit what is there.
        """

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch: data columns, with the envelope beside them."""

    def idle(self, now_ms: int) -> None:
        """Called now and then between micro-batches while there is nothing to do, `now_ms` by the clock; with `FOREVER_MS` at the end."""


@dataclass(frozen=True)
class SinkContext:
    """What sinks are built from beside their spec.

    Args:
        job: name of the job.
        session: Spark's session.
        kafka: how to reach the brokers.
        connections: name -> URL of databases and endpoints, credentials included.
        output_bucket: the environment's.
        identity: tells this checkpoint from any other.
        checkpoint: where manifests lie.
        app: the app's module, for functions that it brings.
        updates: whether an output's row stands for the one with the same key before it, see `penstock.jobs.stream.streams.Stream`.
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
