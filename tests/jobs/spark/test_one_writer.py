"""Two drivers on one checkpoint: one of them runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointHeld, ConcurrentWriter, LeaseLost
from penstock.jobs.storage.lease import LeaseFile, LeaseState
from penstock.jobs.storage.lease_holder import LeaseHolder
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

OTHER = LeaseHolder(host="far-away", pid=1, started=1, boot_id="another", pod="job-driver-0", pod_uid="uid-1")

# An entry of Spark's log commits/.
_COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


def _row(name: str) -> dict[str, object]:
    return {"key": "k", "at": "2025-04-05T12:30:00Z", "name": name}


def _job(surroundings: Surroundings) -> TestedJob:
    return replace(surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1}), lease_s=3.0)


def _folder(job: TestedJob) -> str:
    return f"s3a://{CHECKPOINTS}/{job.name}"


def _uri(job: TestedJob) -> str:
    return f"{_folder(job)}/checkpoints/1"


def _take_over(job: TestedJob) -> int:
    """Another driver takes the lease, as one does after this driver was frozen for long; returns its token."""
    file = LeaseFile(_folder(job), OTHER)
    while True:
        found = file.read()
        assert found is not None
        changes = {"token": found.record.token + 1, "holder": OTHER, "since": datetime.now(UTC), "state": LeaseState.HELD}
        if file.replace(found.record.model_copy(update=changes), found.etag):
            return found.record.token + 1


def _let_go(job: TestedJob) -> None:
    """The other driver stops."""
    file = LeaseFile(_folder(job), OTHER)
    found = file.read()
    assert found is not None
    assert file.replace(found.record.model_copy(update={"state": LeaseState.RELEASED}), found.etag)


@contextmanager
def _once(owner: type, method: str, what: Callable[..., None], *, after: bool = False) -> Iterator[None]:
    """Does something at the first call of a method, before or after it."""
    original, done = getattr(owner, method), threading.Event()

    def instead(*arguments: Any, **named: Any) -> Any:
        first = not done.is_set()
        done.set()
        if first and not after:
            what(*arguments)
        result = original(*arguments, **named)
        if first and after:
            what(*arguments)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, instead)
        yield
    assert done.is_set()


def _names(job: TestedJob) -> list[str]:
    return [row["name"] for row in job.rows()]


def _finish(job: TestedJob, *names: str) -> None:
    """Another row is read by a driver that starts now, and every row is there once."""
    job.feed("a", _row("last"))
    with job.running() as running:
        running.until_read({"a": [len(names) + 1]})
    assert _names(job) == sorted([*names, "last"])


def test_a_second_driver_does_not_start_and_says_who_runs(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with job.running() as running:
        with pytest.raises(CheckpointHeld) as raised, job.running():
            pass
        assert raised.value.code == "JOB-080"
        holder = LeaseHolder.this_process()
        assert f"held by process {holder.pid} on {holder.host} since 20" in raised.value.given
        running.until_read({"a": [1]})
    _finish(job, "one")


def test_a_driver_that_waits_says_for_whom(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    with job.running():
        pass
    _take_over(job)
    thread = threading.Timer(1.0, _let_go, [job])
    thread.start()
    with job.running() as running:
        thread.join()
    assert running.waited is not None
    assert running.waited["holder"] == "pod job-driver-0" and running.waited["until"] > running.waited["since"]


def test_a_driver_of_a_release_without_generations_is_waited_for(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    earlier = LeaseFile(_uri(job), OTHER)
    held = earlier.take(lambda: 7, threading.Event(), lambda _: None)
    assert held is not None
    # It lets go while this one waits.
    job.feed("a", _row("one"))
    with replace(job, on={"waiting": held.release}).running() as running:
        running.until_read({"a": [1]})
    # Greater than its token, with which it may not have written a record yet.
    assert {batch["token"] for batch in running.batches} == {8}
    assert running.waited is not None and running.waited["holder"] == "pod job-driver-0"
    assert earlier.read() is not None


def test_a_stopped_driver_leaves_the_checkpoint_to_the_next_with_a_greater_token(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    for number in (1, 2):
        job.feed("a", _row(f"{number}"))
        with job.running() as running:
            running.until_read({"a": [number]})
            assert {batch["token"] for batch in running.batches} == {number}
        assert running.waited is None
    assert Checkpoint(_uri(job)).last_record().token == 2


def test_an_idle_driver_that_lost_its_lease_stops(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
        _take_over(job)
        running.wait("failed")
    assert isinstance(running.failure, LeaseLost)
    assert "held by pod job-driver-0 since " in running.failure.given
    _let_go(job)
    _finish(job, "one")


@pytest.mark.parametrize("after", [False, True], ids=["before its record", "after its record"])
def test_a_driver_that_lost_its_lease_in_a_micro_batch_stops_and_nothing_is_lost(surroundings: Surroundings, after: bool) -> None:
    job = replace(_job(surroundings), lease_s=30.0)
    job.feed("a", _row("one"))

    def take_over(checkpoint: Checkpoint, record: BatchRecord) -> None:
        """The other one has run the micro-batch, too, unless this one has by then."""
        token = _take_over(job)
        if not after:
            Checkpoint(checkpoint.uri, token).record(record.model_copy(update={"token": token}))

    with _once(Checkpoint, "record", take_over, after=after), job.running() as running:
        if after:
            running.wait("committed")
            # Committed: S3 let only one of the two do so. It learns at the next renewal that it is no longer alone.
        running.wait("failed")
    assert isinstance(running.failure, LeaseLost)
    _let_go(job)
    _finish(job, "one")


def test_a_log_entry_of_another_driver_is_taken_up(surroundings: Surroundings) -> None:
    """This driver still has its lease: the other one was about to end, and has written its last."""
    job = _job(surroundings)
    job.feed("a", _row("one"))

    def commit(checkpoint: Checkpoint, record: BatchRecord) -> None:
        surroundings.s3.put_object(Bucket=CHECKPOINTS, Key=f"{job.name}/checkpoints/1/commits/{record.batch}", Body=_COMMIT)

    with _once(Checkpoint, "record", commit, after=True), job.running() as running:
        running.wait("batch")
        # Planned again.
        running.wait("reading")
        job.feed("a", _row("two"))
        running.until_read({"a": [2]})
    _finish(job, "one", "two")


def test_micro_batches_that_another_driver_commits_meanwhile_are_not_counted_twice(surroundings: Surroundings) -> None:
    """They are committed after this driver has read the last record, and before Spark reads its logs."""
    job, s3 = _job(surroundings), surroundings.s3
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
        before = running.batches[-1]["batch"]
    job.feed("a", _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
        last = running.batches[-1]
    keys = [
        f"{job.name}/checkpoints/1/{name}"
        for n in range(before + 1, last["batch"] + 1)
        for name in (f"offsets/{n}", f"commits/{n}", f"penstock/batches/{n}.json")
    ]
    taken = {key: s3.get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read() for key in keys}
    for key in keys:
        s3.delete_object(Bucket=CHECKPOINTS, Key=key)

    def put_back() -> None:
        for key, body in taken.items():
            s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=body)
        taken.clear()

    job.feed("a", _row("three"))
    with replace(job, on={"reading": put_back}).running() as running:
        running.until_read({"a": [3]})
        assert running.batches[-1]["totalRowsIn"] == {"a": 3}
        assert running.batches[0]["batch"] == last["batch"] + 1
    assert _names(job) == ["one", "three", "two"]


@pytest.mark.chaos
def test_a_writer_that_takes_no_lease_and_does_not_stop_is_an_error(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("first"))
    original = Checkpoint.record

    def commit(checkpoint: Checkpoint, record: BatchRecord) -> None:
        """Of every micro-batch the other one is the first to commit, and there is always a next one."""
        original(checkpoint, record)
        surroundings.s3.put_object(Bucket=CHECKPOINTS, Key=f"{job.name}/checkpoints/1/commits/{record.batch}", Body=_COMMIT)
        job.feed("a", _row(f"after {record.batch}"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", commit)
        with job.running() as running:
            running.wait("failed")
            assert isinstance(running.failure, ConcurrentWriter)
            assert running.failure.code == "JOB-083"
            given = len(running.batches)
    _finish(job, "first", *(f"after {number}" for number in range(given)))
