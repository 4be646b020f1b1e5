"""A job that ends at any point and is restarted: no row lost or duplicated, the same watermark."""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.jobs.driver import query
from penstock.jobs.driver.progress import ProgressListener
from penstock.jobs.sinks.errors import ReplayDiffers, SinkFunctionFailed
from penstock.jobs.storage.checkpoint import BEFORE_THE_FIRST, BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.apps import gated
from tests.jobs.spark.killed import POINTS, killed_at
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def _row(name: str, clock: str = "12:30:00") -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T{clock}Z", "name": name}


def _job(surroundings: Surroundings) -> TestedJob:
    return surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})


def _manifest(*arguments: Any) -> bool:
    """The checkpoint's identity is written once too; the point refers to the manifest."""
    return not (len(arguments) > 1 and arguments[1] == "identity")


# The others are in the tier chaos, which kills whole drivers at each point.
@pytest.mark.parametrize("point", ["after the manifest, before any file is there", "after the record, before Spark's commit"])
@pytest.mark.chaos
def test_a_micro_batch_interrupted_at_any_point_is_written_once_after_the_restart(surroundings: Surroundings, point: str) -> None:
    hold_it_is_there_once(surroundings, point)


def hold_it_is_there_once(surroundings: Surroundings, point: str) -> None:
    """Verifies the rows of a job that is interrupted at one of `POINTS` and restarted."""
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
    job.feed("a", _row("two"), _row("three"), b"broken")
    with killed_at(POINTS[point], _manifest), job.running() as running:
        running.wait("failed")
        seen_meanwhile = [row["name"] for row in job.rows()]
    assert seen_meanwhile in (["one"], ["one", "three", "two"]), "a reader saw a part of a micro-batch's only file"
    job.feed("a", _row("four"))
    with job.running() as running:
        running.until_read({"a": [5]})
        totals = running.batches[-1]["totalTags"]
    assert [row["name"] for row in job.rows()] == ["four", "one", "three", "two"]
    assert totals == {"data": 4, "quarantined": 1}
    assert {(record["partition"], record["offset"]) for record in job.side_outputs("errors")} == {(0, 3)}
    assert "Uploads" not in surroundings.s3.list_multipart_uploads(Bucket=OUTPUT, Prefix=f"{job.name}/"), "staged uploads are left behind"


def test_an_existing_file_is_not_written_again(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with killed_at(POINTS["after the files are there, before the record"]), job.running() as running:
        running.wait("failed")
        (before,) = surroundings.s3.list_objects_v2(Bucket=OUTPUT, Prefix=f"{job.name}/")["Contents"]
    with job.running() as running:
        running.until_read({"a": [1]})
    (after,) = surroundings.s3.list_objects_v2(Bucket=OUTPUT, Prefix=f"{job.name}/")["Contents"]
    assert (after["Key"], after["ETag"], after["LastModified"]) == (before["Key"], before["ETag"], before["LastModified"])


def test_the_watermark_and_the_partitions_times_survive_a_restart(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    job.feed("a", _row("one", "12:30:00"), partition=0)
    job.feed("a", _row("two", "12:40:00"), partition=1)
    with job.running() as running:
        running.until_read({"a": [1, 1]})
        before = running.batches[-1]["watermarks"]
    # Only one partition has rows after the restart: without the other one's state, the watermark would stand or jump.
    job.feed("a", _row("late", "12:29:49"), _row("on the edge", "12:29:50"), _row("newer", "12:50:00"), partition=0)
    with job.running() as running:
        (batch, *_) = running.until_read({"a": [4, 1]})
    assert batch["beganInForceMs"] == before["inForceMs"]
    assert batch["watermarks"]["inForceMs"] - batch["beganInForceMs"] == 10 * 60_000
    assert [row["name"] for row in job.rows()] == ["newer", "on the edge", "one", "two"]
    assert len(job.side_outputs("late")) == 1


def test_a_replay_with_other_rows_stops_the_job(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with killed_at(POINTS["after the files are there, before the record"]), job.running() as running:
        running.wait("failed")
    # Another row of the same shape, as produced by a query that depends on the clock.
    _tamper(surroundings, job, digest=1)
    with job.running() as running, pytest.raises(ReplayDiffers) as stopped:
        running.until_read({"a": [1]})
    assert "JOB-007" in stopped.value.render()
    assert [row["name"] for row in job.rows()] == ["one"]


def test_a_committed_micro_batch_without_its_record_is_a_damaged_checkpoint(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
    contents = surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{job.name}/checkpoints/1/penstock/batches/")["Contents"]
    for item in contents:
        surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=item["Key"])
    with pytest.raises(CheckpointDamaged), job.running():
        pass


def _checkpoint(s3: S3Client, **objects: str) -> Checkpoint:
    """A checkpoint of these objects: commits_3 is commits/3, batches_3 is our record of the same micro-batch."""
    folder = f"records-{uuid.uuid4().hex[:8]}/1"
    for name, text in objects.items():
        kind, _, number = name.partition("_")
        key = f"{folder}/commits/{number}" if kind == "commits" else f"{folder}/penstock/batches/{number}.json"
        s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=text.encode())
    return Checkpoint(f"s3a://{CHECKPOINTS}/{folder}")


def _record(batch: int) -> str:
    return BatchRecord(batch=batch).model_dump_json(by_alias=True)


def test_the_last_committed_micro_batch_is_known_by_its_record(s3: S3Client) -> None:
    assert _checkpoint(s3).last_record() == BEFORE_THE_FIRST
    # Killed after the record of the first micro-batch, and before its commit.
    assert _checkpoint(s3, batches_0=_record(0)).last_record() == BEFORE_THE_FIRST
    assert _checkpoint(s3, commits_0="v1", batches_0=_record(0), batches_1=_record(1)).last_record().batch == 0


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"commits_3": "v1", "batches_3": ""}, "penstock/batches/3.json"),
        ({"commits_3": "v1", "batches_3": _record(3)[:40]}, "penstock/batches/3.json"),
        ({"batches_0": _record(0), "batches_1": _record(1)}, "commits/0"),
        ({"batches_12": _record(12), "batches_9": _record(9)}, "commits/11"),
    ],
    ids=["an empty record", "half a record", "no commits", "no commits after many"],
)
def test_a_damaged_checkpoint_is_reported_with_its_damage(s3: S3Client, objects: dict[str, str], message: str) -> None:
    with pytest.raises(CheckpointDamaged, match=message) as raised:
        _checkpoint(s3, **objects).last_record()
    assert raised.value.code == "JOB-008"


