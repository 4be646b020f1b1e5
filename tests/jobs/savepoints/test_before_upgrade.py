"""The savepoint before an upgrade: taken once, whatever becomes of the driver that takes it, and never in the place of another one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from penstock.jobs.savepoints.before_upgrade import UpgradeSavepoint, is_due
from penstock.jobs.savepoints.errors import SavepointNotTaken
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.taking import Taken
from penstock.jobs.storage.continuation import Continuation, SavepointStart
from penstock.jobs.storage.generation import Fingerprint, Generation, Versions
from penstock.jobs.storage.offset_log import OffsetLog
from tests.jobs.savepoints.conftest import RecordedJob
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import Fault, FaultyS3

pytestmark = pytest.mark.emulated

BEFORE = Generation(
    number=3,
    checkpoint=1,
    parent=None,
    mode="savepoint",
    began=datetime(2026, 11, 26, tzinfo=UTC),
    fingerprint=Fingerprint(app="a", spec="s", plan="p"),
    versions=Versions(penstock=None, spark="4.3.0"),
)
Event = tuple[str, Mapping[str, object]]


def _upgrade(job: RecordedJob) -> tuple[UpgradeSavepoint, list[Event]]:
    events: list[Event] = []
    of = Taken(job="every-state", environment="", by="the driver of generation 4", generation=BEFORE)
    return UpgradeSavepoint(job.checkpoint, Savepoints(job.uri), of, lambda name, detail: events.append((name, detail))), events


def test_it_is_taken_once_and_a_driver_that_starts_again_keeps_it(job: RecordedJob) -> None:
    # What a driver that was killed has left of it.
    left = f"{job.savepoint('upgrade-3').uri.removeprefix(f's3a://{BUCKET}/')}/data-0/commits/5"
    job.s3.put_object(Bucket=BUCKET, Key=left, Body=b"v1\n{}")
    before = job.checkpoint.listed()
    upgrade, events = _upgrade(job)
    saved = upgrade.taken()
    assert saved is not None
    assert (saved.name, saved.generation, saved.whose) == ("upgrade-3", BEFORE, "job every-state")
    assert {query: one.batch for query, one in saved.queries.items()} == {"": 5, "names": 5}
    assert {name.partition("/")[0] for name in job.savepoint("upgrade-3").listed()} == {"manifest.json", saved.data}
    assert upgrade.taken() == saved
    uri = job.savepoint("upgrade-3").uri
    detail = {"savepoint": uri, "objects": len(saved.objects), "bytes": saved.bytes, "batches": {"": 5, "names": 5}}
    assert events == [("saving", {"savepoint": uri}), ("saved", detail), ("saved", detail)]
    assert (Savepoints(job.uri).names(), job.checkpoint.listed()) == (["upgrade-3"], before)


def test_one_of_other_micro_batches_or_a_damaged_one_stays_as_it_is(job: RecordedJob) -> None:
    """The driver that took it did not get to begin its generation, and the one before went on; or a person has used the name."""
    log = OffsetLog.of((job.checkpoint.content("offsets/3") or b"").decode())
    earlier = job.take("upgrade-3", until=datetime.fromtimestamp(log.batch_timestamp_ms / 1000, UTC))
    damaged = job.savepoint("upgrade-3-2")
    damaged.complete(earlier)
    job.s3.put_object(Bucket=BUCKET, Key=f"{damaged.uri.removeprefix(f's3a://{BUCKET}/')}/manifest.json", Body=b"{")
    saved = _upgrade(job)[0].taken()
    assert saved is not None
    assert (saved.name, saved.queries[""].batch) == ("upgrade-3-3", 5)
    assert job.savepoint("upgrade-3").manifest() == earlier


def test_a_job_that_has_committed_nothing_is_upgraded_without_one(empty: RecordedJob) -> None:
    upgrade, events = _upgrade(empty)
    assert upgrade.taken() is None
    assert (Savepoints(empty.uri).names(), events) == ([], [("saving", {"savepoint": empty.savepoint("upgrade-3").uri})])


def test_an_upgrade_whose_savepoint_s3_refuses_is_refused_with_the_way_out(faulty: FaultyS3, job: RecordedJob) -> None:
    before = job.checkpoint.listed()
    upgrade, events = _upgrade(job)
    faulty.always = Fault.DENIED
    with pytest.raises(SavepointNotTaken) as refused:
        upgrade.taken()
    error = refused.value
    assert (error.code, error.path) == ("JOB-108", f"{job.uri}/savepoints/upgrade-3")
    assert "JOB-009" in error.given and "AccessDenied" in error.given and "upgradeMode: last-state" in error.fix
    assert [name for name, _ in events] == ["saving"]
    faulty.always = Fault.NONE
    assert job.checkpoint.listed() == before
    assert upgrade.taken() is not None
    # State that is gone is no savepoint either.
    job.delete("penstock/batches/5.json")
    with pytest.raises(SavepointNotTaken, match=r"DEP-032.*penstock/batches/5\.json"):
        upgrade.taken()


@pytest.mark.parametrize(
    ("decided", "due"),
    [
        (Continuation(4, 1, BEFORE, begins=True), True),
        (Continuation(1, 1, None, begins=True), True),
        (Continuation(3, 1, BEFORE, begins=False), False),
        (Continuation(4, 4, BEFORE, begins=True), False),
        (Continuation(4, 4, BEFORE, begins=True, rewinds_to="earliest"), False),
        (Continuation(1, 1, None, begins=True, rewinds_to=0), False),
        (Continuation(1, 1, None, begins=True, start=SavepointStart("s3a://b/j/savepoints/one")), False),
    ],
    ids=["goes on", "of an earlier release", "restarts", "begins without", "is rewound", "begins rewound", "starts from one"],
)
def test_it_is_due_where_a_generation_goes_on_with_what_the_one_before_has_left(decided: Continuation, due: bool) -> None:
    assert is_due("savepoint", decided) == due
    assert not is_due("last-state", decided) and not is_due("stateless", decided)
