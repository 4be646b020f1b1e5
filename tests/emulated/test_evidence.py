"""What a deploy waits for after it has changed a job: records that drivers write, on an emulated S3."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.driver.errors import StateDiffers
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.kafka.errors import BrokersUnreachable
from penstock.jobs.spec import SpecFile, load
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.generation import Fingerprint, Generation, RecordedSpec, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease import LeaseRecord
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.stream.errors import AppFailed
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.operations.evidence import Evidence, Watch, awaited, failures
from penstock.scripts.operations.job_changes import Change, JobChanges
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.sizing.errors import PenstockError
from tests.emulated.small_stacks import environment

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 4
  executor: {slots: 2, memory: 2g}
  sources: {a: {kafka: {topic: clicks}}}
  sinks: {out: {files: {path: clicks}}}
"""
LIMIT_S = 60


def change(what: str = "spec.trigger", before: str = "10s", now: str = "3s") -> Change:
    return Change(what=what, before=before, now=now, effect="restart", why="")


class Place:
    """A job with its folder on S3, whose first generation has committed micro-batch 3.

    Args:
        own: its environment.
        folder: for its spec.
    """

    def __init__(self, own: Environment, folder: Path) -> None:
        (folder / "app.py").write_text("def build(job): ...")
        (folder / "clicks.yaml").write_text(SPEC)
        self.spec = load(folder / "clicks.yaml")
        self.bucket = own.spec.buckets.checkpoints
        self.s3 = AwsAccess(own).client("s3")
        self.s3.create_bucket(Bucket=self.bucket)
        self.folder = JobFolder(f"s3a://{self.bucket}/clicks", self.s3)
        self.fingerprints: dict[int, Fingerprint] = {}
        self.folder.checkpoint(1).identity()
        self.begin(1)
        self.folder.record_spec(1, RecordedSpec(text=SPEC))
        self.commit(3)
        self.run(1, None)

    def begin(self, number: int, checkpoint: int = 1) -> None:
        parent = {"generation": number - 1, "batches": {"": 3}} if number > 1 else None
        what = {"fingerprint": self.fingerprint(number), "versions": Versions(penstock=None, spark="4.3.0")}
        began = {"number": number, "checkpoint": checkpoint, "parent": parent, "mode": "last-state", "began": datetime.now(UTC)}
        self.folder.begin(Generation.model_validate({**began, **what, "queries": {"": QueryRecord.of(["a"], [])}}))

    @property
    def wanted(self) -> tuple[list[SpecFile], str, S3Client]:
        """What `awaited` needs besides the changes."""
        return [self.spec], self.bucket, self.s3

    def hold(self, *, idle: bool) -> None:
        """A driver holds the lease, and has read everything or not."""
        holder = LeaseHolder(host="h", pid=1, pod="clicks-driver-0", pod_uid="u")
        record = LeaseRecord(token=2, holder=holder, since=datetime.now(UTC), duration_s=600, idle=idle)
        self.s3.put_object(Bucket=self.bucket, Key="clicks/penstock/lease.json", Body=record.model_dump_json(by_alias=True))

    def fingerprint(self, number: int) -> Fingerprint:
        return self.fingerprints.get(number) or Fingerprint(app="a", spec=f"s{number}", plan="p")

    def commit(self, batch: int, checkpoint: int = 1) -> None:
        self.folder.checkpoint(checkpoint).record(BatchRecord(batch=batch))
        self.s3.put_object(Bucket=self.bucket, Key=f"clicks/checkpoints/{checkpoint}/commits/{batch}", Body=b"v1\n{}")

    def run(self, token: int, error: PenstockError | None) -> None:
        """A driver starts and ends."""
        runs = Restarts(self.folder.uri, self.spec.job.spec.restart, s3=self.s3)
        runs.begin(token, LeaseHolder(host="h", pid=1, pod="clicks-driver-0", pod_uid="u"), self.fingerprint(token))
        runs.ended(error)

    def after(
        self, deployed: Callable[[], object], *changes: Change, limit_s: float = LIMIT_S, meanwhile: Callable[[], object] = lambda: None
    ) -> Evidence:
        """What is found after a deploy; something happens once that is waited for."""
        jobs = [JobChanges(job="clicks", generation=1, state="goes on with its state", changes=changes or (change(),))]
        before = awaited(jobs, [self.spec], self.bucket, self.s3)
        deployed()
        waits = threading.Event()

        def happen() -> None:
            assert waits.wait(LIMIT_S)
            meanwhile()

        thread = threading.Thread(target=happen)
        thread.start()
        (found,) = Watch("production.yaml", self.bucket, self.s3, limit_s).wait(before, lambda _: waits.set())
        thread.join(LIMIT_S)
        return found


@pytest.fixture
def place(aws: EmulatedAws, tmp_path: Path) -> Place:
    return Place(environment(aws, f"ev{uuid.uuid4().hex[:8]}"), tmp_path)


def test_a_micro_batch_of_the_new_generation_is_waited_for(place: Place) -> None:
    found = place.after(lambda: place.begin(2), meanwhile=lambda: place.commit(4))
    assert (found.outcome, found.generation, found.micro_batch, found.well) == ("committed", 2, 4, True)


def test_with_an_empty_checkpoint_the_first_micro_batch_counts(place: Place) -> None:
    found = place.after(lambda: place.begin(2, checkpoint=2), meanwhile=lambda: place.commit(0, checkpoint=2))
    assert (found.outcome, found.micro_batch) == ("committed", 0)


def test_a_micro_batch_of_the_generation_before_is_no_evidence(place: Place) -> None:
    found = place.after(lambda: place.commit(3), limit_s=0)
    assert (found.outcome, found.well) == ("no commit", False)
    assert "no generation has begun" in str(found.cause)
    place.begin(2)
    # The last that the old driver has committed is known to the new one.
    found = place.after(lambda: None, limit_s=0)
    assert "it has committed nothing; its driver is stopped" in str(found.cause)


