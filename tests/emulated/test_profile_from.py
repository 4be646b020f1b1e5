"""``penstock profile SPEC --from ENV``: a job's records on an emulated S3, and its driver's events in an emulated log group."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.document import read
from penstock.jobs.driver.fingerprint import app_hash
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.spec import load
from penstock.jobs.spec.job_profile import parsed
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.generation import Fingerprint, RecordedSpec
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease import Lease, LeaseFile
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.profiling.deployed_profile import Committed, restarts_s
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.job_history import generation
from tests.emulated.small_stacks import environment

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks
  parallelism: 4
  executor: {slots: 2, memory: 4g}
  sources:
    a: {kafka: {topic: clicks}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks}}
"""
NOW = datetime.now(UTC)


class Deployed:
    """An environment with a job that runs, and what its driver has said.

    Args:
        aws: where it is.
        folder: for its files.
    """

    def __init__(self, aws: EmulatedAws, folder: Path) -> None:
        (folder / "clicks.py").write_text("def build(job):\n    job.write(job.source('a', 'at STRING'), 'out')\n")
        self.spec = folder / "clicks.yaml"
        self.spec.write_text(SPEC)
        data = environment(aws, f"pf{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
        data["spec"]["jobs"] = [str(self.spec)]
        self.own = Environment.model_validate(data)
        self.file = folder / "environment.yaml"
        self.file.write_text(self.own.text())
        access = AwsAccess(self.own)
        self.s3, self.logs = access.client("s3"), access.client("logs")
        self.uri = f"s3a://{self.own.spec.buckets.checkpoints}/clicks"
        self.group = f"/penstock/{self.own.name}/jobs/clicks"
        self.s3.create_bucket(Bucket=self.own.spec.buckets.checkpoints)

    def begin(self, **other: str) -> Fingerprint:
        """The generation that runs, as the job is here but for what is given."""
        (job,) = plans(self.own).jobs
        folders = [Path(folder) for folder in self.own.spec.app_path]
        here = {"app": app_hash(load(self.spec), folders), "spec": "s", "plan": plan_hash(job.plan)}
        what = Fingerprint(**{**here, **other})
        folder = JobFolder(self.uri, self.s3)
        folder.record_spec(1, RecordedSpec(text=self.spec.read_text()))
        folder.begin(generation(began=NOW - timedelta(hours=1), fingerprint=what))
        return what

    @contextmanager
    def driver(self, what: Fingerprint) -> Iterator[Lease]:
        holder = LeaseHolder.this_process("clicks-driver-0", "uid-1")
        lease = LeaseFile(self.uri, holder, 60.0, self.s3).take(lambda: 1, threading.Event(), lambda _: None)
        assert lease is not None
        Restarts(self.uri, Restart(), s3=self.s3).begin(lease.token, holder, what)
        try:
            yield lease
        finally:
            lease.release()

    def say(self, events: Sequence[dict[str, Any]], *, create: bool = True) -> None:
        """What Fluent Bit writes of a driver's standard output, a second each, up to half an hour ago, among lines of another kind."""
        if create:
            self.logs.create_log_group(logGroupName=self.group)
        self.logs.create_log_stream(logGroupName=self.group, logStreamName="clicks-driver-0.driver")
        began = NOW - timedelta(minutes=30)
        lines = [{"log": "WARN something", "stream": "stderr"}, *({"log": json.dumps(one), "event": one["event"]} for one in events)]
        records = [
            {"timestamp": round((began + timedelta(seconds=number)).timestamp() * 1000), "message": json.dumps(line)}
            for number, line in enumerate(lines)
        ]
        self.logs.put_log_events(logGroupName=self.group, logStreamName="clicks-driver-0.driver", logEvents=records)

    def run(self, out: Path) -> int:
        return main(["profile", str(self.spec), "--from", str(self.file), "--out", str(out)])


def committed(rows: int, duration_ms: int, **more: object) -> dict[str, Any]:
    return {"event": "committed", "batch": 1, "rows": rows, "durationMs": duration_ms, **more}


# 300 ms and 50 µs a row, on four tasks; those without rows, and others' events, say nothing.
EVENTS = [
    *(
        committed(rows, 300 + rows // 20, state={"rows": 0, "bytes": 0, "puts": 10, "putBytes": 800})
        for rows in (100_000, 4_000, 120_000, 8_000, 110_000, 90_000, 2_000, 105_000)
    ),
    committed(0, 50),
    {"event": "idle", "lagRecords": 0},
]


@pytest.fixture
def deployed(aws: EmulatedAws, tmp_path: Path) -> Deployed:
    return Deployed(aws, tmp_path)


def test_a_job_that_runs_is_measured_by_its_events(deployed: Deployed, tmp_path: Path) -> None:
    deployed.say(EVENTS)
    out = tmp_path / "clicks.profile.json"
    with deployed.driver(deployed.begin()):
        assert deployed.run(out) == 0
    found = parsed(read(out))
    measured = found.measured
    assert measured.batch_overhead_s is not None and measured.bytes_per_key is not None
    assert measured.batch_overhead_s.typical == pytest.approx(0.3, abs=0.01)
    assert measured.events_per_slot_per_s.typical == pytest.approx(20_000 / 4, rel=0.02)
    assert (measured.events_per_cpu_s, measured.machine, measured.bytes_per_key.typical) == (None, None, 80)
    (run,) = found.runs
    assert (run.slots, run.micro_batches, run.events) == (4, 8, 539_000)


def _fails(deployed: Deployed, out: Path, capsys: pytest.CaptureFixture[str], code: str) -> str:
    assert deployed.run(out) in (2, 5)
    said = capsys.readouterr().err
    assert f"error[{code}]" in said, said
    assert not list(out.parent.glob("*unfinished*")) and not out.exists()
    return said


def test_a_job_that_does_not_run_there_as_it_is_here_is_refused(
    deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clicks.profile.json"
    assert "not started" in _fails(deployed, out, capsys, "DEP-062")
    with deployed.driver(deployed.begin(app="0" * 16, plan="1" * 16)):
        assert "its app and plan differ" in _fails(deployed, out, capsys, "DEP-062")
    other = deployed.spec.with_name("views.yaml")
    other.write_text(SPEC.replace("name: clicks", "name: views"))
    deployed.spec = other
    assert "job views of" in _fails(deployed, out, capsys, "DEP-062")


def test_without_events_or_with_too_few_of_them_there_is_no_profile(
    deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clicks.profile.json"
    with deployed.driver(deployed.begin()):
        assert "no such log group" in _fails(deployed, out, capsys, "DEP-061")
        deployed.logs.create_log_group(logGroupName=deployed.group)
        assert "none" in _fails(deployed, out, capsys, "DEP-061")
        deployed.say(EVENTS[:3], create=False)
        assert "3 with records in 6 hours" in _fails(deployed, out, capsys, "PROF-006")


def test_an_environment_that_cannot_be_reached_leaves_no_profile(
    deployed: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = deployed.file.read_text()
    with EmulatedAws(log=tmp_path / "gone.log") as gone:
        endpoint = gone.endpoint
    assert deployed.own.spec.endpoints is not None
    deployed.file.write_text(text.replace(deployed.own.spec.endpoints.of("s3"), endpoint))
    _fails(deployed, tmp_path / "clicks.profile.json", capsys, "RUN-021")


def test_restarts_are_those_after_failures_up_to_the_first_commit() -> None:
    from penstock.jobs.storage.driver_runs import DriverRun, Failure

    def run(token: int, started_s: float, ended_s: float | None, failure: Failure | None = None) -> DriverRun:
        at = [None if seconds is None else NOW + timedelta(seconds=seconds) for seconds in (started_s, ended_s)]
        what = Fingerprint(app="a", spec="s", plan="p")
        return DriverRun(token=token, driver="d", pod_uid=None, fingerprint=what, started=at[0] or NOW, ended=at[1], failure=failure)

    failure = Failure(code="JOB-001", what="brokers", answer="always")
    runs = [run(1, 0, 100, failure), run(2, 130, 300), run(3, 2_000, 2_100, failure), run(4, 9_000, None)]
    events = [Committed(NOW + timedelta(seconds=at), committed(1, 1)) for at in (50, 145, 200, 2_050, 9_100)]
    # The second was stopped by somebody, and the last pause is longer than an hour.
    assert list(restarts_s(events, runs)) == [45.0]
