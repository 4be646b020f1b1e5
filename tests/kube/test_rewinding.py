"""A job that is rewound by an operator, against a real API server and an emulated S3. What controllers and the kubelet would do, the tests
do, and what the driver does at its start they do with the driver's own code.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from kubernetes import client
from rich.console import Console

from penstock.jobs.driver.errors import RewindImpossible
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.kafka.errors import RecordsGone
from penstock.jobs.savepoints.errors import SavepointDamaged
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import CheckpointDamaged, CheckpointMissing
from penstock.jobs.storage.generation import Rewound
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile, StartPoint
from penstock.scripts.operations.job_records import JobRecords
from penstock.scripts.operations.rewinding import Rewinding
from penstock.scripts.operations.running_job import OwnDriver
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import DriverNotReady, JobChanged, NothingToRewind, RewindRefused, StillThere
from penstock.sizing.errors import PenstockError
from tests.emulated.job_history import WHAT, commit, generation
from tests.kube.driver_objects import Job
from tests.kube.objects import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LIMIT_S = 60


class Deployed:
    """A job that runs as its first generation.

    Args:
        api: client of the cluster's API.
        objects: of that API.
        s3: client.
    """

    def __init__(self, api: client.ApiClient, objects: Objects, s3: S3Client) -> None:
        self.objects, self.api, self.s3, self.kube = objects, api, s3, Job(objects)
        uri = f"s3a://checkpoints/{self.kube.name}"
        self.records = JobRecords(JobFolder(uri, s3), RewindRequestFile(uri, s3), DriverRunsFile(uri, s3))
        self.said = io.StringIO()
        self.begin()

    def rewinding(self, pod_margin_s: float = LIMIT_S) -> Rewinding:
        own = OwnDriver(self.api, self.kube.name, lambda: self.records.runs.change(DriverRuns.resumed))
        return Rewinding(own, self.records, Steps(Console(file=self.said, width=200)), LIMIT_S, pod_margin_s)

    def request(
        self, *, after: int = 1, to: StartPoint | None = None, back_to: int | None = None, start_from: str | None = None
    ) -> RewindRequest:
        return RewindRequest(after=after, to=to, back_to=back_to, start_from=start_from, asked=datetime.now(UTC))

    def begin(self) -> None:
        """What a driver does at its start: decides what it goes on with, and records it."""
        folder = self.records.folder
        decided = folder.continuation(WHAT, "last-state", None, self.records.requests.read())
        folder.checkpoint(decided.checkpoint).identity()
        if decided.begins:
            made = generation(decided.number, checkpoint=decided.checkpoint, rewind=decided.rewind)
            folder.begin(made.model_copy(update={"savepoint": decided.savepoint}))

    def fail(self, error: PenstockError, token: int) -> None:
        """What a driver does that can't go on."""
        restarts = Restarts(self.records.folder.uri, Restart(), s3=self.s3)
        restarts.begin(token, LeaseHolder(host="h", pid=1, pod="driver-0", pod_uid="u"), WHAT)
        restarts.ended(error)

    @contextmanager
    def cluster(self, starts: Callable[[], object]) -> Iterator[None]:
        """Ends the pod when it is to end, and starts the driver when it is to start."""

        def kubelet() -> None:
            self._until_replicas(0)
            self.objects.delete(self.kube.pod)
            self._until_replicas(1)
            starts()

        thread = threading.Thread(target=kubelet)
        thread.start()
        yield
        thread.join(LIMIT_S)
        assert not thread.is_alive()

    def _until_replicas(self, count: int) -> None:
        selector = f"penstock.dev/job={self.kube.name}"
        self.objects.wait_for(self.kube.driver, selector, lambda found: found[0]["spec"]["replicas"] == count, LIMIT_S)

    def run(self) -> None:
        """The driver starts and reads."""
        self.begin()
        self.kube.ready(1)


@pytest.fixture
def job(api: client.ApiClient, objects: Objects, s3: S3Client) -> Deployed:
    return Deployed(api, objects, s3)


def test_a_job_is_stopped_and_starts_again_from_the_time(job: Deployed) -> None:
    with job.cluster(job.run):
        begun = job.rewinding().carry_out(job.request(to=7))
    assert (begun.number, begun.checkpoint, begun.rewind) == (2, 2, Rewound(to=7, left=1))
    assert job.kube.replicas() == 1
    assert "runs as generation 2, with checkpoint 2" in job.said.getvalue()
    assert job.records.pending(begun) is None


