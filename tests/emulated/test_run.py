"""``penstock run``: a job of an environment on this machine, with its real driver, brokers and an emulated S3."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.local.recording import Record
from penstock.jobs.spec import load
from penstock.jobs.storage.driver_runs import DriverRunsFile
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.layout import ROOT
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.clicks import APP, LIMIT_S, SPEC, wait_until_gone
from tests.emulated.small_stacks import environment

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# It starts Spark twice.
pytestmark = pytest.mark.timeout(2 * LIMIT_S)

# A micro-batch has a few records, so that the driver is killed between its first and its last one.
SLOW = (
    SPEC.partition("  local:")[0]
    .replace("topic: clicks, partitions: 2", "topic: NAME, partitions: 2, maxOffsetsPerTrigger: 25, startingOffsets: earliest")
    .replace("name: clicks", "name: NAME")
    .replace("path: clicks", "path: NAME")
    .replace("topic: clicks-errors", "topic: NAME-errors")
)
# As local runs of minutes have them.
OPTIONS = "{spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC}"


def wait_for(result: Callable[[], bool]) -> None:
    """Returns as soon as it is so. A look at a job's status takes some ten requests."""
    until_s = time.monotonic() + LIMIT_S
    while not result():
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(1)


@dataclass
class Desk:
    """A folder with an environment, which has one job, beside nothing of this repo.

    Args:
        folder: of both.
        own: the environment.
        broker: of the job.
    """

    folder: Path
    own: Environment
    broker: KafkaBroker
    said: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the environment and of the job."""
        return self.own.name

    @cached_property
    def s3(self) -> S3Client:
        client: S3Client = AwsAccess(self.own).client("s3")
        return client

    def feed(self, numbers: range) -> None:
        values = [json.dumps({"user": f"user-{number}", "at": "2025-04-05T12:00:00Z", "page": "/"}).encode() for number in numbers]
        records = [Record(value, partition=number % 2) for number, value in zip(numbers, values, strict=True)]
        kafka_topics.feed(self.broker.address, self.name, 2, records, lambda _: None)

    def users(self) -> list[str]:
        """Of the rows in the bucket."""
        output = self.own.spec.buckets.output
        return sorted(
            row["user"] for row in recorded_run.output_rows(self.s3, output, recorded_run.output_files(self.s3, output, self.name))
        )

    def micro_batches(self) -> int:
        """How many are committed."""
        prefix = f"{self.name}/checkpoints/1/commits/"
        return self.s3.list_objects_v2(Bucket=self.own.spec.buckets.checkpoints, Prefix=prefix)["KeyCount"]

    def read(self) -> int:
        """Records that committed micro-batches have read."""
        return sum(query.total_records_in for query in self.status().queries)

    def status(self) -> JobStatus:
        return status_of(load(self.folder / "job.yaml"), self.own.spec.buckets.checkpoints, self.s3, datetime.now(UTC))

    @contextmanager
    def run(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """The command while it runs; it does not outlive a test that fails."""
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder / "tmp")}
        command = [sys.executable, "-m", "penstock.scripts", "run", "environment.yaml", "--job", self.name, "--no-check", *options]
        with subprocess.Popen(command, cwd=self.folder, env=variables, stderr=subprocess.PIPE, text=True) as running:
            try:
                yield running
            finally:
                running.kill()

    def until(self, running: subprocess.Popen[str], pattern: str) -> str:
        assert running.stderr is not None
        for line in running.stderr:
            self.said.append(line)
            if re.search(pattern, line):
                return line
        logs = [log.read_text()[-5000:] for log in self.folder.glob(".penstock/run/*/*/driver.log")]
        raise AssertionError("".join([*self.said, *logs]))


@pytest.fixture
def desk(aws: EmulatedAws, broker: KafkaBroker, tmp_path: Path) -> Desk:
    name = f"run-{uuid.uuid4().hex[:8]}"
    data = environment(aws, name).model_dump(by_alias=True, exclude_none=True)
    # Its driver is given the number beside the spec.
    job = {"spec": str(tmp_path / "job.yaml"), "parallelism": 1}
    data["spec"] |= {"jobs": [job], "kafka": {"kind": "external", "bootstrapServers": broker.address}}
    desk = Desk(tmp_path, Environment.model_validate(data), broker)
    for bucket in (desk.own.spec.buckets.checkpoints, desk.own.spec.buckets.output):
        desk.s3.create_bucket(Bucket=bucket)
    kafka_topics.create(broker.address, {name: 2, f"{name}-errors": 1})
    (tmp_path / "tmp").mkdir()
    (tmp_path / "clicks_app.py").write_text(APP)
    (tmp_path / "job.yaml").write_text(SLOW.replace("NAME", name) + f"  sparkConf: {OPTIONS}\n")
    (tmp_path / "environment.yaml").write_text(desk.own.text())
    return desk


def test_a_killed_driver_is_started_again_and_the_job_goes_on_until_it_is_stopped(desk: Desk) -> None:
    desk.feed(range(200))
    with desk.run() as running:
        desk.until(running, r"^  run .* reads its sources")
        wait_for(lambda: desk.micro_batches() >= 2)
        (killed,) = re.findall(r"process (\d+) on", str(desk.status().driver))
        os.kill(int(killed), signal.SIGKILL)
        assert "in 10 s, after RUN-014: driver terminated unexpectedly: code -9\n" in desk.until(running, r"^  restart ")
        desk.feed(range(200, 240))
        desk.until(running, r"^  run .* reads its sources")
        wait_for(lambda: desk.read() >= 240)
        status = desk.status()
        assert (status.state, status.starts, status.failures) == ("running", 2, 1)
        assert status.reasons[0].what.startswith("killed before it could record why")
        running.send_signal(signal.SIGTERM)
        desk.until(running, r"^  stop .* has stopped")
        assert running.wait(LIMIT_S) == 0
    assert desk.users() == sorted(f"user-{number}" for number in range(240))
    assert desk.status().state == "stopped"
    recorded = JobFolder(f"s3a://{desk.own.spec.buckets.checkpoints}/{desk.name}", desk.s3).recorded_spec(1)
    assert recorded is not None and "parallelism: 1" in recorded.text
    wait_until_gone(desk.folder / "tmp")


def test_an_app_that_is_wrong_stops_the_job_with_the_reason_until_it_is_resumed(desk: Desk) -> None:
    (desk.folder / "clicks_app.py").write_text(APP.replace('job.side_output("errors")', "pass"))
    with desk.run() as running:
        desk.until(running, r"^  stopped .* is not started again as it is: JOB-004.*; it fails again as long as the job does not change")
        desk.until(running, r"^error\[JOB-004\]")
        assert running.wait(LIMIT_S) == 5
    assert "restart" not in "".join(desk.said)
    with desk.run() as running:
        desk.until(running, r"^error\[JOB-092\]")
        assert running.wait(LIMIT_S) == 5
    recorded = DriverRunsFile(f"s3a://{desk.own.spec.buckets.checkpoints}/{desk.name}", desk.s3)
    assert (len(recorded.read().runs), recorded.read().resumed_after) == (1, 0)
    with desk.run("--resume") as running:
        desk.until(running, r"^  stop ")
        wait_for(lambda: len(recorded.read().runs) == 2)
        # Killed, it need not start Spark.
        running.send_signal(signal.SIGINT)
        desk.until(running, r"finishes its micro-batch")
        running.send_signal(signal.SIGINT)
        assert running.wait(LIMIT_S) == 130
    assert recorded.read().resumed_after == 1
    wait_until_gone(desk.folder / "tmp")


@pytest.mark.chaos
def test_a_detached_run_is_found_followed_and_stopped_with_nothing_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.feed(range(40))
    with desk.run("--detach") as starting:
        _, said = starting.communicate(timeout=LIMIT_S)
    assert starting.returncode == 0, said
    assert f"penstock stop {desk.name} --job {desk.name}" in said
    monkeypatch.chdir(desk.folder)
    assert main(["status", "environment.yaml", "-o", "json"]) == 0
    (detached,) = json.loads(capsys.readouterr().out)["detached"]
    assert (detached["state"], detached["jobs"], detached["cause"]) == ("running", [desk.name], "")
    wait_for(lambda: desk.read() == 40)
    assert main(["logs", "environment.yaml", "--job", desk.name]) == 0
    assert f"{desk.name} reads its sources" in capsys.readouterr().out
    assert main(["stop", "environment.yaml", "--job", desk.name]) == 0
    assert "nothing of its detached run is left" in capsys.readouterr().err
    assert desk.status().state == "stopped"
    assert list((desk.folder / ".penstock/detached" / desk.name).iterdir()) == []
    wait_until_gone(desk.folder / "tmp")
