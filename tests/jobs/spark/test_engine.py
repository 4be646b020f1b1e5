"""The internals of Spark's streaming engine that Penstock uses work on this Spark version: changes in a new version are detected here."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from penstock.jobs.driver import planning
from penstock.jobs.driver.micro_batch import MicroBatches
from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.leaving import current_watermark
from penstock.jobs.stream.selections import routed
from penstock.jobs.stream.task_context import set_watermark
from penstock.scripts.local.recorded_run import _batches
from tests.jobs.spark.executors.held import until
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

PACKAGE = "org.apache.spark.sql.execution.streaming.runtime"


def _event(name: str, time: str) -> dict[str, str]:
    return {"key": name, "at": f"2025-04-05T{time}Z", "name": name}


@contextmanager
def _seen_inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Inspects the engine in every micro-batch, once its rows have been computed."""
    seen: list[dict[str, Any]] = []
    record = MicroBatches._record

    def looking(batches: MicroBatches, number: int, *counts: Any) -> None:
        record(batches, number, *counts)
        engine = batches.engine
        execution = engine._execution()
        seen.append(
            {
                "batch": number,
                "observed": engine.observed("counted"),
                "partitions": engine.partitions(),
                "records": engine.records(),
                "unknown": engine.observed("no such metric"),
                "time_ms": engine.batch_time_ms(),
                "classes": [part.getClass().getName() for part in (execution, execution.watermarkTracker(), execution.lastExecution())],
                "watermark_ms": execution.lastExecution().offsetSeqMetadata().batchWatermarkMs(),
            }
        )

    with monkeypatch.context() as patch:
        patch.setattr(MicroBatches, "_record", looking)
        yield seen


def _logged(job: TestedJob) -> dict[int, tuple[int, int]]:
    """Micro-batch -> its time and its watermark, from Spark's offset log."""
    batches = _batches(job.around.s3, CHECKPOINTS, f"{job.name}/checkpoints/1")
    return {batch.number: (batch.time_ms, batch.watermark_ms) for batch in batches}


def test_the_classes_and_methods_are_where_they_are_looked_for(surroundings: Surroundings) -> None:
    """A removed method of a class is reported by name here, before any query fails because of it."""
    load = surroundings.session._jvm.java.lang.Class.forName  # type: ignore[union-attr]
    wanted = {
        f"{PACKAGE}.MicroBatchExecution": {"watermarkTracker", "lastExecution", "getLatestExecutionContext"},
        f"{PACKAGE}.StreamExecutionContext": {"startOffsets", "endOffsets", "latestOffsets"},
        f"{PACKAGE}.WatermarkTracker": {"setWatermark"},
        f"{PACKAGE}.IncrementalExecution": {"observedMetrics", "offsetSeqMetadata"},
        f"{PACKAGE}.StreamingQueryWrapper": {"streamingQuery"},
    }
    for name, methods in wanted.items():
        assert methods <= {method.getName() for method in load(name).getMethods()}, name


def test_the_observed_metrics_are_those_of_the_micro_batch_before_it_is_committed(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    monkeypatch.setattr(planning, "routed", lambda *given: routed(*given).observe("counted", F.count(F.lit(1)).alias("rows")))
    job.feed("a", _event("one", "12:30:00"), b"broken", _event("two", "12:29:00"), partition=1)
    with _seen_inside(monkeypatch) as seen, job.running() as running:
        running.until_read({"a": [0, 3]})
    assert seen[0]["observed"] == {"rows": 2}
    assert (seen[0]["partitions"], seen[0]["records"]) == ([f"{job.topics['a']}-0", f"{job.topics['a']}-1"], 3)
    assert seen[0]["unknown"] == {}
    assert seen[0]["classes"] == [f"{PACKAGE}.{name}" for name in ("MicroBatchExecution", "WatermarkTracker", "IncrementalExecution")]
    assert {number: time_ms for number, (time_ms, _) in _logged(job).items()} == {one["batch"]: one["time_ms"] for one in seen}


def test_the_shuffle_files_of_a_micro_batch_are_deleted_when_it_ends(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Path(str(surroundings.session.sparkContext.getConf().get("spark.local.dir")))
    # Those of other tests' DataFrames stay until the garbage collector of the session's JVM finds them.
    written, of_others = set[Path](), set(scratch.rglob("shuffle_*.data"))
    record = MicroBatches._record

    def looking(batches: MicroBatches, number: int, *counts: Any) -> None:
        written.update(set(scratch.rglob("shuffle_*.data")) - of_others)
        record(batches, number, *counts)

    monkeypatch.setattr(MicroBatches, "_record", looking)
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1})
    with job.running() as running:
        job.feed("b", _event("b", "12:30:00"))
        job.feed("a", _event("a", "12:30:00"))
        running.until_read({"a": [1], "b": [1]})
        assert written, "the join shuffles"
    # Spark deletes them in the background.
    until(lambda: not any(path.exists() for path in written), "the shuffle files are deleted")


