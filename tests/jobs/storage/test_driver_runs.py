"""The record of a job's runs on an emulated S3, as its drivers write and read it."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from penstock.jobs.driver.errors import JobStopped
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.kafka.errors import BrokersUnreachable
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.driver_runs import KEPT_RUNS, DriverRun, DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import LeaseLost
from penstock.jobs.storage.generation import Fingerprint
from penstock.jobs.storage.lease_holder import LeaseHolder
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import FaultyS3

pytestmark = pytest.mark.emulated

ONE, OTHER = Fingerprint(app="a1", spec="s1", plan="p1"), Fingerprint(app="a1", spec="s2", plan="p1")
MISTAKE = BadDeclaration(path="job.write", need="each source once")


@pytest.fixture
def folder(faulty: FaultyS3) -> str:
    return f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}"


class Clock:
    """A minute passes at each look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 25, 20, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def _begin(folder: str, token: int, what: Fingerprint = ONE, uid: str | None = "uid-1", limit: Restart | None = None) -> Restarts:
    restarts = Restarts(folder, limit or Restart(failures=1), Clock())
    restarts.begin(token, _holder(uid), what)
    return restarts


def _holder(uid: str | None) -> LeaseHolder:
    return LeaseHolder(host="h", pid=1, pod="clicks-driver-0", pod_uid=uid)


def _runs(folder: str) -> tuple[DriverRun, ...]:
    return DriverRunsFile(folder).read().runs


def test_a_run_is_recorded_from_its_start_to_its_end_with_its_micro_batches(folder: str) -> None:
    restarts = _begin(folder, 1)
    (run,) = _runs(folder)
    assert (run.token, run.driver, run.ended, run.failure) == (1, "pod clicks-driver-0", None, None)
    said: list[str] = []
    emit = restarts.counting(lambda event, _: said.append(event))
    for event in ("reading", "committed", "idle", "committed"):
        emit(event, {})
    restarts.ended(None)
    (run,) = _runs(folder)
    assert (run.micro_batches, run.failure, said[-1]) == (2, None, "committed")
    assert run.ended is not None and run.ended > run.started
    # A second end, of a thread that noticed another one, says nothing.
    restarts.ended(MISTAKE)
    assert _runs(folder) == (run,)


def test_a_job_that_is_stopped_starts_once_it_has_changed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    _begin(folder, 1).ended(MISTAKE)
    assert "WARN the job is not started again as it is" in capsys.readouterr().err
    with pytest.raises(JobStopped) as raised:
        _begin(folder, 2)
    error = raised.value
    assert error.given == "stopped since 2026-11-25 20:02:00 UTC by JOB-004: app does not match its spec (job.write): need each source once"
    assert "penstock resume" in error.fix
    # It is said again at each start, and no start is recorded.
    with pytest.raises(JobStopped):
        _begin(folder, 3)
    assert len(_runs(folder)) == 1
    _begin(folder, 4, OTHER).ended(None)
    assert [run.failure is None for run in _runs(folder)] == [False, True]


def test_a_driver_that_was_killed_has_failed_and_one_that_went_with_its_pod_does_not_count(folder: str) -> None:
    _begin(folder, 1, uid="uid-1")
    _begin(folder, 2, uid="uid-2")
    _begin(folder, 3, uid="uid-2")
    first, second, third = _runs(folder)
    assert first.failure is not None and first.failure.answer == "always"
    assert second.failure is not None and second.failure.answer == "limited" and third.ended is None
    with pytest.raises(JobStopped) as raised:
        _begin(folder, 4, uid="uid-2")
    assert raised.value.need == "a job that has changed: 2 failures within 3600 s; spec.restart allows 1"
    # When it was killed is when the next driver found out first: otherwise its failures would be forgotten an hour later.
    ends = [run.ended for run in _runs(folder)]
    with pytest.raises(JobStopped):
        Restarts(folder, Restart(failures=1), lambda: datetime(2026, 11, 26, tzinfo=UTC)).begin(5, _holder("uid-2"), ONE)
    assert [run.ended for run in _runs(folder)] == ends and None not in ends


def test_a_job_that_is_resumed_begins_without_failures(folder: str) -> None:
    _begin(folder, 1).ended(MISTAKE)
    DriverRunsFile(folder).change(DriverRuns.resumed)
    _begin(folder, 2).ended(MISTAKE)
    with pytest.raises(JobStopped):
        _begin(folder, 3)
    assert [run.token for run in _runs(folder)] == [1, 2]


def test_an_outage_is_waited_for(folder: str) -> None:
    for token in range(1, 20):
        _begin(folder, token).ended(BrokersUnreachable(path="brokers"))
    assert len(_runs(folder)) == 19


def test_a_driver_that_was_replaced_tells_of_its_own_run_alone(folder: str) -> None:
    frozen = _begin(folder, 1, uid="uid-1")
    _begin(folder, 2, uid="uid-2")
    frozen.ended(LeaseLost(path="lease"))
    first, second = _runs(folder)
    assert first.failure is not None and first.failure.code == "JOB-081"
    assert (second.token, second.ended) == (2, None)


def test_old_runs_expire(folder: str) -> None:
    file = DriverRunsFile(folder)
    oldest = DriverRun(token=1, driver="d", pod_uid=None, fingerprint=ONE, started=Clock()())
    many = DriverRuns(runs=tuple(oldest.model_copy(update={"token": token}) for token in range(1, KEPT_RUNS + 1)))
    file.change(lambda _: many)
    file.change(lambda runs: runs.begun(oldest.model_copy(update={"token": KEPT_RUNS + 1})))
    tokens = [run.token for run in file.read().runs]
    assert tokens == list(range(2, KEPT_RUNS + 2))


def test_no_change_is_lost_if_two_drivers_write_at_once(folder: str) -> None:
    file = DriverRunsFile(folder)
    run = DriverRun(token=1, driver="d", pod_uid=None, fingerprint=ONE, started=Clock()())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda token: file.change(lambda runs: runs.begun(run.model_copy(update={"token": token}))), range(1, 17)))
    assert sorted(one.token for one in file.read().runs) == list(range(1, 17))


def test_a_record_that_cannot_be_read_keeps_no_job_from_running(folder: str) -> None:
    DriverRunsFile(folder).put_once("runs.json", "{")
    _begin(folder, 1)
    assert [run.token for run in _runs(folder)] == [1]
