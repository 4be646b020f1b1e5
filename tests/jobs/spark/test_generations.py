"""Generations of a job: what a changed job goes on with, and what its driver records of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE
from penstock.jobs.driver import generations
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged, CheckpointMissing, LeaseLost
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from penstock.jobs.stream.errors import AppFailed
from tests.jobs.spark.running import CHECKPOINTS, Running, Surroundings, TestedJob

COUNTS = "tests.jobs.spark.apps.counts"
_COPY = """
def build(job):
    job.write(job.source("a", "key STRING NOT NULL, at STRING, name STRING").select(name="name"), "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""


def _row(clock: str, name: str = "x") -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T12:{clock}Z", "name": name}


def _set(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda spec: spec.update(fields)


def _appears(file: Path) -> bool:
    """Whether a file is there, now or soon: another thread makes it."""
    looks = threading.Event()
    return any(file.exists() or looks.wait(0.01) for _ in range(3000))


def _run(job: TestedJob, read: int | None = None) -> Running:
    """Runs the job until it has committed as many records, or until its queries are about to start, and stops it."""
    with job.running() as running:
        if read is not None:
            running.until_read({"a": [read]})
    return running


def test_a_changed_job_goes_on_with_its_state_or_begins_without_as_its_upgrade_mode_says(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed = surroundings.folder / "ready"
    monkeypatch.setenv(READY_FILE_VARIABLE, str(probed))
    job = surroundings.job(COUNTS, sources={"a": 1})
    job.feed("a", _row("30:01"))
    _run(job, 1)
    first = job.generation
    assert (first.number, first.checkpoint, first.parent, first.mode) == (1, 1, None, "last-state")
    assert first.starts == {"a": {job.topics["a"]: {0: 0}}}
    assert first.queries[""].sources == ("a",)
    written = job.spec.read_text(encoding="utf-8")
    recorded = job.folder.recorded_spec(1)
    assert recorded is not None and recorded.text == written
    state = surroundings.session.read.format("state-metadata").load(job.folder.checkpoint(1).uri).collect()
    assert [(operator.id, operator.name) for operator in first.queries[""].operators] == [(0, "Aggregate")]
    assert [(row.operatorId, row.operatorName) for row in state] == [(0, "stateStoreSave")]
    # A restart is no other generation.
    _run(job)
    assert job.folder.generations() == [1]
    # One that an earlier release has begun gets its spec at the next start.
    job.folder.delete("generations/1.spec.json")
    _run(job)
    recorded = job.folder.recorded_spec(1)
    assert recorded is not None and recorded.text == written

    job.edit(_set(trigger="2ms", upgradeMode="savepoint"))
    job.feed("a", _row("30:02"), _row("31:00"))
    at_first: list[bool] = []
    ready: list[bool] = []
    heard = {"batch": lambda: at_first.append(probed.exists()), "idle": lambda: ready.append(_appears(probed))}
    upgraded = _run(replace(job, on=heard), 3)
    # It shows first that it works: Helm would roll it back.
    assert (at_first[0], ready[0], probed.exists()) == (False, True, False)
    second = job.generation
    assert (second.number, second.checkpoint, second.mode, second.starts) == (2, 1, "savepoint", {})
    assert second.parent is not None and second.parent.generation == 1 and second.parent.batches[""] >= 0
    assert [event for event in upgraded.heard if event in ("saving", "saved", "reading")] == ["saving", "saved", "reading"]
    saved = Savepoints(job.folder.uri).of("upgrade-1").manifest()
    assert (saved.generation, saved.queries[""].batch) == (first, second.parent.batches[""])
    assert [source.topics for source in saved.queries[""].sources] == [{job.topics["a"]: {0: 1}}]
    assert second.fingerprint.differences(first.fingerprint) == ["spec"]
    assert [row["n"] for row in job.rows()] == [2]

    # The mode alone changes nothing; the next change begins anew, and the job reads its topic again.
    job.edit(_set(upgradeMode="stateless"))
    _run(job)
    assert job.folder.generations() == [1, 2]
    job.edit(_set(restartNonce=1))
    job.feed("a", _row("32:00"))
    _run(job, 4)
    third = job.generation
    assert (third.number, third.checkpoint, third.mode) == (3, 3, "stateless")
    assert third.starts == {"a": {job.topics["a"]: {0: 0}}}
    assert sorted(row["n"] for row in job.rows()) == [1, 2, 2]
    # What was there stays.
    assert job.folder.checkpoints() == [1, 3]
    assert job.folder.checkpoint(1).last_record().total_rows_in == {"a": 3}

    job.edit(_set(upgradeMode="last-state", trigger="1ms"))
    _run(job)
    assert (job.generation.number, job.generation.checkpoint) == (4, 3)

    # Back to the savepoint, after two generations have changed the state: it has counted one record, and reads on after that.
    request = RewindRequest(after=4, start_from=f"{job.folder.uri}/savepoints/upgrade-1", asked=datetime.now(UTC))
    assert RewindRequestFile(job.folder.uri).replace(None, request)
    _run(job, 4)
    assert (job.generation.number, job.generation.savepoint) == (5, request.start_from)
    assert sorted(row["n"] for row in job.rows()) == [1, 1, 2, 2, 2]
    assert Savepoints(job.folder.uri).names() == ["upgrade-1"]


@pytest.mark.chaos
def test_records_of_micro_batches_outlive_those_that_the_spec_retains(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They expire 98 micro-batches earlier here: otherwise the test would take hundreds of them."""
    monkeypatch.setattr(generations, "OUTLIVED_BATCHES", 2 - 100)
    job = surroundings.job(COUNTS, sources={"a": 1})
    job.edit(_set(trigger="100ms", checkpoint={"retention": "10200ms"}))
    for read in range(1, 7):
        job.feed("a", _row(f"30:0{read}"))
        _run(job, read)
    checkpoint = job.folder.checkpoint(1)
    last = checkpoint.last_record().batch
    # 102 micro-batches are retained, and records 98 fewer.
    assert last > 4 and sorted(checkpoint.names("batches/")) == sorted(f"{batch}.json" for batch in range(last - 3, last + 1))


def test_a_driver_that_does_not_start_its_queries_leaves_no_generation(surroundings: Surroundings) -> None:
    job = surroundings.job(COUNTS, sources={"a": 1})
    _run(job)
    job.edit(_set(upgradeMode="stateless", app="tests.jobs.spark.apps.does_not_exist"))
    with pytest.raises(AppFailed), job.running():
        pass
    assert job.folder.generations() == [1]
    job.edit(_set(app=COUNTS))
    running = _run(job)
    assert "generation" in running.heard and job.folder.generations() == [1]


def test_the_app_is_part_of_what_a_generation_is(surroundings: Surroundings) -> None:
    name = f"app_{surroundings.folder.name.replace('-', '_')}"
    app = Path(surroundings.folder) / f"{name}.py"
    app.write_text(_COPY, encoding="utf-8")
    job = surroundings.job(name, sources={"a": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(surroundings.folder))
        _run(job)
        app.write_text(f"{_COPY}# another\n", encoding="utf-8")
        _run(job)
    assert job.folder.generations() == [1, 2]


def test_a_checkpoint_that_was_deleted_is_said_before_spark_starts_anew(surroundings: Surroundings) -> None:
    job = surroundings.job(COUNTS, sources={"a": 1})
    job.feed("a", _row("30:01"))
    _run(job, 1)
    prefix = f"{job.name}/checkpoints/"
    for item in surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix)["Contents"]:
        surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=item["Key"])
    with pytest.raises(CheckpointMissing), job.running():
        pass
    assert "Contents" not in surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix)


def test_a_stateless_upgrade_is_the_way_out_of_a_damaged_checkpoint(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.feed("a", _row("30:01", "one"))
    _run(job, 1)
    last = job.folder.checkpoint(1).last_record().batch
    job.folder.checkpoint(1).delete(f"batches/{last}.json")
    with pytest.raises(CheckpointDamaged), job.running():
        pass
    job.edit(_set(upgradeMode="stateless", restartNonce=1))
    _run(job, 1)
    assert [row["name"] for row in job.rows()] == ["one", "one"]
    current = job.generation
    assert current.parent is not None
    assert (current.checkpoint, current.parent.batches) == (2, {})


def test_a_driver_of_the_generation_before_commits_nothing_more(surroundings: Surroundings) -> None:
    """It was frozen in a micro-batch, and a stateless upgrade has begun meanwhile."""
    job = replace(surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1}), lease_s=3.0)
    job.feed("a", _row("30:01", "one"))
    original, done = Checkpoint.record, threading.Event()

    def upgrade(checkpoint: Checkpoint, record: BatchRecord) -> None:
        if not done.is_set():
            done.set()
            job.folder.checkpoint(1, token=record.token + 1).fence()
        original(checkpoint, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", upgrade)
        with job.running() as running:
            running.wait("failed")
    assert isinstance(running.failure, LeaseLost)
    assert job.folder.checkpoint(1).last_record().batch == -1
