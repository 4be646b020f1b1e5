"""``penstock upgrade check``: apps of files beside the records of their generations, on an emulated S3."""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.manifest import SavedQuery, Savepoint
from penstock.jobs.spec import load
from penstock.jobs.state_schema import Column, StateSchema
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord, SinkRecord, SourceRecord
from penstock.jobs.watermark import Watermarks
from penstock.scripts.cli import upgrade
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.operations.upgrade_check import UpgradeCheck, checked
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.job_history import commit, generation
from tests.emulated.small_stacks import environment

APP = """\
from pyspark.sql import functions as F

from penstock import Job

OPERATORS = {{"read": None, "sums": "other"}}


def build(job: Job) -> None:
    rows = job.source("a", "user STRING, bid INT, ask INT").df
    job.write(rows.groupBy("user").agg({aggregates}), "out")
    job.side_output("errors")
"""
SUMS = ('F.sum("bid").alias("bids")', 'F.sum("ask").alias("asks")')
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {{name: {name}}}
spec:
  app: {app}
  parallelism: 1
  executor: {{slots: 1, memory: 2g}}
  sources:
    a: {{kafka: {{topic: clicks}}}}
  sinks:
    out: {{postgres: {{connection: shop, table: sums, key: [user]}}}}
    errors: {{kafka: {{topic: errors}}}}