def test_a_job_begins_anew_where_it_is_asked_to_and_goes_back(job: Deployed) -> None:
    with job.cluster(job.run):
        begun = job.rewinding().carry_out(job.request(to="latest"))
    assert (begun.number, begun.checkpoint, begun.rewind) == (2, 2, Rewound(to="latest", left=1))
    assert job.records.before_the_rewind(job.kube.name, begun).number == 1
    assert job.records.begun(begun, "latest") is not None and job.records.begun(begun, "earliest") is None


def test_a_driver_that_does_not_know_where_to_begin_is_let_go_on(job: Deployed) -> None:
    def refuse() -> None:
        job.fail(CheckpointDamaged(path="penstock/rewind.json", given="'spec' is no integer"), token=1)

    with job.cluster(refuse), pytest.raises(RewindRefused):
        job.rewinding().carry_out(job.request(to="spec"))
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)


def test_an_interruption_leaves_a_request_that_is_gone_on_with(job: Deployed) -> None:
    request = job.request(to=7)
    # The pod does not end in time.
    with pytest.raises(StillThere):
        job.rewinding(pod_margin_s=0).carry_out(request)
    assert "none may run until penstock resume, or penstock rewind --to 1970-01-01T00:00:00.007+00:00" in job.said.getvalue()
    assert (job.kube.replicas(), job.records.requests.read()) == (0, request)
    with job.cluster(job.run):
        begun = job.rewinding().carry_out(job.request(to=7))
    assert begun.rewind == Rewound(to=7, left=1)
    assert "goes on with that of" in job.said.getvalue()


def test_a_rewind_that_has_begun_is_waited_for_and_not_done_again(job: Deployed) -> None:
    with job.cluster(job.begin), pytest.raises(DriverNotReady):
        replace(job.rewinding(), limit_s=0).carry_out(job.request(to=7))
    assert "the driver is started, and obeys the request" in job.said.getvalue()
    newest = job.records.newest(job.kube.name)
    begun = job.records.begun(newest, 7)
    assert begun is not None and job.records.begun(newest, 8) is None
    job.kube.ready(1)
    assert job.rewinding().go_on(begun).number == 2
    # Once it has written rows, the same time is another rewind.
    commit(job.s3, job.records.folder.checkpoint(2), BatchRecord(batch=0))
    assert job.records.begun(newest, 7) is None


def test_a_rewind_that_the_driver_refuses_is_withdrawn_and_the_job_goes_on(job: Deployed) -> None:
    def refuse() -> None:
        job.fail(RewindImpossible(path="the rewind", given="2030", need="a time before now"), token=1)

    with job.cluster(refuse), pytest.raises(RewindRefused) as raised:
        job.rewinding().carry_out(job.request(to=7))
    assert (raised.value.code, raised.value.given[:7]) == ("DEP-021", "JOB-093")
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)
    assert job.records.newest(job.kube.name).number == 1


def test_an_undo_to_a_checkpoint_whose_next_records_are_gone_is_withdrawn(job: Deployed) -> None:
    with job.cluster(job.run):
        job.rewinding().carry_out(job.request(to=7))
    job.objects.apply(job.kube.pod)

    def refuse() -> None:
        job.fail(RecordsGone(path="topic a, partition 0", given="the records 2 to 4 are gone", need="them"), token=2)

    with job.cluster(refuse), pytest.raises(RewindRefused) as raised:
        job.rewinding().carry_out(job.request(after=2, back_to=1))
    assert (raised.value.code, raised.value.given[:7]) == ("DEP-021", "JOB-106")
    assert "penstock rewind --to" in str(raised.value.fix)
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)


