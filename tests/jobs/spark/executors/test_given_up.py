"""A micro-batch that Spark gives up after the loss of an executor is run again, and the driver goes on."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.scripts.local.spark_cluster import SparkCluster
from tests.jobs.spark.apps import scattered
from tests.jobs.spark.executors.held import Passage, closed, until
from tests.jobs.spark.running import Surroundings


def test_a_micro_batch_whose_lost_rows_come_out_differently_is_run_again(
    executors: SparkCluster, session: SparkSession, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scattered, "folder", str(surroundings.folder))
    monkeypatch.setattr(scattered, "calls", [])
    job = surroundings.job("tests.jobs.spark.apps.scattered", sources={"a": 2})
    job.edit(lambda spec: spec["sinks"].update(slow={"function": {"name": "slow"}}))
    for partition in (0, 1):
        rows = [{"key": "k", "at": "2025-04-05T12:30:31Z", "name": f"{partition}-{number}"} for number in range(10)]
        job.feed("a", *rows, partition=partition)
    before, after = Passage(scattered.folder, "before"), Passage(scattered.folder, "after")
    with closed(scattered.folder) as release, job.running() as running:
        until(lambda: len(after.tasks()) == 2 and _one_of_two_has_ended(session), "the end of a task that has read the shuffled rows")
        assert len({executor for _, executor in before.tasks()}) == 2, "each executor has rows that the other one reads"
        held = dict(after.tasks())[1]
        executors.kill_worker(next(worker for worker in executors.workers if held in worker.executor_pids()))
        release()
        running.until_read({"a": [10, 10]})
    assert scattered.calls == [0, 0]


def _one_of_two_has_ended(session: SparkSession) -> bool:
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage is not None and (stage.numTasks, stage.numCompletedTasks) == (2, 1) for stage in stages)