"""
CLICKS = SourceRecord(name="a", kind="topics", places=("clicks",))
SINK = SinkRecord(name="out", kind="table", place="shop sums")
STATE = StateSchema(
    keys=(Column(name="user", type="string"),),
    values=(Column(name="sum(bid)", type="bigint"), Column(name="sum(ask)", type="bigint")),
)


class Place:
    """An environment with jobs and their folders on S3.

    Args:
        aws: emulated.
        folder: for the files.
        apps: job -> its aggregates.
    """

    def __init__(self, aws: EmulatedAws, folder: Path, apps: Mapping[str, tuple[str, ...]]) -> None:
        for name, aggregates in apps.items():
            (folder / f"{name}.py").write_text(APP.format(aggregates=", ".join(aggregates)))
            (folder / f"{name}.yaml").write_text(SPEC.format(name=name, app=name))
        data = environment(aws, f"up{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
        data["spec"]["jobs"] = [str(folder / f"{name}.yaml") for name in apps]
        self.own, self.folder = Environment.model_validate(data), folder
        self.s3 = AwsAccess(self.own).client("s3")
        self.bucket = self.own.spec.buckets.checkpoints
        self.s3.create_bucket(Bucket=self.bucket)

    def deployed(self, job: str, *, state: StateSchema | None = STATE, batch: int | None = 3, **query: Any) -> JobFolder:
        """The folder of a job that has run as its first generation."""
        folder = JobFolder(f"s3a://{self.bucket}/{job}", self.s3)
        checkpoint = folder.checkpoint(1)
        checkpoint.identity()
        if batch is not None:
            marks = Watermarks(current_ms=0)
            record = BatchRecord(batch=batch, time_ms=0, rows_in={"a": 1}, total_rows_in={"a": 1}, watermarks=marks)
            commit(self.s3, checkpoint, record)
        folder.begin(generation(queries={"": QueryRecord.of(["a"], ["Aggregate"], None if state is None else [state], **query)}))
        return folder

    def check(self, job: str, now: StateSchema = STATE, *, sinks: Sequence[SinkRecord] | None = None, **spec: Any) -> UpgradeCheck:
        """The check of a job whose app is analyzed already."""
        file = self.folder / f"{job}.yaml"
        file.write_text(file.read_text() + "".join(f"  {name}: {json.dumps(value)}\n" for name, value in spec.items()))
        queries = {"": QueryRecord.of(["a"], ["Aggregate"], [now], reads=[CLICKS], sinks=sinks)}
        return checked(load(file), queries, 2, self.bucket, self.s3)


def test_the_apps_are_compared_with_what_runs(aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(aws, tmp_path, {"same": SUMS, "swapped": SUMS[::-1], "new": SUMS})
    place.deployed("same")
    place.deployed("swapped")
    file = tmp_path / "environment.yaml"
    file.write_text(place.own.text())
    parser = argparse.ArgumentParser()
    upgrade.add_arguments(parser)
    assert upgrade.run(parser.parse_args(["check", str(file), "-o", "json"])) == 1
    same, swapped, new = json.loads(capsys.readouterr().out)["jobs"]
    assert (same["verdict"], same["generation"], same["reasons"]) == ("goes on", 1, [])
    assert same["checkpoint"] == f"s3a://{place.bucket}/same/checkpoints/1"
    (reason,) = swapped["reasons"]
    assert swapped["verdict"] == "refused"
    assert reason.startswith("JOB-094 the query, operator 0 (Aggregate): values in the order sum(ask), sum(bid) instead of")
    assert (new["verdict"], new["generation"]) == ("no state yet", None)


@pytest.fixture
def place(aws: EmulatedAws, tmp_path: Path) -> Place:
    return Place(aws, tmp_path, {"clicks": SUMS})


OTHER = STATE.model_copy(update={"keys": (Column(name="shop", type="string"),)})


@pytest.mark.parametrize(
    ("now", "spec", "verdict", "reason"),
    [
        (STATE, {}, "goes on", ""),
        (OTHER, {}, "refused", "key shop instead of user"),
        (OTHER, {"upgradeMode": "stateless"}, "begins without", "upgradeMode"),
        (OTHER, {"rewindTo": "2025-04-05T12:00:00Z"}, "begins without", "rewindTo"),
        (OTHER, {"checkpoint": {"stateSchema": "any"}}, "not known", "Spark decides"),
    ],
)
def test_what_the_spec_asks_for_decides(place: Place, now: StateSchema, spec: dict[str, Any], verdict: str, reason: str) -> None:
    place.deployed("clicks")
    found = place.check("clicks", now, **spec)
    assert (found.verdict, found.generation) == (verdict, 1)
    assert reason in "".join(found.reasons)


def test_a_job_that_starts_from_the_specs_savepoint_is_compared_with_that(place: Place) -> None:
    current = place.deployed("clicks").current()
    assert current is not None
    folder = Savepoints(f"s3a://{place.bucket}/other", place.s3).of("one")
    spec: dict[str, Any] = {"initialSavepointPath": folder.uri, "restartNonce": 1}
    assert [reason[:7] for reason in place.check("clicks", **spec).reasons] == ["JOB-095"]
    query = SavedQuery(batch=3, at=datetime.now(UTC))
    record = current.model_copy(update={"queries": {"": QueryRecord.of(["a"], ["Aggregate"], [OTHER])}})
    saved = Savepoint(
        name="one",
        job="other",
        environment="dev",
        made=datetime.now(UTC),
        checkpoint="s3a://b/other/checkpoints/1",
        generation=record,
        queries={"": query},
        data="data-0",
        objects=(),
    )
    assert folder.complete(saved)
    found = place.check("clicks", OTHER)
    assert (found.verdict, found.checkpoint) == ("goes on", folder.uri)
    assert place.check("clicks", STATE).verdict == "refused"
    folder.delete_attempts()
    assert folder.complete(saved.model_copy(update={"queries": {"": query, "more": query}}))
    assert "JOB-099" in "".join(place.check("clicks", OTHER).reasons)
    assert place.check("clicks", OTHER, allowNonRestoredState=True).verdict == "goes on"


def test_topics_may_have_other_names_where_the_job_does_not_read_on_at_the_savepoints_offsets(place: Place) -> None:
    current = place.deployed("clicks", reads=[CLICKS.model_copy(update={"places": ("old.clicks",)})]).current()
    folder = Savepoints(f"s3a://{place.bucket}/clicks", place.s3).of("one")
    of = {"job": "clicks", "environment": "dev", "made": datetime.now(UTC), "checkpoint": "s3a://b/clicks/checkpoints/1"}
    sources = ({"topics": {"old.clicks": {"0": 5}}},)
    queries = {"": {"batch": 3, "at": datetime.now(UTC), "sources": sources}}
    saved = {"name": "one", **of, "generation": current, "queries": queries, "data": "data-0", "objects": ()}
    assert folder.complete(Savepoint.model_validate(saved))
    at_its_own = place.check("clicks", initialSavepointPath=folder.uri, restartNonce=1)
    assert (at_its_own.verdict, [reason[:7] for reason in at_its_own.reasons]) == ("refused", ["JOB-105"])
    assert place.check("clicks", initialOffsets={"clicks": {"0": 7}}).verdict == "goes on"
    ended = {"name": "penstock/ends.json", "bytes": 1, "sha256": "x"}
    folder.delete_attempts()
    assert folder.complete(Savepoint.model_validate({**saved, "objects": (ended,)}))
    assert [reason[:7] for reason in place.check("clicks").reasons] == ["JOB-101"]


def test_state_of_which_nothing_is_recorded_is_not_known(place: Place) -> None:
    place.deployed("clicks", state=None)
    assert place.check("clicks").verdict == "not known"


def test_a_checkpoint_of_before_generations_is_not_known(place: Place) -> None:
    place.s3.put_object(Bucket=place.bucket, Key="clicks/checkpoints/1/commits/0", Body=b"v1\n{}")
    assert place.check("clicks").verdict == "not known"


def test_a_job_without_a_micro_batch_has_no_state(place: Place) -> None:
    place.deployed("clicks", batch=None)
    assert place.check("clicks", OTHER).verdict == "no state yet"


def test_a_checkpoint_that_is_gone_is_refused(place: Place) -> None:
    folder = place.deployed("clicks")
    folder.checkpoint(1).delete("identity")
    found = place.check("clicks")
    assert found.verdict == "refused"
    assert "JOB-086" in found.reasons[0]


def test_other_sources_are_refused(place: Place) -> None:
    place.deployed("clicks", reads=[CLICKS.model_copy(update={"places": ("views",)})])
    (reason,) = place.check("clicks").reasons
    assert reason == "JOB-105 the query, source a: topics clicks"


def test_notes_say_what_the_checkpoint_keeps_and_what_is_not_compared(place: Place) -> None:
    place.deployed("clicks")
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    }
    log = f"v1\n{json.dumps({'conf': settings})}\n{{}}"
    place.s3.put_object(Bucket=place.bucket, Key="clicks/checkpoints/1/offsets/3", Body=log.encode())
    found = place.check("clicks")
    assert found.verdict == "goes on"
    sources, partitions, backend = found.notes
    assert "recorded no sources" in sources
    assert "stays in 4 shuffle partitions" in partitions and "instead of the 2 of the spec" in partitions
    assert backend == "the query: its state stays in memory, that of its checkpoint, instead of the spec's state.backend"
    # With a savepoint the state would be repartitioned, which Spark does to RocksDB's alone.
    (refused,) = place.check("clicks", upgradeMode="savepoint").reasons
    assert refused.startswith("JOB-109 s3a://") and "state in memory" in refused
    in_rocksdb = log.replace("HDFSBacked", "RocksDB")
    place.s3.put_object(Bucket=place.bucket, Key="clicks/checkpoints/1/offsets/3", Body=in_rocksdb.encode())
    # The spec asks for one since the last check.
    _, _, partitions, *_ = place.check("clicks").notes
    assert partitions == "the query: its state is repartitioned from 4 to 2 shuffle partitions, in a new checkpoint"


def test_notes_say_what_changed_sinks_mean(place: Place) -> None:
    sinks = [SinkRecord(name="out", kind="topic", place="sums", guarantee="at-least-once")]
    place.deployed("clicks", reads=[CLICKS], sinks=sinks)
    (note,) = place.check("clicks", sinks=[SINK]).notes
    assert note == "the query: sink out was topic sums and is table shop sums from the next micro-batch on"


def test_notes_name_the_queries_that_are_new_or_gone(place: Place) -> None:
    folder = place.deployed("clicks", reads=[CLICKS])
    (one,) = [folder.generation(1)]
    folder.begin(one.model_copy(update={"number": 2, "queries": {**one.queries, "pairs": one.queries[""]}}))
    gone = "query pairs is gone: its checkpoint stays where it is, and is gone on with when it comes back"
    assert place.check("clicks").notes == (gone,)
    saved = "if anything of the job changes, its driver first takes savepoint upgrade-2"
    assert place.check("clicks", upgradeMode="savepoint").notes == (saved, gone)
