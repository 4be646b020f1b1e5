"""What a micro-batch of few records does, and what keeps one small."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.stream.task_context import current_run
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.running import Surroundings, TestedJob

TIME = "2025-04-05T12:30:00Z"
# Micro-batches until state is there, is read and is removed: each has code of its own.
_BEGINNING = 4


def _to_a_topic(surroundings: Surroundings, partitions: int) -> TestedJob:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": partitions})
    kafka_topics.create(surroundings.brokers, {f"{job.name}-out": 1})
    return job.edit(lambda spec: spec["sinks"].update(out={"kafka": {"topic": f"{job.name}-out", "key": ["key"]}}))


def _row(key: str, name: str = "n") -> dict[str, object]:
    return {"key": key, "at": TIME, "name": name, "amount": 1.5}


def _tasks(session: SparkSession, run: str) -> list[list[int]]:
    """Job of a query's run -> tasks of each of its stages."""
    context: Any = session.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in sorted(tracker.getJobIdsForGroup(run))]
    return [[stage.numTasks for id_ in job.stageIds if (stage := tracker.getStageInfo(id_))] for job in jobs]


def _run_of(job: TestedJob, session: SparkSession) -> list[str]:
    """The ids of the runs of a job's queries, a micro-batch each."""
    runs: list[str] = []
    job.on = {"batch": lambda: runs.append(current_run(session))}
    return runs


def test_few_rows_are_one_task_of_one_job(surroundings: Surroundings, session: SparkSession) -> None:
    job = _to_a_topic(surroundings, 4)
    runs = _run_of(job, session)
    for partition in range(4):
        job.feed("a", _row(f"k{partition}"), partition=partition)
    with job.running() as running:
        running.until_read({"a": [1, 1, 1, 1]})
    assert _tasks(session, runs[0]) == [[1]]
    rows = {message.key(): json.loads(message.value() or b"") for message in kafka_topics.read(surroundings.brokers, f"{job.name}-out")}
    assert rows == {f"k{number}".encode(): {"key": f"k{number}", "name": "n", "amount": 1.5} for number in range(4)}


def test_side_output_rows_of_a_small_micro_batch_are_one_task_too(surroundings: Surroundings, session: SparkSession) -> None:
    job = _to_a_topic(surroundings, 2)
    runs = _run_of(job, session)
    job.feed("a", b"broken", b"this too", _row("k"), partition=1)
    with job.running() as running:
        (batch,) = running.until_read({"a": [0, 3]})
    assert batch["tags"] == {"data": 1, "quarantined": 2}
    assert _tasks(session, runs[0]) == [[1], [1]]
    assert len(job.side_outputs("errors")) == 2


def test_filtered_rows_are_counted_beside_those_that_leave(surroundings: Surroundings) -> None:
    job = _to_a_topic(surroundings, 2)
    job.feed("a", _row("k"), _row("l", "skip"), b"broken", _row("m", "skip"))
    with job.running() as running:
        (batch,) = running.until_read({"a": [4, 0]})
    assert batch["tags"] == {"data": 1, "filtered": 2, "quarantined": 1}
    assert batch["rowsIn"] == {"a": 4}


# A stateful operator's own predicate for state behind the watermark has the watermark as a literal: a class of some lines.
@pytest.mark.parametrize(("app", "most"), [("copy_rows", 0), ("counts", 1)])
def test_a_running_query_compiles_no_code_for_a_further_micro_batch(
    surroundings: Surroundings, session: SparkSession, app: str, most: int
) -> None:
    job = surroundings.job(f"tests.jobs.spark.apps.{app}", sources={"a": 1})
    compiled: list[int] = []
    job.on = {"committed": lambda: compiled.append(_compilations(session))}
    with job.running() as running:
        for minute in range(_BEGINNING + 3):
            if minute == _BEGINNING:
                compiled.clear()
            job.feed("a", _row("k") | {"at": f"2025-04-05T12:{30 + minute}:00Z"})
            running.until_read({"a": [minute + 1]})
    assert len(compiled) >= 3
    assert all(after - before <= most for before, after in pairwise(compiled))


def _compilations(session: SparkSession) -> int:
    """Classes that Spark has generated and compiled since the session began."""
    jvm: Any = session.sparkContext._jvm
    return int(jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())


@pytest.mark.parametrize(("own", "most"), [(None, 6), (4, 4)])
def test_a_backlog_is_read_in_several_micro_batches(surroundings: Surroundings, own: int | None, most: int) -> None:
    """By the plan's limit, unless the source has its own."""
    job = _to_a_topic(surroundings, 2)
    job.max_offsets_per_trigger = 6
    if own is not None:
        job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=own))
    for partition in range(2):
        job.feed("a", *(_row(f"{partition}-{number}") for number in range(12)), partition=partition)
    with job.running() as running:
        read = [batch["rowsIn"]["a"] for batch in running.until_read({"a": [12, 12]})]
    filled = [rows for rows in read if rows]
    assert sum(filled) == 24
    assert filled == [most] * (24 // most)
    assert kafka_topics.read(surroundings.brokers, f"{job.name}-out")
