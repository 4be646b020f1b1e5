"""A job that is stopped and resumed, against a real API server; what controllers and the kubelet would do, the tests do."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from kubernetes import client

from penstock.jobs.storage.driver_runs import DriverRun, DriverRuns, DriverRunsFile
from penstock.jobs.storage.generation import Fingerprint
from penstock.scripts.operations.resuming import driver_of
from penstock.scripts.operations.running_job import OwnDriver, wait_until_it_reads
from penstock.scripts.provisioning.errors import DriverNotReady, JobNotDeployed
from tests.kube.driver_objects import Job
from tests.kube.objects import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LIMIT_S = 60
RUN = DriverRun(token=3, driver="d", pod_uid=None, fingerprint=Fingerprint(app="a", spec="s", plan="p"), started=datetime.now(UTC))


@pytest.fixture
def runs(s3: S3Client, job: Job) -> DriverRunsFile:
    return DriverRunsFile(f"s3a://checkpoints/{job.name}", s3)


def _own(api: client.ApiClient, job: Job, runs: DriverRunsFile) -> OwnDriver:
    return OwnDriver(api, job.name, lambda: runs.change(DriverRuns.resumed))


@pytest.fixture
def job(objects: Objects) -> Job:
    return Job(objects)


def test_a_stopped_job_has_no_driver_until_it_is_resumed(api: client.ApiClient, objects: Objects, job: Job, runs: DriverRunsFile) -> None:
    other = Job(objects)

    def kubelet() -> None:
        objects.wait_for(job.driver, f"penstock.dev/job={job.name}", lambda found: found[0]["spec"]["replicas"] == 0, LIMIT_S)
        objects.delete(job.pod)

    thread = threading.Thread(target=kubelet)
    thread.start()
    assert _own(api, job, runs).stop(LIMIT_S)
    thread.join()
    assert (job.replicas(), job.pods()) == (0, [])
    # Another job runs on.
    assert (other.replicas(), other.pods()) == (1, [f"{other.name}-driver-0"])
    assert not _own(api, job, runs).stop(LIMIT_S)

    assert _own(api, job, runs).resume()
    assert job.replicas() == 1
    job.ready(1)
    wait_until_it_reads(job.name, lambda: _own(api, job, runs).reads, lambda: "", LIMIT_S)


def test_a_job_that_has_failed_gets_a_new_pod_and_its_failures_are_forgiven(api: client.ApiClient, job: Job, runs: DriverRunsFile) -> None:
    runs.change(lambda known: known.begun(RUN))
    job.crash()
    assert _own(api, job, runs).resume()
    assert (job.replicas(), job.pods()) == (1, [])
    assert runs.read().resumed_after == RUN.token


def test_a_driver_that_starts_or_runs_is_left_alone(api: client.ApiClient, job: Job, runs: DriverRunsFile) -> None:
    before = runs.read()
    assert not _own(api, job, runs).resume()
    assert (job.pods(), runs.read()) == ([f"{job.name}-driver-0"], before)


def test_a_driver_that_is_not_ready_in_time_is_said_with_what_is_known(api: client.ApiClient, job: Job, runs: DriverRunsFile) -> None:
    job.ready(0)
    with pytest.raises(DriverNotReady) as raised:
        wait_until_it_reads(job.name, lambda: _own(api, job, runs).reads, lambda: "JOB-001: Kafka brokers unreachable", limit_s=0)
    assert (raised.value.code, raised.value.given) == ("DEP-018", "JOB-001: Kafka brokers unreachable")


def test_a_job_that_is_not_deployed_is_named(api: client.ApiClient) -> None:
    with pytest.raises(JobNotDeployed) as raised:
        driver_of(api, "nobody")
    assert (raised.value.code, raised.value.path) == ("DEP-017", "job nobody")