def test_a_driver_that_waits_for_records_does_its_work(place: Place) -> None:
    place.hold(idle=True)
    found = place.after(lambda: None, limit_s=0)
    assert found.outcome == "no commit", "it is the driver of before that waits"
    found = place.after(lambda: place.begin(2))
    assert (found.outcome, found.generation, found.well) == ("idle", 2, True)
    place.hold(idle=False)
    assert place.after(lambda: place.begin(3), limit_s=0).outcome == "no commit"


def test_the_failures_of_changed_drivers_are_told(place: Place) -> None:
    place.run(2, AppFailed(path="app", given="of before"))
    (job,) = awaited([JobChanges(job="clicks", generation=1, state="goes on with its state", changes=(change(),))], *place.wanted)
    assert failures([job], place.bucket, place.s3) == {}
    place.run(3, AppFailed(path="app", given="ZeroDivisionError"))
    # Rolled back: what ran before runs again, and its failures are others.
    place.fingerprints[4] = place.fingerprint(1)
    place.run(4, BrokersUnreachable(path="brokers", given="timed out"))
    told = failures([job], place.bucket, place.s3)
    assert "JOB-003" in told["clicks"] and "ZeroDivisionError" in told["clicks"]


def test_a_driver_that_is_not_started_again_ends_the_wait_with_its_cause_and_the_way_back(place: Place) -> None:
    def fails() -> None:
        place.begin(2)
        place.run(2, StateDiffers(path="the query", given="key b instead of a"))

    found = place.after(lambda: None, change(), change("image", "1.0.0", "2.0.0"), meanwhile=fails)
    assert (found.outcome, found.generation) == ("failed", 2)
    assert "JOB-094" in str(found.cause) and "as long as the job does not change" in str(found.cause)
    spec, deploy = found.go_back
    assert spec.startswith(f"aws s3 cp s3://{place.bucket}/clicks/penstock/generations/1.spec.json - | python3 -c")
    assert spec.endswith(f"> {place.spec.path}")
    assert deploy == "PENSTOCK_IMAGE_TAG=clicks=1.0.0 penstock deploy production.yaml jobs-charts"
    error = found.error()
    assert (error.code, error.exit_code) == ("DEP-036", 1)
    assert deploy in error.render()


def test_a_driver_that_is_started_again_is_waited_for(place: Place) -> None:
    def fails_and_mends() -> None:
        place.run(2, BrokersUnreachable(path="brokers", given="timed out"))
        place.begin(2)
        place.commit(4)

    assert place.after(lambda: None, meanwhile=fails_and_mends).outcome == "committed"


def test_the_failure_of_a_driver_before_the_deploy_does_not_count(place: Place) -> None:
    place.run(2, AppFailed(path="app", given="ZeroDivisionError"))
    place.begin(2)
    found = place.after(lambda: place.begin(3), meanwhile=lambda: place.commit(4))
    assert found.outcome == "committed"


@pytest.mark.parametrize(("trigger", "outcome", "well"), [("10s", "stopped", False), ("availableNow", "finished", True)])
def test_a_driver_that_has_stopped_has_done_its_work_if_it_ends_by_itself(place: Place, trigger: str, outcome: str, *, well: bool) -> None:
    text = SPEC.replace("topic: clicks", "topic: clicks, startingOffsets: earliest")
    place.spec.path.write_text(f"{text}  trigger: {trigger}\n")
    place.spec = load(place.spec.path)

    def ends() -> None:
        place.begin(2)
        place.run(2, None)

    found = place.after(lambda: None, meanwhile=ends)
    assert (found.outcome, found.generation, found.well) == (outcome, 2, well)


def test_a_bounded_run_that_has_finished_is_not_waited_for(place: Place) -> None:
    jobs = [JobChanges(job="clicks", generation=1, state="goes on with its state", changes=(change("image"),))]
    assert [job.name for job in awaited(jobs, [place.spec], place.bucket, place.s3)] == ["clicks"]
    place.folder.checkpoint(1).put_once("finished", "")
    assert awaited(jobs, [place.spec], place.bucket, place.s3) == []


@pytest.mark.parametrize("what", ["app", "penstock", "driver"])
def test_what_only_differs_here_is_not_waited_for(place: Place, what: str) -> None:
    changes: dict[str, Any] = {"job": "clicks", "generation": 1, "state": "goes on with its state", "changes": (change(what),)}
    assert awaited([JobChanges(**changes)], [place.spec], place.bucket, place.s3) == []


def test_an_sql_app_is_deployed_with_its_spec_and_waited_for(place: Place) -> None:
    (place.spec.path.parent / "clicks.sql").write_text("CREATE SOURCE a (user STRING); INSERT INTO out SELECT user FROM a;")
    place.spec.path.write_text(SPEC.replace("app: app", "app: clicks.sql"))
    place.spec = load(place.spec.path)
    found = place.after(lambda: None, change("app"), limit_s=0)
    assert found.outcome == "no commit"
    assert found.go_back == (
        f"# {place.spec.path.parent / 'clicks.sql'} as it was, which is not recorded",
        "penstock deploy production.yaml jobs-charts",
    )


def test_the_app_of_a_sessions_job_is_deployed_without_an_image_and_waited_for(place: Place) -> None:
    jobs = [JobChanges(job="clicks", generation=1, state="goes on with its state", changes=(change("app"),))]
    assert [job.name for job in awaited(jobs, *place.wanted, {"clicks"})] == ["clicks"]
    assert awaited(jobs, *place.wanted, {"other"}) == []