def test_a_job_starts_from_a_savepoint_and_an_interrupted_command_waits_for_it(job: Deployed) -> None:
    uri = f"{job.records.folder.uri}/savepoints/one"
    with job.cluster(job.begin), pytest.raises(DriverNotReady):
        replace(job.rewinding(), limit_s=0).carry_out(job.request(start_from=uri))
    newest = job.records.newest(job.kube.name)
    assert (newest.number, newest.savepoint, newest.rewind) == (2, uri, Rewound(left=1))
    request = job.records.started(newest, uri, {})
    assert request is not None and job.records.started(newest, f"{uri}-more", {}) is None
    job.kube.ready(1)
    assert job.rewinding().go_on(request).number == 2
    # Once it has gone on, the same savepoint is another start.
    job.records.folder.checkpoint(2).record(BatchRecord(batch=8))
    job.s3.put_object(Bucket="checkpoints", Key=f"{job.kube.name}/checkpoints/2/commits/8", Body=b"v1\n{}")
    assert job.records.started(newest, uri, {"": 8}) == request
    assert job.records.started(newest, uri, {"": 7}) is None
    assert job.records.before_the_rewind(job.kube.name, newest).number == 1


def test_a_savepoint_that_the_driver_refuses_is_withdrawn_and_the_job_goes_on(job: Deployed) -> None:
    def refuse() -> None:
        job.fail(SavepointDamaged(path="s3a://b/j/savepoints/one", given="none", need="an object"), token=1)

    with job.cluster(refuse), pytest.raises(RewindRefused) as raised:
        job.rewinding().carry_out(job.request(start_from="s3a://b/j/savepoints/one"))
    assert (raised.value.code, raised.value.given[:7]) == ("DEP-021", "JOB-096")
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)
    assert job.records.newest(job.kube.name).number == 1


def test_a_driver_of_an_earlier_release_that_knows_no_requests_is_said(job: Deployed) -> None:
    with job.cluster(lambda: job.kube.ready(1)), pytest.raises(RewindRefused) as raised:
        job.rewinding().carry_out(job.request(to=7))
    assert raised.value.given == "the driver started without it"
    # The next image would obey it at a time when nobody expects it.
    assert job.records.requests.read() is None


def test_an_undo_goes_back_and_can_be_repeated_for_the_rewind_before(job: Deployed) -> None:
    for after, to in ((1, 7), (2, 9)):
        with job.cluster(job.run):
            job.rewinding().carry_out(job.request(after=after, to=to))
        job.objects.apply(job.kube.pod)
    newest = job.records.newest(job.kube.name)
    back = job.records.before_the_rewind(job.kube.name, newest)
    with job.cluster(job.run):
        begun = job.rewinding().carry_out(job.request(after=newest.number, back_to=back.number))
    assert (begun.number, begun.checkpoint, begun.rewind) == (4, 2, Rewound(to=7, left=1))
    assert job.records.before_the_rewind(job.kube.name, begun).number == 1


def test_an_undo_without_a_rewind_or_without_the_checkpoint_before_it_is_refused(job: Deployed) -> None:
    with pytest.raises(NothingToRewind) as nothing:
        job.records.before_the_rewind(job.kube.name, job.records.newest(job.kube.name))
    assert nothing.value.code == "DEP-019"
    assert job.records.requests.replace(None, job.request(to=7))
    job.begin()
    rewound, before = job.records.newest(job.kube.name), job.records.folder.checkpoint(1)
    assert job.records.before_the_rewind(job.kube.name, rewound).number == 1
    job.s3.put_object(Bucket="checkpoints", Key=f"{job.kube.name}/checkpoints/1/commits/4", Body=b"v1\n{}")
    with pytest.raises(CheckpointDamaged):
        job.records.before_the_rewind(job.kube.name, rewound)
    before.delete("identity")
    with pytest.raises(CheckpointMissing):
        job.records.before_the_rewind(job.kube.name, rewound)


def test_a_request_that_no_driver_has_obeyed_is_withdrawn(job: Deployed) -> None:
    request = job.request(to=7)
    with pytest.raises(StillThere):
        job.rewinding(pod_margin_s=0).carry_out(request)
    job.rewinding().withdraw(request)
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)
    job.begin()
    assert job.records.newest(job.kube.name).number == 1


def test_a_job_that_has_changed_since_it_was_shown_is_not_stopped(job: Deployed) -> None:
    with pytest.raises(JobChanged) as raised:
        job.rewinding().carry_out(job.request(after=2, to=7))
    assert (raised.value.code, raised.value.given) == ("DEP-020", "generation 1")
    assert (job.kube.replicas(), job.records.requests.read()) == (1, None)
