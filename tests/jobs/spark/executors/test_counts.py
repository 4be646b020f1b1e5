"""What Penstock counts of a micro-batch, with executors that are lost and tasks that run again: each row once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.driver import micro_batch
from penstock.jobs.stream.event_time.engine import evaluated
from penstock.scripts.local.spark_cluster import SparkCluster
from tests.jobs.spark.apps import counted, counted_rows
from tests.jobs.spark.executors.held import Passage, closed, until
from tests.jobs.spark.outside import FailsOnce
from tests.jobs.spark.running import Surroundings, TestedJob


def _row(name: str, time: str, key: str = "k") -> dict[str, str]:
    return {"key": key, "at": f"2025-04-05T{time}Z", "name": name}


@pytest.fixture
def more_partitions(session: SparkSession) -> Iterator[None]:
    """More tasks after a shuffle than slots: the last ones fetch their rows when the first ones have ended."""
    before = str(session.conf.get("spark.sql.shuffle.partitions"))
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield
    session.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.on_executors("aggregate", "deduplicate")
@pytest.mark.usefixtures("more_partitions")
def test_rows_of_a_map_stage_that_runs_again_are_counted_once(
    executors: SparkCluster, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _counted(surroundings, monkeypatch, "first")
    job.feed("a", _row("first", "12:30:20"))
    job.feed("a", _row("second", "12:30:20"), partition=1)
    _until_read(job, 1)
    _counted(surroundings, monkeypatch, "then", job)
    for partition in (0, 1):
        rows = [_row(f"{partition}-{number}", "12:30:31", f"k{number % 2}") for number in range(20)]
        repeated = [_row(f"{partition}-{number}", "12:30:31", "k0") for number in range(3)] + [_row("first", "12:30:31", "k0")]
        behind = [_row(f"{partition}-tolerated-{number}", "12:30:17", "k2") for number in range(4)]
        late = [_row("late", "12:30:10"), _row("late", "12:30:11")]
        job.feed("a", *rows, *repeated, *behind, *late, b"broken", partition=partition)
    before, after = Passage(counted.folder, "before"), Passage(counted.folder, "after")
    with closed(counted.folder) as release, job.running() as running:
        until(lambda: len({partition for partition, _ in after.tasks()}) >= 2, "tasks after the shuffle")
        read = before.tasks()
        assert len({executor for _, executor in read}) == 2, "each executor has read a partition"
        # The executor alone would leave its files on the disk, from which another one of this machine would read them.
        executors.kill_worker(executors.workers[0])
        release()
        running.until_read({"a": [32, 32]})
    assert len(before.tasks()) > len(read), "a partition has been read again"
    _check(running.batches, read=62, quarantined=2, late=4, filtered=8, tolerated=8, keys={"k0": 28, "k1": 20, "k2": 8})


def _counted(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch, phase: str, job: TestedJob | None = None) -> TestedJob:
    folder = surroundings.folder / phase
    folder.mkdir()
    monkeypatch.setattr(counted, "folder", str(folder))
    if job is not None:
        return job
    time = {"field": "at", "outOfOrderness": "1ms", "allowedLateness": "5s"}
    return surroundings.job("tests.jobs.spark.apps.counted", sources={"a": 2}, time=time)


def _until_read(job: TestedJob, each: int) -> None:
    with job.running() as running:
        running.until_read({"a": [each, each]})


def _check(
    batches: Sequence[Mapping[str, Any]], *, read: int, quarantined: int, late: int, filtered: int, tolerated: int, keys: Mapping[str, int]
) -> None:
    """Compares the micro-batches' counts with what was fed; no part of it may be counted twice or left out."""
    tags: Counter[str] = sum((Counter(batch["tags"]) for batch in batches), Counter())
    tags.pop("data", None)
    counts = {
        "read": sum(batch["rowsIn"]["a"] for batch in batches),
        "tolerated": sum(batch["tolerated"]["a"] for batch in batches),
        "late": batches[-1]["totalLate"]["a"],
        "totals": {tag: batches[-1]["totalTags"][tag] for tag in tags},
        "keyed": sum(batch["keys"]["keys"]["rows"] for batch in batches),
        "keys": {one["key"]: one["rows"] for batch in batches for one in batch["keys"]["keys"]["hottest"]},
        **tags,
    }
    totals = {"quarantined": quarantined, "late": late, "filtered": filtered}
    assert counts == {
        "read": read,
        "tolerated": tolerated,
        "totals": totals,
        "keyed": sum(keys.values()),
        "keys": keys,
        **totals,
    }
    assert read == quarantined + late + sum(keys.values())
    assert batches[-1]["totalTolerated"]["a"] == tolerated


def test_keys_are_counted_once_though_an_executor_is_lost_with_the_evaluated_rows(
    executors: SparkCluster, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill() -> None:
        pid = executors.workers[0].executor_pids()[-1]
        os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in executors.executor_pids(), "the end of an executor")

    monkeypatch.setattr(counted_rows, "meanwhile", kill)
    _check_rows(surroundings)


def test_rows_that_a_failed_task_has_already_cached_are_counted(
    executors: SparkCluster, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The task's next attempt takes the cached rows, past every count, unless Spark hides the blocks of failed tasks."""
    fails_once = FailsOnce(str(tmp_path / "failed"))

    def failing(batch: DataFrame) -> None:
        evaluated(batch.mapInArrow(fails_once, batch.schema))

    monkeypatch.setattr(micro_batch, "evaluated", failing)
    _check_rows(surroundings)
    assert Path(fails_once.notes).exists()


def _check_rows(surroundings: Surroundings) -> None:
    """Runs a job without a shuffle over two partitions, and compares its counts with what was fed."""
    job = surroundings.job("tests.jobs.spark.apps.counted_rows", sources={"a": 2})
    job.edit(lambda spec: spec["sinks"].update(slow={"function": {"name": "slow"}}))
    for partition in (0, 1):
        job.feed("a", *(_row(f"{partition}-{number}", "12:30:31", f"k{partition}") for number in range(10)), partition=partition)
    with job.running() as running:
        running.until_read({"a": [10, 10]})
    batch = running.batches[0]
    counts = {name: batch[name] for name in ("rowsIn", "tags")} | {"keys": batch["keys"]["keys"], "committed": running.committed[0]["rows"]}
    assert counts == {
        "rowsIn": {"a": 20},
        "tags": {"data": 20},
        "keys": {"rows": 20, "hottest": [{"key": "k0", "rows": 10}, {"key": "k1", "rows": 10}]},
        "committed": 20,
    }
    assert len(job.rows()) == 20
