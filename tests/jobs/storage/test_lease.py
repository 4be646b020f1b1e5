"""The lease of a checkpoint on an emulated S3: every way from one driver to the next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.storage.errors import BucketUnreachable, CheckpointDamaged, CheckpointHeld, ConditionalWriteFailed, LeaseLost
from penstock.jobs.storage.lease import Lease, LeaseFile, LeaseRecord, LeaseState
from penstock.jobs.storage.lease_holder import LeaseHolder
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import Fault, FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.emulated

HERE = LeaseHolder.this_process()
FAR = LeaseHolder(host="far-away", pid=1, started=1, boot_id="another", pod="job-driver-0", pod_uid="uid-1")
# Short, so that its end can be waited for; the age that S3 tells is in whole seconds.
SHORT_S = 3.0
LONG_S = 600.0

Take = Callable[..., Lease]


@pytest.fixture
def checkpoint() -> str:
    return f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}/checkpoints/1"


@pytest.fixture
def take(faulty: FaultyS3, checkpoint: str) -> Iterator[Take]:
    """Takes the lease; what a test leaves held is released."""
    taken: list[Lease] = []

    def taking(holder: LeaseHolder = HERE, duration_s: float = LONG_S, waiting: Callable[[Mapping[str, object]], None] = print) -> Lease:
        lease = LeaseFile(checkpoint, holder, duration_s).take(lambda: 1, threading.Event(), waiting)
        assert lease is not None
        taken.append(lease)
        return lease

    yield taking
    faulty.always = Fault.NONE
    for lease in taken:
        lease.release()


@pytest.fixture
def content(faulty: FaultyS3, s3: S3Client, checkpoint: str) -> Callable[[], LeaseRecord]:
    """Reads the lease."""
    key = f"{checkpoint.removeprefix(f's3a://{BUCKET}/')}/penstock/lease.json"
    return lambda: LeaseRecord.model_validate_json(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())


def _leave(s3: S3Client, checkpoint: str, holder: LeaseHolder, duration_s: float = LONG_S, **changes: object) -> LeaseRecord:
    """A lease as a driver leaves it that renews it no more."""
    record = LeaseRecord(token=7, holder=holder, since=datetime.now(UTC), duration_s=duration_s).model_copy(update=changes)
    file = LeaseFile(checkpoint, holder)
    found = file.read()
    if found is None:
        key = f"{checkpoint.removeprefix(f's3a://{BUCKET}/')}/penstock/lease.json"
        s3.put_object(Bucket=BUCKET, Key=key, Body=record.model_dump_json(by_alias=True).encode())
    else:
        assert file.replace(record, found.etag)
    return record


def test_the_first_driver_creates_it(take: Take, content: Callable[[], LeaseRecord]) -> None:
    lease = take()
    assert lease.token == 1 and lease.sure and not lease.lost
    record = content()
    assert (record.token, record.holder, record.state) == (1, HERE, LeaseState.HELD)


def test_a_released_lease_is_taken_at_once_with_the_next_token(take: Take, content: Callable[[], LeaseRecord]) -> None:
    take().release()
    assert content().state is LeaseState.RELEASED
    assert take(FAR).token == 2


def test_of_many_drivers_at_once_one_takes_it(checkpoint: str, take: Take) -> None:
    take().release()
    results: list[object] = []

    def try_it(number: int) -> None:
        holder = FAR.model_copy(update={"pod_uid": f"uid-{number}", "boot_id": f"boot-{number}"})
        try:
            lease = LeaseFile(checkpoint, holder, SHORT_S).take(lambda: 1, threading.Event(), lambda _: None)
            assert lease is not None
            results.append(lease)
        except CheckpointHeld as error:
            results.append(error)

    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (lease,) = [result for result in results if isinstance(result, Lease)]
    assert lease.token == 2
    assert len([result for result in results if isinstance(result, CheckpointHeld)]) == 3
    lease.release()


def test_a_lease_that_is_renewed_refuses_with_who_and_since_when(take: Take, content: Callable[[], LeaseRecord]) -> None:
    take(FAR, SHORT_S)
    since = content().since.isoformat(timespec="seconds")
    heard: list[Mapping[str, object]] = []
    with pytest.raises(CheckpointHeld) as raised:
        take(HERE, waiting=heard.append)
    (waited,) = heard
    assert (waited["holder"], waited["since"]) == ("pod job-driver-0", since)
    assert raised.value.code == "JOB-080"
    assert f"held by pod job-driver-0 since {since}, renewed until " in raised.value.given
    assert "stop the other driver" in raised.value.fix
    assert content().token == 1


def test_a_lease_that_is_not_renewed_is_taken_over_after_its_time(take: Take, s3: S3Client, checkpoint: str) -> None:
    _leave(s3, checkpoint, FAR, SHORT_S)
    begun = time.monotonic()
    assert take().token == 8
    assert time.monotonic() - begun >= SHORT_S - 1


def test_a_lease_that_expired_long_ago_is_taken_over_at_once(take: Take, s3: S3Client, checkpoint: str) -> None:
    _leave(s3, checkpoint, FAR, 0.01)
    threading.Event().wait(2.1)
    heard: list[Mapping[str, object]] = []
    assert take(waiting=heard.append).token == 8
    assert not heard


@pytest.mark.parametrize("shift", [timedelta(days=-400), timedelta(days=400)])
def test_a_clock_that_jumps_changes_nothing(
    take: Take, s3: S3Client, checkpoint: str, monkeypatch: pytest.MonkeyPatch, shift: timedelta
) -> None:
    """The holder's clock was wrong when it took the lease, and this machine's clock is wrong too."""
    real = time.time
    _leave(s3, checkpoint, FAR, SHORT_S, since=datetime.now(UTC) + shift)
    monkeypatch.setattr(time, "time", lambda: real() - shift.total_seconds())
    begun = time.monotonic()
    assert take().token == 8
    assert time.monotonic() - begun >= SHORT_S - 1


def test_a_killed_process_of_this_machine_is_replaced_at_once(take: Take, s3: S3Client, checkpoint: str) -> None:
    code = f"from {LeaseHolder.__module__} import *; print(LeaseHolder.this_process().model_dump_json(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        holder = LeaseHolder.model_validate_json(process.stdout.readline())
        assert (holder.pid, holder.boot_id) == (process.pid, HERE.boot_id)
        assert not holder.seen_dead_by(HERE)
        process.kill()
        # Killed, and its parent has not noticed yet.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert holder.seen_dead_by(HERE)
    assert holder.seen_dead_by(HERE)
    _leave(s3, checkpoint, holder)
    assert take().token == 8


def test_another_process_with_the_same_number_is_not_the_holder() -> None:
    assert not HERE.seen_dead_by(HERE)
    assert HERE.started is not None
    assert HERE.model_copy(update={"started": HERE.started - 1}).seen_dead_by(HERE)


def test_a_process_of_another_machine_or_container_may_be_alive() -> None:
    for elsewhere in ({"boot_id": "another"}, {"pid_namespace": "pid:[1]"}, {"boot_id": None}):
        holder = HERE.model_copy(update={"started": 1, **elsewhere})
        assert not holder.seen_dead_by(HERE)


def test_a_container_that_is_started_again_in_its_pod_takes_over_at_once(take: Take, s3: S3Client, checkpoint: str) -> None:
    _leave(s3, checkpoint, FAR)
    assert not FAR.seen_dead_by(FAR.model_copy(update={"pod_uid": "uid-2", "boot_id": "a third"}))
    assert take(FAR.model_copy(update={"started": 2, "pid_namespace": "pid:[2]"})).token == 8


def test_the_pod_that_follows_one_that_was_removed_takes_over_although_that_still_renews(take: Take, s3: S3Client, checkpoint: str) -> None:
    removed = FAR.model_copy(update={"namespace": "job@ca"})
    follows = removed.model_copy(update={"pod_uid": "uid-2", "boot_id": "a third"})
    for elsewhere in ({"namespace": "job@another-ca"}, {"namespace": None}, {"pod": "other-driver-0"}):
        assert not removed.removed_for(follows.model_copy(update=elsewhere))
    assert not FAR.removed_for(FAR.model_copy(update={"pod_uid": "uid-2"}))
    assert not removed.removed_for(removed)
    _leave(s3, checkpoint, removed)
    assert take(follows).token == 8


def test_it_is_renewed_by_time_with_one_request_each(take: Take, content: Callable[[], LeaseRecord], faulty: FaultyS3) -> None:
    lease = take(duration_s=SHORT_S)
    faulty.requests.clear()
    started_s, fourth = time.monotonic(), threading.Event()
    faulty.before_answer = lambda method, path: fourth.set() if len(faulty.requests) >= 4 else None
    assert fourth.wait(60)
    assert time.monotonic() - started_s > SHORT_S
    assert {method for method, _ in faulty.requests} == {"PUT"}
    assert lease.sure and content().token == 1


def test_checks_cost_no_requests(take: Take, faulty: FaultyS3) -> None:
    lease = take()
    faulty.requests.clear()
    for _ in range(100):
        lease.check()
    assert not faulty.requests


def test_a_lease_taken_over_is_lost_at_the_next_renewal(take: Take, s3: S3Client, checkpoint: str) -> None:
    lease = take(duration_s=SHORT_S)
    _leave(s3, checkpoint, FAR)
    assert lease.over.wait(10) and lease.lost and not lease.sure
    for refused in (lease.check, lease.confirm):
        with pytest.raises(LeaseLost) as raised:
            refused()
        assert raised.value.code == "JOB-081"
        assert raised.value.given.startswith("held by pod job-driver-0 since ")


def test_a_lease_that_is_lost_is_not_released(take: Take, s3: S3Client, checkpoint: str, content: Callable[[], LeaseRecord]) -> None:
    lease = take()
    taken = _leave(s3, checkpoint, FAR)
    lease.release()
    assert content() == taken and lease.lost


def test_a_driver_that_slept_beyond_its_lease_asks_before_it_goes_on(
    take: Take, s3: S3Client, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = take()
    _leave(s3, checkpoint, FAR)
    lease.check()
    slept = time.monotonic() + LONG_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: slept)
    assert not lease.sure
    with pytest.raises(LeaseLost):
        lease.check()


def test_reading_it_confirms_it(take: Take, s3: S3Client, checkpoint: str) -> None:
    lease = take()
    lease.confirm()
    _leave(s3, checkpoint, FAR)
    with pytest.raises(LeaseLost):
        lease.confirm()


def test_a_deleted_lease_is_lost(take: Take, s3: S3Client, checkpoint: str) -> None:
    lease = take()
    s3.delete_object(Bucket=BUCKET, Key=f"{checkpoint.removeprefix(f's3a://{BUCKET}/')}/penstock/lease.json")
    with pytest.raises(LeaseLost, match="deleted"):
        lease.confirm()


def test_a_lease_of_another_driver_with_the_same_token_is_not_taken_for_the_own_one(take: Take, s3: S3Client, checkpoint: str) -> None:
    lease = take()
    # Where the object was deleted before the first record, the next driver takes the same token.
    _leave(s3, checkpoint, FAR, token=lease.token)
    with pytest.raises(LeaseLost, match=str(FAR)):
        lease.confirm()


@pytest.mark.parametrize("existing", [False, True])
def test_a_denied_request_is_an_error(take: Take, faulty: FaultyS3, s3: S3Client, checkpoint: str, existing: bool) -> None:
    if existing:
        _leave(s3, checkpoint, HERE, state=LeaseState.RELEASED)
    faulty.always = Fault.DENIED
    with pytest.raises(BucketUnreachable, match="AccessDenied") as raised:
        take()
    assert "permissions" in raised.value.render()


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.UNAVAILABLE, Fault.CONFLICT])
def test_a_renewal_without_an_answer_is_repeated(take: Take, faulty: FaultyS3, content: Callable[[], LeaseRecord], fault: Fault) -> None:
    lease = take(duration_s=SHORT_S)
    faulty.always = fault
    threading.Event().wait(SHORT_S + 0.5)
    # It decides only who starts: the driver goes on.
    lease.check()
    faulty.always = Fault.NONE
    before = content().renewal
    # S3 has the new content before this process has the answer.
    while not lease.over.is_set() and not (content().renewal >= before + 2 and lease.sure):
        threading.Event().wait(0.1)
    assert not lease.lost


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
def test_it_is_taken_and_released_though_an_answer_is_lost(
    take: Take, faulty: FaultyS3, content: Callable[[], LeaseRecord], fault: Fault
) -> None:
    for token in (1, 2):
        faulty.faults = [fault]
        lease = take()
        assert lease.token == token
        faulty.faults = [fault]
        lease.release()
        assert content().state is LeaseState.RELEASED and not lease.lost


def test_without_s3_it_is_not_taken(take: Take, faulty: FaultyS3) -> None:
    faulty.always = Fault.UNAVAILABLE
    with pytest.raises(ConditionalWriteFailed):
        take(duration_s=SHORT_S)
    faulty.always = Fault.NONE
    assert take().token == 1


def test_a_driver_waits_for_one_that_is_stopping(take: Take, checkpoint: str) -> None:
    """A changed bounded job starts while the old one finishes its micro-batch, which takes longer than the lease."""
    old = take(FAR, SHORT_S)
    old.stopping()
    taken: list[Lease | None] = []
    waiting = threading.Event()
    file = LeaseFile(checkpoint, HERE, SHORT_S)
    thread = threading.Thread(target=lambda: taken.append(file.take(lambda: 1, threading.Event(), lambda _: waiting.set())))
    thread.start()
    assert waiting.wait(10)
    thread.join(2 * SHORT_S)
    assert thread.is_alive() and not taken
    old.release()
    thread.join()
    (new,) = taken
    assert new is not None and new.token == 2
    new.release()


def test_a_driver_that_is_stopped_waits_no_longer(checkpoint: str, s3: S3Client) -> None:
    _leave(s3, checkpoint, FAR)
    stop = threading.Event()
    assert LeaseFile(checkpoint, HERE).take(lambda: 1, stop, lambda _: stop.set()) is None


def test_the_first_token_follows_those_of_the_records(checkpoint: str, faulty: FaultyS3) -> None:
    lease = LeaseFile(checkpoint, HERE).take(lambda: 5, threading.Event(), print)
    assert lease is not None and lease.token == 5
    lease.release()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", json.dumps({"token": 0}).encode()])
def test_an_object_that_is_no_lease_is_named(take: Take, s3: S3Client, checkpoint: str, body: bytes) -> None:
    s3.put_object(Bucket=BUCKET, Key=f"{checkpoint.removeprefix(f's3a://{BUCKET}/')}/penstock/lease.json", Body=body)
    with pytest.raises(CheckpointDamaged) as raised:
        take()
    assert (raised.value.code, raised.value.path) == ("JOB-008", f"{checkpoint}/penstock/lease.json")
