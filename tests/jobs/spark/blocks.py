"""Runs a block in a test: handwritten micro-batches in, the rows of each micro-batch out, on the tier's Spark session and without Kafka.

The rows are counted and judged as those of sources, the micro-batches are run by the driver's own `MicroBatches` with the watermark
decided by Penstock, and the checkpoint is on the emulated S3. Only the source (files of the test) and the sink (a list of the test)
differ from a job; both have separate tests.

    clicks = Input("user STRING, n INT", [[row("10", user="a", n=1)], [row("25", user="a", n=2), row("12", user="b", n=5)]]) ran =
    run(surroundings, {"clicks": clicks}, lambda streams: aggregate(streams["clicks"], tumbling("10s"), ...)) same(ran.rows, [{"user":
    "a", "window_start": at("10"), "n": 1}])

Times are seconds or minutes past 2025-04-05 12:30, written as ``"10"``, ``"1:05"``, or whole ISO 8601. A row without a time (``None``)
is quarantined. After the last micro-batch another one runs without rows if the watermark has advanced, as in a job.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.driver.determinism import refuse_unrepeatable
from penstock.jobs.driver.micro_batch import Finished, MicroBatches, Route
from penstock.jobs.sinks.sink import Batch
from penstock.jobs.sources.records import SPLIT, data_rows
from penstock.jobs.spec.sources import EventTime
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.lease import Lease, LeaseFile
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.stream.analyzed_plan import stateful_operators
from penstock.jobs.stream.event_time import engine, judging
from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.selections import routed
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import ENVELOPE, ONLY_COUNTED, TIME, Stream, Tag
from penstock.jobs.stream.task_context import set_checkpoint, set_watermark
from penstock.jobs.stream.task_errors import of_a_task
from penstock.jobs.watermark import InputTime
from penstock.testing.differences import same_rows as same
from penstock.testing.plain_values import plain
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

__all__ = ["Input", "Ran", "at", "row", "run", "same"]

START = datetime(2025, 4, 5, 12, 30, tzinfo=UTC)


def at(text: str) -> datetime:
    """A time: seconds or minutes:seconds past 12:30, or ISO 8601."""
    if match := re.fullmatch(r"(?:(\d+):)?(\d+)(\.\d+)?", text):
        minutes, seconds, part = match.groups()
        return START + timedelta(minutes=int(minutes or 0), seconds=float(seconds + (part or "")))
    return datetime.fromisoformat(text)


def row(time: str | None, partition: int = 0, **fields: Any) -> dict[str, Any]:
    """A row of an input: its event time, its partition, and its fields."""
    return {"_at": None if time is None else at(time).isoformat(), "_p": partition, **fields}


@dataclass(frozen=True)
class Input:
    """Input of one source, by micro-batch; all inputs of a run have the same number of them.

    Args:
        schema: schema of the fields as Spark DDL.
        batches: rows made by `row`.
        bound_s: out-of-orderness in seconds.
        idleness_s: idleness of a partition in seconds.
        partitions: number of partitions of the topic.
        timed: whether the source has event time.
    """

    schema: str
    batches: Sequence[Sequence[Mapping[str, Any]]]
    bound_s: float = 0
    idleness_s: float | None = None
    partitions: int = 1
    timed: bool = True


@dataclass
class Ran:
    """Output of a run.

    Args:
        batches: data rows of each micro-batch, without their event time; structs as mappings, times in UTC.
        times: event times of the same rows.
        side_outputs: tag -> rows for a side output, in the order of the micro-batches.
        events: the driver's ``batch`` events.
    """

    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    times: list[list[datetime | None]] = field(default_factory=list)
    side_outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The data rows of all micro-batches."""
        return [row for batch in self.batches for row in batch]


def run(
    surroundings: Surroundings,
    inputs: Mapping[str, Input],
    build: Callable[[Mapping[str, Stream]], Stream],
    *,
    name: str | None = None,
    conf: Mapping[str, str] | None = None,
    bounded: bool = False,
) -> Ran:
    """Runs a block over the micro-batches of its inputs.

    Args:
        surroundings: surroundings of the tier.
        inputs: name -> input.
        build: the block: from streams by name to the output.
        name: name of the run; a run with the same name resumes from the checkpoint of the earlier one, like a restarted job.
        conf: Spark SQL settings for this run.
        bounded: whether the input ends with the last micro-batch.
    """
    name = name or f"b{uuid.uuid4().hex[:8]}"
    session = surroundings.session
    before = {key: session.conf.get(key, None) for key in conf or {}}
    for key, value in (conf or {}).items():
        session.conf.set(key, value)
    try:
        return _run(surroundings, inputs, build, name, bounded=bounded)
    finally:
        for key, was in before.items():
            session.conf.unset(key) if was is None else session.conf.set(key, was)


def _run(
    surroundings: Surroundings, inputs: Mapping[str, Input], build: Callable[[Mapping[str, Stream]], Stream], name: str, *, bounded: bool
) -> Ran:
    uri = f"s3a://{CHECKPOINTS}/{name}/1"
    lease = LeaseFile(uri, LeaseHolder.this_process()).take(lambda: 1, threading.Event(), lambda _: None)
    assert lease is not None
    try:
        return _run_leased(surroundings, inputs, build, name, Checkpoint(uri, lease.token), lease, bounded=bounded)
    finally:
        lease.release()