def test_an_empty_identity_is_not_accepted(s3: S3Client) -> None:
    checkpoint = _checkpoint(s3)
    identity = checkpoint.identity()
    assert (identity, len(identity)) == (checkpoint.identity(), 8)
    s3.put_object(Bucket=CHECKPOINTS, Key=f"{checkpoint.uri.removeprefix(f's3a://{CHECKPOINTS}/')}/penstock/identity", Body=b"")
    with pytest.raises(CheckpointDamaged, match="penstock/identity"):
        checkpoint.identity()


def _gated(surroundings: Surroundings) -> TestedJob:
    job = surroundings.job("tests.jobs.spark.apps.gated", sources={"a": 1})
    job.edit(lambda spec: spec["sinks"].update(slow={"function": {"name": "slow"}}))
    job.feed("a", _row("one"))
    return job


def test_a_stop_waits_for_the_last_news_of_the_query(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    on_progress, stop, over = ProgressListener.onQueryProgress, query.stop_between_micro_batches, threading.Event()

    def stopping(*arguments: Any) -> None:
        stop(*arguments)
        over.set()

    def slowly(listener: ProgressListener, event: Any) -> None:
        # Spark's listener bus is a second behind the query's end; a driver that does not wait for it would have ended.
        assert over.wait(60)
        time.sleep(1)
        on_progress(listener, event)

    monkeypatch.setattr(query, "stop_between_micro_batches", stopping)
    monkeypatch.setattr(ProgressListener, "onQueryProgress", slowly)
    with _gated(surroundings).running() as running:
        gated.entered.get(timeout=60)
        running.stop.set()
        gated.let.release()
        running.wait("stopped")
    assert [committed["batch"] for committed in running.committed] == [0]


def test_a_micro_batch_that_fails_after_a_stop_was_requested_is_a_failure(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gated, "failing", failing := threading.Event())
    failing.set()
    with _gated(surroundings).running() as running:
        gated.entered.get(timeout=60)
        running.stop.set()
        gated.let.release()
        running.wait("failed")
    assert isinstance(running.failure, SinkFunctionFailed)
    assert "the other side is gone" in running.failure.render()


def test_partitions_added_while_the_job_runs_are_read_and_hold_the_watermark(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
        admin = AdminClient({"bootstrap.servers": surroundings.brokers})
        admin.create_partitions([NewPartitions(job.topics["a"], 2)])[job.topics["a"]].result()
        kafka_topics.wait_for_leaders(admin, {job.topics["a"]: 2})
        job.feed("a", _row("new partition", "12:20:00"), partition=1)
        running.until_read({"a": [1, 1]})
    rows, late = [row["name"] for row in job.rows()], job.side_outputs("late")
    # The watermark was 12:29:50 before the partition existed: earlier rows are late and counted, not lost.
    assert (rows, len(late)) == (["one"], 1)


def _tamper(surroundings: Surroundings, job: TestedJob, **changes: object) -> None:
    (item,) = surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{job.name}/checkpoints/1/penstock/sinks/out/log/")["Contents"]
    manifest = json.loads(surroundings.s3.get_object(Bucket=CHECKPOINTS, Key=item["Key"])["Body"].read())
    surroundings.s3.put_object(Bucket=CHECKPOINTS, Key=item["Key"], Body=json.dumps(manifest | changes).encode())


def test_a_first_micro_batch_that_fails_after_its_state_is_written_runs_again(surroundings: Surroundings) -> None:
    """Spark refuses a first micro-batch that finds state, as that of another query; its own of an earlier attempt is none."""
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    job.feed("a", _row("one"), _row("two"), _row("far ahead", "12:50:00"))
    with killed_at(POINTS["after the record, before Spark's commit"], _manifest), job.running() as running:
        running.wait("failed")
    with job.running() as running:
        running.until_read({"a": [3]})
        job.feed("a", _row("last", "12:51:00"))
        running.until_read({"a": [4]})
    assert sorted(row["n"] for row in job.rows()) == [1, 2]
