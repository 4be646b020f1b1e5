"""One job of a session that is stopped, resumed and rewound, against a real API server and an emulated S3. What the kubelet and the
session's driver would do, the tests do, with the driver's own code.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kubernetes import client

from penstock.jobs.configuration.session import SESSION, STOP, requests_config_map
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.driver_runs import DriverRunsFile
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.lease import LeaseFile
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.scripts.operations.job_of_session import JobOfSession
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.operations.running_job import wait_until_it_reads
from penstock.scripts.provisioning.errors import JobNotDeployed, SessionIsStopped, StillThere
from tests.emulated.job_history import WHAT
from tests.kube.driver_objects import Job
from tests.kube.objects import Object, Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LIMIT_S = 60
NAME, OTHER = "clicks", "views"
SPEC = Path("jobs/specs/error_logs.yaml")


class Session:
    """A session that is deployed with two jobs.

    Args:
        api: client of the cluster's API.
        objects: of that API.
        s3: client.
    """

    def __init__(self, api: client.ApiClient, objects: Objects, s3: S3Client) -> None:
        self.api, self.objects, self.s3, self.kube = api, objects, s3, Job(objects)
        self.name, self.namespace = self.kube.name, f"job-{self.kube.name}"
        # A folder of its own, whatever other tests have left of jobs with this name.
        self.uri = f"s3a://checkpoints/{self.name}/{NAME}"
        self.runs = DriverRunsFile(self.uri, s3)
        self.holder = LeaseHolder(host="h", pid=1, pod="driver-0", pod_uid="u")
        objects.apply(self._config_map(f"{self.name}-driver", {SESSION: json.dumps({"jobs": {NAME: {}, OTHER: {}}})}))

    def job(self, name: str = NAME, kubelet_s: float = LIMIT_S) -> JobOfSession:
        return JobOfSession(self.api, name, self.name, self.runs, self._status, kubelet_s)

    def _status(self) -> JobStatus:
        return status_of(self._spec, f"checkpoints/{self.name}", self.s3, datetime.now(UTC))

    @property
    def _spec(self) -> SpecFile:
        spec = load(SPEC)
        job = spec.job.model_copy(update={"metadata": spec.job.metadata.model_copy(update={"name": NAME})})
        return spec.model_copy(update={"job": job})

    def _config_map(self, name: str, data: dict[str, str]) -> Object:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace}, "data": data}

    def requests(self) -> dict[str, str]:
        """As the driver's pod mounts them."""
        found = self.objects.list("v1", "ConfigMap", self.namespace)
        return next((one["data"] for one in found if one["metadata"]["name"] == requests_config_map(self.name)), {})

    @contextmanager
    def process(self, token: int) -> Iterator[None]:
        """The process of the job runs until its driver is asked to stop it."""
        restarts = Restarts(self.uri, Restart(), s3=self.s3)
        lease = LeaseFile(self.uri, self.holder, s3=self.s3).take(lambda: token, threading.Event(), lambda _: None)
        assert lease is not None
        restarts.begin(lease.token, self.holder, WHAT)
        restarts.reading()

        def run() -> None:
            while self.requests().get(NAME) != STOP and not over.is_set():
                over.wait(0.05)
            # In the driver's order: without its lease, a run that has not ended is lost.
            restarts.ended(None)
            lease.release()

        over, thread = threading.Event(), threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(LIMIT_S)

    def fail(self, token: int) -> None:
        """The process of the job fails."""
        restarts = Restarts(self.uri, Restart(), s3=self.s3)
        restarts.begin(token, self.holder, WHAT)
        restarts.ended(BucketUnreachable(path="s3a://b"))

    def asked(self) -> str | None:
        """When the kubelet was last made to look."""
        annotations: dict[str, str] = self.objects.get(self.kube.pod)["metadata"].get("annotations", {})
        return annotations.get("penstock.dev/asked")


@pytest.fixture
def session(api: client.ApiClient, objects: Objects, s3: S3Client) -> Session:
    return Session(api, objects, s3)


def test_a_job_is_stopped_and_resumed_while_its_driver_runs_on(session: Session) -> None:
    job = session.job()
    with session.process(1):
        assert job.reads
        assert job.stop(LIMIT_S)
        assert (job.status().state, session.requests()) == ("stopped", {NAME: STOP})
    assert session.asked() is not None
    assert (session.kube.replicas(), session.kube.pods()) == (1, [f"{session.name}-driver-0"])
    assert not job.reads
    assert not job.stop(LIMIT_S)

    assert job.resume()
    assert session.requests()[NAME] != STOP
    with session.process(2):
        wait_until_it_reads(NAME, lambda: job.reads, lambda: "", LIMIT_S)
        assert not job.resume()


def test_requests_of_several_jobs_are_kept_apart(session: Session) -> None:
    assert session.job(OTHER).stop(LIMIT_S)
    assert session.job().stop(LIMIT_S)
    assert session.requests() == {NAME: STOP, OTHER: STOP}


def test_a_job_that_has_failed_is_asked_to_start_at_once_and_its_failures_are_forgiven(session: Session) -> None:
    session.fail(3)
    job = session.job()
    assert job.status().state == "restarting"
    assert job.resume()
    first = session.requests()[NAME]
    assert (first != STOP, session.runs.read().resumed_after) == (True, 3)
    # Asked again, it is another request, by which a driver that waits starts it again.
    session.fail(4)
    assert job.resume()
    assert session.requests()[NAME] not in (first, STOP)


def test_a_job_that_goes_on_after_the_limit_is_said(session: Session) -> None:
    lease = LeaseFile(session.uri, session.holder, s3=session.s3).take(lambda: 1, threading.Event(), lambda _: None)
    assert lease is not None
    try:
        with pytest.raises(StillThere) as raised:
            session.job(kubelet_s=0).stop(-LIMIT_S)
    finally:
        lease.release()
    assert (raised.value.code, raised.value.given, raised.value.path) == ("DEP-011", "running", f"job {NAME}, session {session.name}")


def test_a_job_of_a_session_that_is_stopped_is_not_resumed(session: Session) -> None:
    session.kube.stop()
    with pytest.raises(SessionIsStopped) as raised:
        session.job().resume()
    assert (raised.value.code, raised.value.fix) == ("DEP-064", f"run it: penstock resume ENV --session {session.name}")


def test_a_job_that_the_deployed_session_does_not_have_is_named(session: Session) -> None:
    session.job().refuse_missing()
    with pytest.raises(JobNotDeployed) as raised:
        session.job("nobody").refuse_missing()
    assert (raised.value.code, raised.value.given) == ("DEP-017", f"the session has {NAME}, {OTHER}")
