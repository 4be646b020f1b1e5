"""A session of two jobs in pods: one fails, is changed and stopped, while the other runs on; then the driver's pod is replaced."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from penstock.jobs.configuration.session import is_of_job
from penstock.jobs.local.recording import Record
from penstock.jobs.spec import load
from penstock.jobs.storage.driver_runs import DriverRun, DriverRunsFile
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.operations.job_of_session import JobOfSession
from penstock.scripts.operations.job_status import status_of
from penstock.scripts.operations.pod_logs import pods_of, write_logs
from penstock.scripts.operations.running_job import wait_until_it_reads
from tests.kube.charts import Release
from tests.kube.evidence import wait_for
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import delete_all
from tests.pods.pod_driver import PodDriver
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import CHECKPOINTS, OUTPUT, SMALL, Surroundings

SESSION = "shared"
# One begins as the other one does.
MENDED, OTHER = "counts", "counts-by-user"
LIMIT_S = 300
ANSWER_S = 10.0
# Each ends the job's process, which is started again until it is stopped as it is.
FAILURES = 20
# The function runs in the executors' Python workers, which have the module from the archive alone.
APP = """
from pyspark.sql import functions as F
from marks import marked

def build(job):
    rows = job.source("in", "user STRING NOT NULL, at STRING NOT NULL")
    job.side_output("errors")
    job.write(rows.select(user=F.udf(marked)("user")), "out")
"""
FAILS = "def marked(user):\n    return {'ann': 'a-ann', 'cid': 'a-cid'}[user]\n"
MARKS = "def marked(user):\n    return '%s-' + user\n"


def spec_of(job: str, marks: str, folder: Path) -> Path:
    """A small job with its app in a folder of its own."""
    own = folder / job
    own.mkdir(parents=True)
    (own / "marking.py").write_text(APP, "utf-8")
    (own / "marks.py").write_text(marks, "utf-8")
    spec = {
        "app": "marking",
        **SMALL,
        "parallelism": 2,
        # For the Python workers of both jobs.
        "executor": {"slots": 2, "cores": "250m", "memory": "3g"},
        "sparkConf": {"spark.executor.memoryOverhead": "1800m"},
        "trigger": "1s",
        "sources": {
            "in": {"kafka": {"topic": f"{job}-in", "startingOffsets": "earliest"}, "time": {"field": "at", "outOfOrderness": "10s"}}
        },
        "sinks": {
            "out": {"files": {"path": job, "prefix": "part-", "roll": {"interval": "1ms"}}},
            "errors": {"kafka": {"topic": f"{job}-errors"}},
            "late": {"kafka": {"topic": f"{job}-late"}},
        },
    }
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": job}, "spec": spec}
    file = own / f"{job}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return file


@dataclass(frozen=True)
class Session:
    """The session under test, released."""

    local: LocalEnvironment
    released: ReleasedJob
    heard: PodDriver
    specs: Path

    def feed(self, job: str, *users: str) -> None:
        """Writes rows for a job."""
        records = [Record(json.dumps({"user": user, "at": "2026-01-01T00:00:00Z"}).encode(), partition=0) for user in users]
        kafka_topics.feed(self.local.kafka.address, f"{job}-in", 1, records, lambda _: None)

    def rows(self, job: str) -> list[str]:
        """What a job has written, sorted."""
        files = recorded_run.output_files(self.local.s3, OUTPUT, job)
        return sorted(str(row["user"]) for row in recorded_run.output_rows(self.local.s3, OUTPUT, files))

    def wait_for_rows(self, job: str, *expected: str) -> None:
        """Waits until a job has written exactly these rows; it never has others."""
        until_s = time.monotonic() + LIMIT_S
        while (found := self.rows(job)) != sorted(expected):
            assert set(found) <= set(expected) and len(found) <= len(expected), f"{job}: {found}"
            assert time.monotonic() < until_s, f"{job}: {found}; {self.heard.log}"
            self._wait("committed", job)

    def wait_for_failure(self, job: str) -> DriverRun:
        """Waits until a run of a job has ended with a failure."""
        until_s = time.monotonic() + LIMIT_S
        while not (failed := [run for run in self.runs(job) if run.failure]):
            assert time.monotonic() < until_s, self.heard.log
            self._wait("restarting", job)
        return failed[0]

    def _wait(self, event: str, job: str) -> None:
        """Returns after an event of a job, or when nothing has been heard for a while."""
        while (heard := self.heard.next_event(ANSWER_S)) is not None:
            if (heard["event"], heard.get("job")) == (event, job):
                return

    def runs(self, job: str) -> Sequence[DriverRun]:
        """The runs of a job, the first one first."""
        return DriverRunsFile(f"s3a://{CHECKPOINTS}/{job}", self.local.s3).read().runs

    def job(self, name: str) -> JobOfSession:
        """A job as `penstock stop` and `resume` act on it."""
        spec = load(self.specs / name / f"{name}.yaml")
        status = partial(status_of, spec, CHECKPOINTS, self.local.s3)
        runs = DriverRunsFile(f"s3a://{CHECKPOINTS}/{name}", self.local.s3)
        return JobOfSession(self.released.cluster.core.api_client, name, SESSION, runs, lambda: status(datetime.now(UTC)))

    def log(self, job: str) -> list[str]:
        """The lines of a job, as `penstock logs` has them."""
        lines: list[str] = []
        api = self.released.cluster.core.api_client
        write_logs(api, pods_of(api, SESSION, "driver"), lines.append, follow=False, previous=False)
        return [line for line in lines if is_of_job(job, line)]

    def driver(self) -> Any:
        """The driver's pod."""
        (pod,) = self.released.pods("driver")
        return pod