def test_an_empty_micro_batch_reads_and_counts_nothing(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    # With state, an advanced watermark causes a micro-batch without rows.
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1})
    with _seen_inside(monkeypatch) as seen, job.running() as running:
        job.feed("b", _event("b", "12:30:00"))
        job.feed("a", _event("a", "12:30:00"))
        running.until_read({"a": [1], "b": [1]})
    empty = [one for one, batch in zip(seen, running.batches, strict=True) if not any(batch["rowsIn"].values())]
    assert empty, "there was one"
    for one in empty:
        assert (one["observed"], one["records"]) == ({}, 0)
    assert running.batches[-1]["watermarks"]["inForceMs"] == 1743856190000


def test_the_watermark_that_is_set_is_in_the_next_micro_batchs_offset_log_less_one(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1})
    batches = []
    with _seen_inside(monkeypatch) as seen:
        # The second driver is a restart: Spark resumes from its commit log.
        for number, time in enumerate(("12:30:00", "12:40:00"), start=1):
            job.feed("a", _event(f"a{number}", time))
            job.feed("b", _event(f"b{number}", time))
            with job.running() as running:
                running.until_read({"a": [number], "b": [number]})
            batches += running.batches
    logged = _logged(job)
    began = {batch["batch"]: batch["beganInForceMs"] for batch in batches}
    assert set(began.values()) == {None, 1743856190000, 1743856790000}
    assert {number: watermark_ms for number, (_, watermark_ms) in logged.items()} == {
        number: 0 if current_ms is None else current_ms - 1 for number, current_ms in began.items()
    }
    assert {one["batch"]: one["watermark_ms"] for one in seen} == {number: watermark_ms for number, (_, watermark_ms) in logged.items()}


def test_the_current_watermark_reaches_the_tasks_and_is_read_each_time(surroundings: Surroundings) -> None:
    session = surroundings.session
    frame = session.range(1).select(*current_watermark(session))
    watermarks = []
    for watermark_ms in (None, 0, 1743856190000, -5, None):
        set_watermark(session, watermark_ms)
        watermarks.append([tuple(row) for row in frame.collect()])
    assert watermarks == [[(moment, moment)] for moment in (None, 0, 1743856190000, -5, None)]
    set_watermark(session, 7, cleared_ms=-3)
    assert [tuple(row) for row in frame.collect()] == [(7, -3)]


def test_an_engine_finds_its_own_query_among_several(surroundings: Surroundings) -> None:
    session, name = surroundings.session, f"t{uuid.uuid4().hex[:8]}"
    rates = {part: session.readStream.format("rate").load().writeStream.format("noop").queryName(f"{name}-{part}") for part in "ab"}
    queries = [rate.option("checkpointLocation", f"s3a://{CHECKPOINTS}/{name}/{part}").start() for part, rate in rates.items()]
    try:
        for query in queries:
            assert query.name is not None
            assert Engine(session, query.name)._execution().id().toString() == query.id
    finally:
        for query in queries:
            query.stop()
