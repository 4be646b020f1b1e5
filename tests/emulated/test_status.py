"""``penstock status``: what the folders of an environment's jobs say, written as their drivers write them."""

from __future__ import annotations

import argparse
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.kafka.errors import BrokersUnreachable
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.checkpoint import FINISHED, BatchRecord, Position
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease import Lease, LeaseFile
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.watermark import Watermarks
from penstock.scripts.cli import move, resume, status, stop
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import WrongUsage
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import JobNotDeployed
from tests.emulated.job_history import WHAT, commit, generation
from tests.emulated.small_stacks import environment
from tests.kube.evidence import wait_for

AT_MS = 1_764_000_000_000
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {{name: {name}}}
spec:
  app: clicks
  parallelism: 1
  executor: {{slots: 1, memory: 2g}}
  sources:
    a: {{kafka: {{topic: clicks}}, time: {{field: at, outOfOrderness: 10s}}}}
  sinks:
    out: {{files: {{path: {name}}}}}
"""


class Place:
    """An environment with jobs, and their folders.

    Args:
        own: the environment.
        folder: for its files.
    """

    def __init__(self, own: Environment, folder: Path) -> None:
        self.own, self.folder = own, folder
        self.s3 = AwsAccess(own).client("s3")
        self.bucket = own.spec.buckets.checkpoints
        self.s3.create_bucket(Bucket=self.bucket)

    def uri(self, job: str) -> str:
        return f"s3a://{self.bucket}/{job}"

    @contextmanager
    def driver(self, job: str, token: int = 1, lease_s: float = 30.0) -> Iterator[tuple[Restarts, Lease]]:
        """A driver of the job, in this process, that holds the lease."""
        holder = LeaseHolder.this_process("clicks-driver-0", f"uid-{token}")
        lease = LeaseFile(self.uri(job), holder, lease_s, self.s3).take(lambda: token, threading.Event(), lambda _: None)
        assert lease is not None
        restarts = Restarts(self.uri(job), Restart(), s3=self.s3)
        restarts.begin(lease.token, holder, WHAT)
        try:
            yield restarts, lease
        finally:
            lease.release()

    def generation(self, job: str, batch: int = 7) -> None:
        """Begins the first generation, with a micro-batch, and one that began 100 s before it."""
        folder = JobFolder(self.uri(job), self.s3)
        checkpoint = folder.checkpoint(1)
        record = BatchRecord(
            batch=batch,
            time_ms=AT_MS,
            rows_in={"a": 5},
            total_rows_in={"a": 5_000},
            watermarks=Watermarks(current_ms=AT_MS - 10_000),
            positions={"clicks": {0: Position(4_000, 6_000), 1: Position(1_000, 1_400)}},
            state_bytes=3 * 1024,
        )
        before = {"clicks": {0: Position(0, 4_000), 1: Position(0, 1_000)}}
        checkpoint.record(BatchRecord(batch=0, time_ms=AT_MS - 100_000, positions=before))
        commit(self.s3, checkpoint, record)
        folder.begin(generation())

    def status(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
        file = self.folder / "environment.yaml"
        file.write_text(self.own.text())
        parser = argparse.ArgumentParser()
        status.add_arguments(parser)
        code = status.run(parser.parse_args([str(file), *words]))
        return code, capsys.readouterr().out

    def job(self, capsys: pytest.CaptureFixture[str], name: str = "clicks") -> tuple[int, dict[str, Any]]:
        code, out = self.status(capsys, "-o", "json", "--job", name)
        (job,) = json.loads(out)["jobs"]
        return code, job


@pytest.fixture
def place(aws: EmulatedAws, tmp_path: Path) -> Place:
    (tmp_path / "clicks.py").write_text("def build(job):\n    job.write(job.source('a', 'at STRING'), 'out')\n")
    for name in ("clicks", "views"):
        (tmp_path / f"{name}.yaml").write_text(SPEC.format(name=name))
    data = environment(aws, f"st{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
    data["spec"]["jobs"] = [str(tmp_path / f"{name}.yaml") for name in ("clicks", "views")]
    return Place(Environment.model_validate(data), tmp_path)


def test_a_job_is_not_started_then_runs_and_is_stopped(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.job(capsys) == (0, place.job(capsys)[1] | {"state": "not started", "since": None, "generation": None})
    with place.driver("clicks") as (restarts, lease):
        place.generation("clicks")
        code, job = place.job(capsys)
        assert (code, job["state"], job["driver"], job["generation"], job["starts"]) == (0, "running", "pod clicks-driver-0", 1, 1)
        assert job["checkpoint"] == f"{place.uri('clicks')}/checkpoints/1"
        (query,) = job["queries"]
        assert (query["microBatch"], query["recordsIn"], query["totalRecordsIn"]) == (7, 5, 5_000)
        assert (query["at"], query["watermark"]) == ("2025-11-24T16:00:00Z", "2025-11-24T15:59:50Z")
        lease.stopping()
        wait_for(lambda: place.job(capsys)[1]["state"] == "stopping", 60)
        restarts.ended(None)
    assert place.job(capsys)[1]["state"] == "stopped"
    JobFolder(place.uri("clicks"), place.s3).checkpoint(1).put_once(FINISHED, "")
    assert place.job(capsys)[1]["state"] == "finished"


def test_lag_and_rates_are_those_of_the_last_micro_batches(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.generation("clicks")
    (query,) = place.job(capsys)[1]["queries"]
    backlog = query["backlog"]
    assert (backlog["records"], backlog["readPerS"], backlog["arrivedPerS"], backlog["microBatches"]) == (2_400, 50.0, 24.0, 7)
    assert (backlog["seconds"], round(backlog["goneInS"], 1)) == (100.0, 92.3)
    (second,) = backlog["partitions"][1:]
    assert second == {"topic": "clicks", "partition": 1, "next": 1_000, "latest": 1_400, "records": 400, "arrivedPerS": 4.0}
    # 2,000 and 400 have come, so 1,200 to the mean one.
    assert (backlog["skew"]["partition"], round(backlog["skew"]["times"], 3)) == (0, 1.667)
    _, out = place.status(capsys, "--job", "clicks")
    (row,) = [line for line in out.splitlines() if line.startswith("  clicks ")][:1]
    assert "2,400" in row and "1m 32s" in row
    assert "50.0 records/s read, 24.0 arrived, over 7 micro-batches; 2,400 records are 1m 40s of arrivals" in " ".join(out.split())
    assert ["clicks", "clicks-0", "4,000", "6,000", "2,000", "20.0"] in [line.split() for line in out.splitlines()]


def test_state_is_shown_beside_what_is_planned(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    file = place.folder / "clicks.yaml"
    load = "load: {eventsPerSecond: 100, eventBytes: 200, eventsPerSlot: 1000, state: {keys: 1000, bytesPerKey: 512}}"
    file.write_text(file.read_text().replace("parallelism: 1", load).replace("{slots: 1, memory: 2g}", "{slots: 1}"))
    place.generation("clicks")
    _, job = place.job(capsys)
    assert (job["queries"][0]["stateBytes"], job["plannedStateBytes"]) == (3_072, 512_000)
    _, out = place.status(capsys, "--job", "clicks")
    assert "state of clicks" in out and "3.0 KiB" in out and "500.0 KiB, uncompressed" in out
    # Planning takes longer than a look at all jobs may.
    (job, _) = json.loads(place.status(capsys, "-o", "json")[1])["jobs"]
    assert job["plannedStateBytes"] is None


def test_a_record_of_an_earlier_release_has_no_lag(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.generation("clicks")
    checkpoint = JobFolder(place.uri("clicks"), place.s3).checkpoint(1)
    checkpoint.record(BatchRecord(batch=7, time_ms=AT_MS, total_rows_in={"a": 5_000}))
    place.s3.delete_object(Bucket=place.bucket, Key="clicks/checkpoints/1/penstock/batches/0.json")
    code, job = place.job(capsys)
    backlog = job["queries"][0]["backlog"]
    assert (code, backlog["records"], backlog["readPerS"], backlog["partitions"]) == (0, None, None, [])


def test_a_failure_is_said_with_its_cause_until_the_job_runs(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.driver("clicks") as (restarts, _):
        restarts.ended(BrokersUnreachable(path="brokers", given="b-1:9098"))
    code, job = place.job(capsys)
    assert (code, job["state"], job["failures"]) == (1, "restarting", 1)
    assert job["cause"] == "JOB-001: Kafka brokers unreachable (brokers): b-1:9098"
    with place.driver("clicks", token=2) as (restarts, _):
        assert place.job(capsys)[1]["state"] == "running"
        restarts.ended(BadDeclaration(path="job.write", need="each source once"))
    code, job = place.job(capsys)
    assert (code, job["state"]) == (1, "failed")
    assert job["cause"].endswith("each source once; it fails again as long as the job does not change")
    assert [run["failure"]["code"] for run in job["runs"]] == ["JOB-004", "JOB-001"]
    assert [(reason["code"], reason["times"]) for reason in job["reasons"]] == [("JOB-004", 1), ("JOB-001", 1)]


def test_a_job_that_runs_again_says_why_it_has_failed_within_the_hour(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for token in (1, 2):
        with place.driver("clicks", token=token) as (restarts, _):
            restarts.ended(BrokersUnreachable(path="brokers", given=f"b-{token}:9098"))
    with place.driver("clicks", token=3):
        code, out = place.status(capsys, "--job", "clicks")
        (reason,) = place.job(capsys)[1]["reasons"]
    assert (code, reason["code"], reason["times"]) == (0, "JOB-001", 2)
    text = " ".join(out.split())
    assert "clicks, failed 2 times, last" in text and "JOB-001: Kafka brokers unreachable (brokers): b-2:9098" in text


def test_a_driver_that_is_gone_without_a_word_is_lost(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.driver("clicks"):
        pass
    code, job = place.job(capsys)
    assert (code, job["state"]) == (1, "lost")
    assert job["cause"] == "pod clicks-driver-0 has not renewed the job's lease and recorded no end"


def test_a_damaged_record_does_not_hide_the_other_jobs(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.generation("clicks")
    place.s3.put_object(Bucket=place.bucket, Key="views/penstock/generations/1.json", Body=b"{")
    code, out = place.status(capsys)
    assert code == 1
    assert "views, unreadable" in out and "JOB-008" in out
    (row,) = [line for line in out.splitlines() if line.startswith("  clicks")]
    assert "5,000" in row


def test_the_table_has_the_runs_of_the_jobs_that_are_named(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.driver("clicks") as (restarts, _):
        place.generation("clicks")
        restarts.ended(BrokersUnreachable(path="brokers", given="b-1:9098"))
    _, every = place.status(capsys)
    assert "views" in every and "runs of the drivers" not in every
    code, out = place.status(capsys, "--job", "clicks")
    assert code == 1 and "views" not in out
    assert "runs of the drivers of clicks" in out and "JOB-001: Kafka brokers unreachable" in out


@pytest.mark.parametrize("verb", [stop, resume, move])
def test_without_a_cluster_nothing_can_be_stopped_resumed_or_moved(place: Place, verb: Any) -> None:
    file = place.folder / "environment.yaml"
    file.write_text(place.own.text())
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    with pytest.raises(JobNotDeployed) as raised:
        verb.run(parser.parse_args([str(file), "--job", "clicks"]))
    assert (raised.value.code, raised.value.given) == ("DEP-017", "an emulated cluster has none")


def test_an_unknown_job_is_named_with_those_that_exist(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WrongUsage) as raised:
        place.status(capsys, "--job", "click")
    assert (raised.value.given, raised.value.fix) == ("--job click", "did you mean clicks?")