@contextmanager
def session_of(
    marks: Mapping[str, str], cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, folder: Path
) -> Iterator[Session]:
    """A session of two jobs, released; all that it has left is deleted at the end."""
    cluster.wait_until_nothing_runs(f"job-{SESSION}")
    delete_all(local)
    release = release_of(marks, local, around, folder / "first")
    kafka_topics.create(local.kafka.address, {f"{job}-{part}": 1 for job in marks for part in ("in", "errors", "late")})
    released = ReleasedJob(SESSION, release, cluster, helm, folder)
    try:
        with released, PodDriver(cluster.core, released.namespace, None, failures_allowed=FAILURES) as heard:
            try:
                yield Session(local, released, heard, folder / "first" / "specs")
            except BaseException:
                print(heard.log)
                raise
    finally:
        delete_all(local)


def release_of(marks: Mapping[str, str], local: LocalEnvironment, around: Surroundings, folder: Path) -> Release:
    """The release of the session, whose archives are in their bucket as Terraform puts them there."""
    specs = [spec_of(job, text, folder / "specs") for job, text in marks.items()]
    release, archives = team_job.session_release(SESSION, specs, around, folder / "release")
    assert len(archives) == len(marks)
    for key, content in archives.items():
        local.s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=content)
    return release


def test_a_job_fails_is_changed_and_is_stopped_and_the_other_runs_on(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    marks = {MENDED: FAILS, OTHER: MARKS % "o"}
    with session_of(marks, cluster, local, around, helm, tmp_path) as session:
        for job, mark in ((MENDED, "a"), (OTHER, "o")):
            session.feed(job, "ann")
            session.wait_for_rows(job, f"{mark}-ann")
        first = session.driver()
        tell("session: both jobs have written their rows")

        session.feed(MENDED, "bob")
        failure = session.wait_for_failure(MENDED).failure
        assert failure is not None and "KeyError" in failure.what
        session.feed(OTHER, "bob")
        session.wait_for_rows(OTHER, "o-ann", "o-bob")
        tell("session: one job has failed, and the other one has written on")

        done = session.released.checked(release_of({**marks, MENDED: MARKS % "b"}, local, around, tmp_path / "mended"))
        assert done.returncode == 0, done.stderr
        session.feed(MENDED, "cid")
        session.wait_for_rows(MENDED, "a-ann", "b-bob", "b-cid")
        session.feed(OTHER, "cid")
        session.wait_for_rows(OTHER, "o-ann", "o-bob", "o-cid")
        now = session.driver()
        assert (now.metadata.uid, now.status.container_statuses[0].restart_count) == (first.metadata.uid, 0)
        assert len(session.runs(OTHER)) == 1
        tell("session: the changed job runs, in the same pod as before and beside the same run of the other one")

        mended = session.job(MENDED)
        mended.refuse_missing()
        assert mended.stop()
        assert mended.status().state == "stopped"
        for name in marks:
            session.feed(name, "eve")
        session.wait_for_rows(OTHER, "o-ann", "o-bob", "o-cid", "o-eve")
        assert session.rows(MENDED) == ["a-ann", "b-bob", "b-cid"]
        assert mended.resume()
        wait_until_it_reads(MENDED, lambda: mended.reads, lambda: session.heard.log, LIMIT_S)
        session.wait_for_rows(MENDED, "a-ann", "b-bob", "b-cid", "b-eve")
        assert (session.driver().metadata.uid, len(session.runs(OTHER))) == (first.metadata.uid, 1)
        assert any("KeyError" in line for line in session.log(MENDED))
        assert not any("KeyError" in line for line in session.log(OTHER))
        tell("session: one job was stopped and resumed by its name, and the other one has written on")

        cluster.core.delete_namespaced_pod(session.released.driver, session.released.namespace)
        wait_for(lambda: [pod.metadata.uid for pod in session.released.pods("driver")] not in ([], [first.metadata.uid]), LIMIT_S)
        for job in marks:
            session.feed(job, "dan")
        session.wait_for_rows(MENDED, "a-ann", "b-bob", "b-cid", "b-dan", "b-eve")
        session.wait_for_rows(OTHER, "o-ann", "o-bob", "o-cid", "o-dan", "o-eve")
        before, after = session.runs(OTHER)
        assert (before.failure, before.pod_uid, after.pod_uid) == (None, first.metadata.uid, session.driver().metadata.uid)
        tell("session: both jobs go on in another pod")
