"""Savepoints of running jobs, and jobs that start from them: with their state, and without a row lost or doubled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.jobs.driver.errors import StateDiffers
from penstock.jobs.savepoints.errors import SavepointDamaged, SavepointOfAnotherJob, StateNotRestored
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.taking import Taken, take
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import LeaseLost
from penstock.jobs.storage.generation import Rewound
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

SEVERAL = "tests.jobs.spark.apps.several"
OTHER_BUCKET = "test-other-checkpoints"


def _take(job: TestedJob, name: str = "one", until: datetime | None = None) -> tuple[SavepointFolder, Savepoint]:
    current, folder = job.generation, Savepoints(job.folder.uri).of(name)
    of = Taken(job=job.name, environment="tests", by=None, generation=current, until=until)
    return folder, take(job.folder.checkpoint(current.checkpoint), folder, of, job.around.s3)


def _ask(job: TestedJob, folder: SavepointFolder, **consents: bool) -> None:
    """Requests a start from a savepoint, as ``penstock savepoint start-from`` does."""
    file = RewindRequestFile(job.folder.uri)
    request = RewindRequest(after=job.generation.number, start_from=folder.uri, asked=datetime.now(UTC), **consents)
    assert file.replace(file.read(), request)
    # As the command does, of a job that has failed.
    DriverRunsFile(job.folder.uri).change(DriverRuns.resumed)


def _objects(job: TestedJob, below: str) -> list[str]:
    pages = job.around.s3.get_paginator("list_objects_v2").paginate(Bucket=job.checkpoints, Prefix=f"{job.name}/{below}")
    return [item["Key"] for page in pages for item in page.get("Contents", [])]


def _delete(job: TestedJob, below: str) -> None:
    for key in _objects(job, below):
        job.around.s3.delete_object(Bucket=job.checkpoints, Key=key)


def _names(job: TestedJob) -> list[str]:
    return sorted(row["name"] for row in job.rows())


def _row(clock: str, name: str = "x") -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T12:{clock}Z", "name": name}


@pytest.fixture
def other_bucket(surroundings: Surroundings) -> Iterator[str]:
    surroundings.s3.create_bucket(Bucket=OTHER_BUCKET)
    yield OTHER_BUCKET
    pages = surroundings.s3.get_paginator("list_objects_v2").paginate(Bucket=OTHER_BUCKET)
    for key in [item["Key"] for page in pages for item in page.get("Contents", [])]:
        surroundings.s3.delete_object(Bucket=OTHER_BUCKET, Key=key)
    surroundings.s3.delete_bucket(Bucket=OTHER_BUCKET)


def _job(surroundings: Surroundings) -> TestedJob:
    job = surroundings.job("tests.jobs.spark.apps.saved", sources={"a": 1}, parameters={"names": True})
    names = {"files": {"path": f"{job.name}-names", "prefix": "part-", "roll": {"interval": "1ms"}}}
    return job.edit(lambda spec: (spec["sinks"].update(names=names), spec.update(trigger="200ms")))


def test_a_job_starts_in_another_bucket_with_its_state_after_its_checkpoint_is_gone(surroundings: Surroundings, other_bucket: str) -> None:
    job = _job(surroundings)
    with job.running() as running:
        for read, record in enumerate([_row("30:01", "a1"), _row("30:12", "a2"), _row("30:31", "a3")], start=1):
            job.feed("a", record)
            running.until_read({"a": [read]})
        folder, saved = _take(job)
        # Processed after the savepoint, and so again by whoever starts from it; it closes nothing.
        job.feed("a", {**_row("30:31", "b1"), "key": "l"})
        running.until_read({"a": [4]})
        _, past = _take(job, "past", until=max(query.at for query in saved.queries.values()))
    for one in (saved, past):
        assert (one.topics, set(one.queries)) == ([job.topics["a"]], {"", "names"})
        assert {source.topics[job.topics["a"]][0] for query in one.queries.values() for source in query.sources} == {3}
    _delete(job, "checkpoints/")

    moved = replace(job, checkpoints=other_bucket).edit(lambda spec: spec.update(initialSavepointPath=folder.uri))
    moved.feed("a", _row("30:20", "late"), _row("30:33", "a4"), _row("59:00", "end"))
    with moved.running() as running:
        running.until_read({"a": [7]})
    first = moved.generation
    assert (first.number, first.checkpoint, first.savepoint, first.initial_savepoint) == (1, 1, folder.uri, folder.uri)
    # The windows and names of rows from before and after: none is lost, and none is written twice.
    assert [(row["key"], row["n"]) for row in job.rows()] == [("k", 1), ("k", 1), ("k", 2), ("l", 1)]
    assert [row["names"] for row in job.rows_of("names")] == ["a1", "a2", "a3a4", "b1"]
    # By the watermark that was saved.
    assert {json.loads(record["value"])["name"] for record in job.side_outputs("late")} == {"late"}
    # Nothing of the old place is left in Spark's metadata of the state.
    checkpoint = moved.folder.checkpoint(1)
    metadata = [name for name in checkpoint.listed() if "/_metadata/v2/" in name]
    assert metadata
    for name in metadata:
        assert f"s3a://{CHECKPOINTS}/" not in (checkpoint.content(name) or b"").decode()


@pytest.mark.chaos
def test_a_job_that_has_gone_on_starts_from_its_savepoint_on_request_and_goes_back(surroundings: Surroundings) -> None:
    """With files that are open when it is saved, and are published by the old checkpoint: their rows are not written again."""
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(roll={"interval": "1h"}))
    job.feed("a", _row("30:01", "before"))
    with job.running() as running:
        running.until_read({"a": [1]})
        folder, saved = _take(job)
        assert any("/chunks/" in one.name for one in saved.objects)
        job.feed("a", _row("30:02", "after"))
        running.until_read({"a": [2]})
    assert _names(job) == ["after", "before"]

    # What can't be started from is refused, and leaves the job as it is.
    key = f"{job.name}/savepoints/one/{saved.data}/offsets/{saved.queries[''].batch}"
    content = surroundings.s3.get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read()
    surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=key)
    _ask(job, folder)
    with pytest.raises(SavepointDamaged), job.running():
        pass
    assert (job.folder.generations(), job.folder.checkpoints()) == ([1], [1])
    surroundings.s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=content)

    with job.running() as running:
        running.until_read({"a": [2]})
    assert "restoring" in running.heard
    started = job.generation
    assert (started.number, started.checkpoint, started.savepoint, started.rewind) == (2, 2, folder.uri, Rewound(left=1))
    # Once, and a restart goes on.
    assert _names(job) == ["after", "after", "before"]
    job.feed("a", _row("30:03", "later"))
    with job.running() as running:
        running.until_read({"a": [3]})
    assert "restoring" not in running.heard
    assert _names(job) == ["after", "after", "before", "later"]
    # The checkpoint that was left is fenced, and can be gone back to.
    with pytest.raises(LeaseLost):
        job.folder.checkpoint(1, token=1).record(BatchRecord(batch=job.folder.checkpoint(1).last_record().batch + 1, token=1))
    file = RewindRequestFile(job.folder.uri)
    assert file.replace(file.read(), RewindRequest(after=2, back_to=1, asked=datetime.now(UTC)))
    with job.running() as running:
        running.until_read({"a": [3]})
    assert (job.generation.checkpoint, job.generation.savepoint) == (1, None)
    assert _names(job) == ["after", "after", "before", "later", "later"]


def test_a_savepoint_that_does_not_fit_the_app_or_the_job_is_refused_before_anything_is_touched(surroundings: Surroundings) -> None:
    job = surroundings.job(SEVERAL, sources={"a": 1}, parameters={"shape": "counts and rows"})
    other = {"files": {"path": f"{job.name}-other", "prefix": "part-", "roll": {"interval": "1ms"}}}
    job.edit(lambda spec: spec["sinks"].update(other=other))
    job.feed("a", _row("30:01"))
    with job.running() as running:
        running.until_read({"a": [1]})
    folder, _ = _take(job)
    fork = surroundings.job(SEVERAL, sources={"a": 1}, parameters={"shape": "counts"})
    # The offsets are of these topics (JOB-105).
    fork.edit(lambda spec: spec["sources"]["a"]["kafka"].update(topic=job.topics["a"]))
    with fork.running():
        pass
    for consents, error in (({}, SavepointOfAnotherJob), ({"of_another_job": True}, StateNotRestored)):
        _ask(fork, folder, **consents)
        with pytest.raises(error), fork.running():
            pass
        assert fork.folder.generations() == [1]
        # The consent that was missing is in the next request.
        RewindRequestFile(fork.folder.uri).delete("rewind.json")
    # Rows without windows in place of the counts: the record in the savepoint says what its state was.
    fork.edit(lambda spec: (spec["parameters"].update(shape="one source"), spec["sinks"].update(other=other)))
    _ask(fork, folder, of_another_job=True, allow_non_restored_state=True)
    with pytest.raises(StateDiffers), fork.running():
        pass
    assert fork.folder.generations() == [1]
    fork.edit(lambda spec: (spec["parameters"].update(shape="counts"), spec["sinks"].pop("other")))
    _ask(fork, folder, of_another_job=True, allow_non_restored_state=True)
    with fork.running():
        pass
    assert (fork.generation.number, fork.generation.savepoint) == (2, folder.uri)
    assert fork.folder.checkpoint(fork.generation.checkpoint).identity() != job.folder.checkpoint(1).identity()
