"""One micro-batch: its rows to the sinks, its record to the checkpoint, the next watermark to the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.checkpoint import BatchRecord, Checkpoint
from jobs.event_time import observation
from jobs.event_time.engine import Engine, put_in_force
from jobs.event_time.watermark import InputTime, Seen
from jobs.quarantine import set_aside
from jobs.sinks.files import Files
from jobs.sinks.topics import Topic
from jobs.streams import TAG, Tag

Emit = Callable[[str, Mapping[str, object]], None]


class PartitionsGrew(Exception):
    """A topic has partitions that the running query was not planned for; the query is planned anew and runs the micro-batch again."""


class Stopping(Exception):
    """The job has to stop, and the micro-batch that would come next is not begun."""


@dataclass
class MicroBatches:
    """What Spark calls with every micro-batch.

    Each sink is idempotent by the micro-batch's number or writes at least once, and Spark commits after this returns: a crash anywhere in
    it runs it again.

    Args:
        session: Spark's session.
        engine: the query, seen from inside.
        checkpoint: where the record goes.
        times: input -> how its event time behaves, for the inputs that have one.
        partitions: input -> partitions of its topic when the query was planned.
        output: the sink of the data rows.
        side_outputs: tag -> the topic of the rows that go aside.
        last: the record of the micro-batch before.
        emit: tells whoever started the driver.
        failure: what the last call raised.
        stopping: once set, no further micro-batch is begun.
    """

    session: SparkSession
    engine: Engine
    checkpoint: Checkpoint
    times: Mapping[str, InputTime]
    partitions: Mapping[str, int]
    output: Files | Topic
    side_outputs: Mapping[Tag, Topic]
    last: BatchRecord
    emit: Emit
    failure: Exception | None = field(default=None)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Runs one micro-batch. What it raises is kept in `failure`, for Spark hands on only its text."""
        try:
            self._run(batch, number)
        except Exception as error:
            self.failure = error
            raise

    def _run(self, batch: DataFrame, number: int) -> None:
        if self.stopping.is_set():
            raise Stopping
        batch.persist()
        try:
            tags = {row[TAG]: int(row["count"]) for row in batch.groupBy(TAG).count().collect()}
            metrics = {name: self.engine.observed(observation.PREFIX + name) for name in self.partitions}
            if any(observation.grown(metrics[name], count) for name, count in self.partitions.items()):
                raise PartitionsGrew
            self._write(batch, number, tags)
        finally:
            batch.unpersist()
        self._record(number, tags, {name: observation.seen(metrics[name], count) for name, count in self.partitions.items()})

    def _write(self, batch: DataFrame, number: int, tags: Mapping[str, int]) -> None:
        for tag, topic in self.side_outputs.items():
            if tags.get(tag):
                topic.write(set_aside(batch, tag))
        rows = batch.where(F.col(TAG) == Tag.DATA)
        if isinstance(self.output, Topic):
            self.output.write_rows(rows)
        else:
            self.output.write(rows, number, tags.get(Tag.DATA, 0))

    def _record(self, number: int, tags: dict[str, int], seen: Mapping[str, Mapping[int, Seen]]) -> None:
        time_ms = self.engine.batch_time_ms()
        rows_in = {name: sum(partition.rows for partition in partitions.values()) for name, partitions in seen.items()}
        record = BatchRecord(
            batch=number,
            time_ms=time_ms,
            began_in_force_ms=self.last.watermarks.in_force_ms,
            watermarks=self.last.watermarks.advance(self.times, seen, time_ms),
            rows_in=rows_in,
            tags=tags,
            total_rows_in=_added(self.last.total_rows_in, rows_in),
            total_tags=_added(self.last.total_tags, tags),
        )
        self.checkpoint.record(record)
        self._advance(record)
        self.emit("batch", record.model_dump(by_alias=True, exclude={"watermarks": {"partitions"}}))

    def _advance(self, record: BatchRecord) -> None:
        in_force_ms = record.watermarks.in_force_ms
        if in_force_ms is not None:
            self.engine.set_watermark(in_force_ms)
        put_in_force(self.session, in_force_ms)
        self.last = record


def _added(total: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: total.get(name, 0) + more.get(name, 0) for name in sorted({*total, *more})}