def _run_leased(
    surroundings: Surroundings,
    inputs: Mapping[str, Input],
    build: Callable[[Mapping[str, Stream]], Stream],
    name: str,
    checkpoint: Checkpoint,
    lease: Lease,
    *,
    bounded: bool,
) -> Ran:
    session, ran = surroundings.session, Ran()
    out = build({source: _stream(surroundings, surroundings.folder / name / source, source, data) for source, data in inputs.items()})
    # The list of the test stands for any sink, also for one that promises exactly-once.
    refuse_unrepeatable(out.frame, ["out"])
    batches = MicroBatches(
        session=session,
        engine=Engine(session, name),
        checkpoint=checkpoint,
        times={
            source: InputTime(
                bound_ms=int(data.bound_s * 1000), idleness_ms=None if data.idleness_s is None else int(data.idleness_s * 1000)
            )
            for source, data in inputs.items()
            if data.timed
        },
        splits={source: [f"{source}-{number}" for number in range(data.partitions)] for source, data in inputs.items()},
        routes=[Route("out", _Kept(ran))],
        side_outputs=_EveryTag(ran),
        last=checkpoint.last_record(),
        emit=lambda event, detail: ran.events.append(dict(detail)),
        lease=lease,
        strict=any(operator.strict for operator in stateful_operators(out.frame)),
    )
    if bounded:
        number = batches.last.batch + max(len(data.batches) for data in inputs.values())
        batches.input_ended = lambda _: batches.last.batch + 1 >= number
    set_watermark(session, batches.last.watermarks.current_ms, batches.last.watermarks.engine_ms)
    set_checkpoint(session, checkpoint.uri, checkpoint.token, batches.side_outputs)
    mode = "update" if out.updates else "append"
    writer = routed(out.frame, {"out": None}).writeStream.queryName(name).outputMode(mode).foreachBatch(batches)
    with contextlib.nullcontext() if bounded else engine.ending_with_its_input(session, out.frame):
        query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint.uri).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if not isinstance(batches.failure, Finished):
            raise batches.failure or of_a_task(error) or error from None
    return ran


def _stream(surroundings: Surroundings, folder: Path, name: str, data: Input) -> Stream:
    """The input's files as a stream, its rows counted and judged as those of a source."""
    folder.mkdir(parents=True, exist_ok=True)
    first = len(list(folder.iterdir()))
    for number, rows in enumerate(data.batches, start=first):
        path = folder / f"{number:05d}.txt"
        path.write_text("".join(f"{json.dumps(dict(one))}\n" for one in rows), encoding="utf-8")
        # The file source reads the oldest first.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    session = surroundings.session
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    frame = lines.select(F.from_json("value", f"_at STRING, _p INT, {data.schema}").alias("_value"))
    columns = session.createDataFrame([], data.schema).columns
    fields = [F.col("_value")[column].alias(column) for column in columns]
    moment = F.col("_value")["_at"].try_cast("timestamp") if data.timed else F.lit(None).cast("timestamp")
    none = F.lit(None)
    frame = frame.select(
        # In one column: to `data_rows`, a column `_deleted` marks tombstones, which do not advance the watermark.
        F.struct(*fields).alias("_fields"),
        moment.alias(TIME),
        F.when(F.lit(data.timed) & moment.isNull(), F.lit(str(Tag.QUARANTINED))).alias(REASON),
        F.lit(name).alias("topic"),
        F.col("_value")["_p"].alias("partition"),
        F.col("_value")["_p"].alias(SPLIT),
        F.lit(0).cast("bigint").alias("offset"),
        none.cast("timestamp").alias("timestamp"),
        none.cast("binary").alias("key"),
        F.to_json("_value").cast("binary").alias("value"),
    )
    time = EventTime(field="_at") if data.timed else None
    frame = data_rows(judging.judged(session, frame, time), name, F.col(TIME)).select("_fields.*", TIME)
    return Stream(engine.with_watermark(frame) if data.timed else frame, timed=data.timed)


@dataclass
class _Kept:
    """A sink that keeps its rows."""

    ran: Ran
    tag: str | None = None

    def check(self) -> None:
        pass

    def idle(self, now_ms: int) -> None:
        pass

    def write(self, rows: DataFrame, batch: Batch) -> None:
        rows_written = [plain(one.asDict(recursive=True)) for one in rows.collect()]
        if self.tag is not None:
            self.ran.side_outputs.setdefault(self.tag, []).extend(json.loads(one["value"]) for one in rows_written)
            return
        self.ran.times.append([one.get(TIME) for one in rows_written])
        self.ran.batches.append([{name: value for name, value in one.items() if name not in ENVELOPE} for one in rows_written])


class _EveryTag(dict[str, Any]):
    """Tag -> sink, for any tag: all rows that can be kept are kept."""

    def __init__(self, ran: Ran) -> None:
        super().__init__({tag: _Kept(ran, tag) for tag in [*(tag.value for tag in Tag if tag not in ONLY_COUNTED), "aside", "alerts"]})
