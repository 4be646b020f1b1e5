"""Generations of a job on an emulated S3: which checkpoint a driver goes on with, and what it records."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.spec.job import UpgradeMode
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.continuation import Continuation, InitialSavepoint, SavepointStart
from penstock.jobs.storage.errors import CheckpointDamaged, CheckpointMissing, ConcurrentWriter, LeaseLost
from penstock.jobs.storage.generation import ORIGIN, Fingerprint, Generation, Origin, Parent, Rewound, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import RewindRequest
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.emulated

ONE, OTHER = Fingerprint(app="a1", spec="s1", plan="p1", image="i:1"), Fingerprint(app="a1", spec="s2", plan="p1", image="i:2")

ONE_SAVED, OTHER_SAVED = "s3a://b/job/savepoints/one", "s3a://b/job/savepoints/other"


@pytest.fixture
def folder(faulty: FaultyS3) -> JobFolder:
    return JobFolder(f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}")


def _begin(
    folder: JobFolder,
    fingerprint: Fingerprint,
    mode: UpgradeMode,
    rewind_to: int | None = None,
    request: RewindRequest | None = None,
    initial: InitialSavepoint | None = None,
) -> Continuation:
    """What a driver does with a fingerprint, up to the start of its queries."""
    decided = folder.continuation(fingerprint, mode, rewind_to, request, initial)
    if decided.start is not None:
        _fill(folder, decided)
    # Of the sinks that are opened.
    folder.checkpoint(decided.checkpoint).identity()
    if decided.begins:
        before = decided.before.initial_savepoint if decided.before else None
        obeyed = decided.start.uri if decided.start and decided.start.by_spec else before
        more = {"savepoint": decided.savepoint, "initial_savepoint": obeyed, "restart_nonce": initial.restart_nonce if initial else None}
        record = _generation(decided, fingerprint, mode)
        folder.begin(record.model_copy(update={"rewound_to": rewind_to, "rewind": decided.rewind, **more}))
    return decided


def _fill(folder: JobFolder, decided: Continuation) -> None:
    """What a driver writes first into a checkpoint that begins with a savepoint."""
    assert decided.start is not None
    origin = Origin(savepoint=decided.start.uri, generation=decided.number, offsets=decided.start.offsets)
    folder.checkpoint(decided.checkpoint).put_once(ORIGIN, origin.text)


def _generation(decided: Continuation, fingerprint: Fingerprint, mode: UpgradeMode = "last-state") -> Generation:
    return Generation(
        number=decided.number,
        checkpoint=decided.checkpoint,
        parent=Parent(generation=decided.before.number, batches={"": 7}) if decided.before else None,
        mode=mode,
        began=datetime(2026, 11, 25, tzinfo=UTC),
        fingerprint=fingerprint,
        versions=Versions(penstock="0.1.0", spark="4.3.0"),
        starts={"a": {"events": {0: 5}}},
        queries={"": QueryRecord.of(["a"], ["Aggregate", "Join"])},
    )


def _request(
    after: int, *, to: int | None = None, back_to: int | None = None, start_from: str | None = None, spec: int | None = None
) -> RewindRequest:
    asked = datetime(2026, 11, 26, tzinfo=UTC)
    return RewindRequest(after=after, to=to, back_to=back_to, start_from=start_from, spec_rewind_to=spec, asked=asked)


def _initial(uri: str, nonce: int | None = None) -> InitialSavepoint:
    return InitialSavepoint(SavepointStart(uri, by_spec=True), nonce)


def _commit(folder: JobFolder, s3: S3Client, checkpoint: int) -> None:
    """The first micro-batch of a checkpoint, as Penstock and Spark record it."""
    place = folder.checkpoint(checkpoint)
    place.record(BatchRecord(batch=0))
    s3.put_object(Bucket=BUCKET, Key=f"{place.uri.removeprefix(f's3a://{BUCKET}/')}/commits/0", Body=b"v1\n{}")


def _numbers(decided: Continuation) -> tuple[int, int, bool]:
    return decided.number, decided.checkpoint, decided.begins


@pytest.mark.parametrize("mode", ["last-state", "savepoint", "stateless"])
def test_the_first_generation_has_the_first_checkpoint_and_a_restart_goes_on(folder: JobFolder, mode: UpgradeMode) -> None:
    assert _numbers(_begin(folder, ONE, mode)) == (1, 1, True)
    assert _numbers(_begin(folder, ONE, mode)) == (1, 1, False)


def test_a_changed_job_goes_on_with_the_checkpoint_or_begins_an_empty_one(folder: JobFolder, s3: S3Client) -> None:
    _begin(folder, ONE, "last-state")
    assert _numbers(_begin(folder, OTHER, "last-state")) == (2, 1, True)
    anew = _begin(folder, ONE, "stateless")
    assert (_numbers(anew), anew.anew) == ((3, 3, True), True)
    # The mode says what a change does; a restart of the same goes on.
    again = _begin(folder, ONE, "stateless")
    assert (_numbers(again), again.anew) == ((3, 3, False), False)
    _commit(folder, s3, 3)
    back = _begin(folder, OTHER, "last-state")
    assert (_numbers(back), back.anew) == ((4, 3, True), False)
    assert folder.generations() == [1, 2, 3, 4]
    assert folder.checkpoints() == [1, 3]


@pytest.mark.parametrize("mode", ["last-state", "savepoint", "stateless"])
def test_a_change_that_has_begun_without_the_state_and_done_nothing_is_rolled_back_with_it(
    folder: JobFolder, s3: S3Client, mode: UpgradeMode
) -> None:
    _begin(folder, ONE, "last-state")
    _commit(folder, s3, 1)
    _begin(folder, OTHER, "stateless")
    third = OTHER.model_copy(update={"app": "a3"})
    # Another job than before goes on with what there is.
    assert _numbers(folder.continuation(third, "last-state")) == (3, 2, True)
    back = _begin(folder, ONE, mode)
    assert (_numbers(back), back.starts, back.anew) == ((3, 1, True), {"a": {"events": {0: 5}}}, True)
    assert _numbers(_begin(folder, ONE, mode)) == (3, 1, False)
    assert folder.before(folder.generation(3)) == folder.generation(2) and folder.before(folder.generation(1)) is None
    # Once it has committed a micro-batch, its rows are there, and the checkpoint goes on.
    _begin(folder, OTHER, "stateless")
    _commit(folder, s3, 4)
    assert _numbers(folder.continuation(ONE, "last-state")) == (5, 4, True)
    # A record of before that can't be read stops no driver that does not need it.
    s3.put_object(Bucket=BUCKET, Key=f"{folder.uri.removeprefix(f's3a://{BUCKET}/')}/penstock/generations/3.json", Body=b"{")
    assert folder.before(folder.generation(4)) is None
    assert _numbers(folder.continuation(OTHER, "last-state")) == (4, 4, False)


@pytest.mark.parametrize("mode", ["last-state", "savepoint", "stateless"])
def test_a_rewind_begins_an_empty_checkpoint_once_for_each_time(folder: JobFolder, s3: S3Client, mode: UpgradeMode) -> None:
    _begin(folder, ONE, "last-state")
    rewound = _begin(folder, OTHER, mode, rewind_to=7)
    assert (_numbers(rewound), rewound.rewinds_to, rewound.anew) == ((2, 2, True), 7, True)
    again = _begin(folder, OTHER, mode, rewind_to=7)
    assert (_numbers(again), again.rewinds_to) == ((2, 2, False), None)
    earlier = _begin(folder, ONE, mode, rewind_to=5)
    assert (_numbers(earlier), earlier.rewinds_to) == ((3, 3, True), 5)
    _commit(folder, s3, 3)
    # A time that is taken out of the spec is a change as any other, and the next one a rewind again.
    without = _begin(folder, OTHER, mode)
    assert (_numbers(without), without.rewinds_to) == ((4, 4 if mode == "stateless" else 3, True), None)
    assert _begin(folder, ONE, mode, rewind_to=5).rewinds_to == 5


def test_a_first_generation_that_is_rewound_leaves_the_checkpoint_of_an_earlier_release(folder: JobFolder) -> None:
    assert _numbers(folder.continuation(ONE, "last-state", 7)) == (1, 1, True)
    folder.checkpoint(1).identity()
    assert _numbers(_begin(folder, ONE, "last-state", 7)) == (1, 2, True)
    # Nor does what comes after it have that checkpoint.
    assert _numbers(_begin(folder, OTHER, "stateless", 7)) == (2, 3, True)


def test_a_request_is_obeyed_once_and_by_the_generation_that_it_is_for(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    rewound = _begin(folder, ONE, "last-state", request=_request(after=1, to=7))
    assert (_numbers(rewound), rewound.rewinds_to, rewound.rewind) == ((2, 2, True), 7, Rewound(to=7, left=1))
    again = _begin(folder, ONE, "last-state", request=_request(after=1, to=7))
    assert (_numbers(again), again.rewinds_to, again.rewind) == ((2, 2, False), None, Rewound(to=7, left=1))
    # Neither a change nor another one for a generation that is over rewinds.
    changed = _begin(folder, OTHER, "last-state", request=_request(after=1, to=5))
    assert (_numbers(changed), changed.rewinds_to, changed.rewind) == ((3, 2, True), None, Rewound(to=7, left=1))
    # The same time is another rewind if it is asked for again.
    assert _begin(folder, OTHER, "last-state", request=_request(after=3, to=7)).rewind == Rewound(to=7, left=3)
    assert _begin(folder, ONE, "stateless").rewind is None


def test_of_a_request_and_a_time_in_the_spec_the_newer_one_is_rewound_to(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state", rewind_to=3)
    # The spec's is done: the request does not bring it back, nor does it come back after the request.
    assert _begin(folder, ONE, "last-state", rewind_to=3, request=_request(after=1, to=7, spec=3)).rewinds_to == 7
    assert not _begin(folder, ONE, "last-state", rewind_to=3).begins
    # Both are new. The spec had the time already when the request was made, or has got it since.
    older, newer = _request(after=2, to=7, spec=5), _request(after=2, to=7, spec=3)
    assert folder.continuation(ONE, "last-state", 5, older).rewinds_to == 7
    assert _begin(folder, ONE, "last-state", rewind_to=5, request=newer).rewinds_to == 5
    # Which ends the request.
    assert not _begin(folder, ONE, "last-state", rewind_to=5, request=newer).begins


def test_an_undo_goes_back_to_the_checkpoint_before_the_rewind_and_what_it_began_with(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    _begin(folder, ONE, "last-state", request=_request(after=1, to=7))
    _begin(folder, OTHER, "last-state", request=_request(after=2, to=9))
    back = _begin(folder, OTHER, "last-state", request=_request(after=3, back_to=2))
    assert (_numbers(back), back.anew, back.rewinds_to, back.rewind) == ((4, 2, True), True, None, Rewound(to=7, left=1))
    # That of generation 2: as it has no micro-batch yet, it starts there and not where the sources say by now.
    assert back.starts == {"a": {"events": {0: 5}}}
    # That rewind can be undone in turn, and then there is none.
    whole = _begin(folder, OTHER, "stateless", request=_request(after=4, back_to=1))
    assert (_numbers(whole), whole.rewind) == ((5, 1, True), None)
    assert _numbers(_begin(folder, OTHER, "stateless")) == (5, 1, False)
    assert _numbers(_begin(folder, ONE, "stateless")) == (6, 6, True)


def test_an_undo_refuses_a_checkpoint_that_is_gone(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    _begin(folder, ONE, "last-state", request=_request(after=1, to=7))
    folder.checkpoint(1).delete("identity")
    with pytest.raises(CheckpointMissing) as raised:
        folder.continuation(ONE, "last-state", None, _request(after=2, back_to=1))
    assert raised.value.path == f"{folder.uri}/checkpoints/1"


def test_a_requested_start_from_a_savepoint_is_done_once_and_undone(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    # The old checkpoint may be gone.
    folder.checkpoint(1).delete("identity")
    request = _request(after=1, start_from=ONE_SAVED)
    started = _begin(folder, ONE, "last-state", request=request)
    assert (_numbers(started), started.anew, started.start) == ((2, 2, True), True, SavepointStart(ONE_SAVED))
    goes_on = _begin(folder, ONE, "last-state", request=request)
    assert (_numbers(goes_on), goes_on.start, goes_on.savepoint) == ((2, 2, False), None, ONE_SAVED)
    changed = _begin(folder, OTHER, "last-state", request=request)
    assert (_numbers(changed), changed.start, changed.savepoint, changed.rewind) == ((3, 2, True), None, ONE_SAVED, Rewound(left=1))


def test_a_checkpoint_that_a_driver_has_begun_to_fill_is_filled_by_the_same_start_alone(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    failed = folder.continuation(ONE, "last-state", None, _request(after=1, start_from=ONE_SAVED))
    _fill(folder, failed)
    assert failed.checkpoint == 2
    assert folder.continuation(ONE, "last-state", None, _request(after=1, start_from=ONE_SAVED)).checkpoint == 2
    assert folder.continuation(ONE, "last-state", None, _request(after=1, start_from=OTHER_SAVED)).checkpoint == 3
    # Nobody else begins with what it has left.
    assert folder.continuation(ONE, "last-state", None, _request(after=1, to=7)).checkpoint == 3
    assert folder.continuation(OTHER, "stateless").checkpoint == 3
    assert _numbers(folder.continuation(ONE, "last-state")) == (1, 1, False)


def test_a_checkpoint_that_was_filled_with_other_offsets_is_not_that_of_the_next_start(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")

    def asked(offsets: InitialOffsets | None) -> Continuation:
        request = _request(after=1, start_from=ONE_SAVED).model_copy(update={"offsets": offsets})
        return folder.continuation(ONE, "last-state", None, request)

    given: InitialOffsets = {"clicks": {0: 5, 1: -1}}
    for number, offsets in enumerate([None, 7, given, "savepointTime"], start=2):
        failed = asked(offsets)
        assert (failed.checkpoint, failed.start, failed.rewind) == (
            number,
            SavepointStart(ONE_SAVED, offsets=offsets),
            Rewound(left=1, offsets=offsets),
        )
        _fill(folder, failed)
        assert asked(offsets).checkpoint == number
    # The same text as a release that knows no offsets writes.
    assert folder.checkpoint(2).get(ORIGIN) == f'{{"savepoint":"{ONE_SAVED}","generation":2}}'


def test_the_first_generation_does_not_begin_with_what_a_failed_start_has_left(folder: JobFolder) -> None:
    failed = folder.continuation(ONE, "last-state", initial=_initial(ONE_SAVED))
    _fill(folder, failed)
    assert folder.continuation(ONE, "last-state", initial=_initial(ONE_SAVED)).checkpoint == 1
    assert _numbers(_begin(folder, ONE, "last-state")) == (1, 2, True)
    assert _numbers(_begin(folder, ONE, "last-state")) == (1, 2, False)
    assert _numbers(_begin(folder, OTHER, "stateless")) == (2, 3, True)


def test_the_specs_savepoint_counts_for_the_first_generation_and_with_another_nonce(folder: JobFolder) -> None:
    first = _begin(folder, ONE, "last-state", initial=_initial(ONE_SAVED))
    assert (_numbers(first), first.start) == ((1, 1, True), SavepointStart(ONE_SAVED, by_spec=True))
    # Neither a restart nor another nonce starts from it again, nor another path alone.
    assert not _begin(folder, ONE, "last-state", initial=_initial(ONE_SAVED)).begins
    assert _begin(folder, OTHER, "last-state", initial=_initial(ONE_SAVED, 1)).start is None
    assert _begin(folder, ONE, "last-state", initial=_initial(OTHER_SAVED, 1)).start is None
    both = _begin(folder, OTHER, "last-state", initial=_initial(OTHER_SAVED, 2))
    assert (_numbers(both), both.savepoint) == ((4, 4, True), OTHER_SAVED)
    assert _begin(folder, ONE, "last-state", initial=_initial(OTHER_SAVED, 3)).start is None


def test_a_record_is_read_as_it_was_written_and_says_what_came_before(folder: JobFolder) -> None:
    _begin(folder, ONE, "last-state")
    decided = _begin(folder, OTHER, "stateless")
    record = folder.current()
    assert record == _generation(decided, OTHER, "stateless")
    assert record is not None
    assert record.parent == Parent(generation=1, batches={"": 7})
    assert [(operator.id, operator.name) for operator in record.queries[""].operators] == [(0, "Aggregate"), (1, "Join")]
    assert ONE.differences(OTHER) == ["spec", "image"]


@pytest.mark.parametrize(("fingerprint", "mode"), [(ONE, "last-state"), (OTHER, "last-state"), (ONE, "stateless")])
def test_a_checkpoint_that_is_gone_is_not_replaced_by_an_empty_one(folder: JobFolder, fingerprint: Fingerprint, mode: UpgradeMode) -> None:
    _begin(folder, ONE, "last-state")
    folder.checkpoint(1).delete("identity")
    with pytest.raises(CheckpointMissing) as raised:
        folder.continuation(fingerprint, mode)
    assert (raised.value.code, raised.value.path) == ("JOB-086", f"{folder.uri}/checkpoints/1")
    assert _numbers(_begin(folder, OTHER, "stateless")) == (2, 2, True)


def test_a_record_that_cannot_be_read_is_damage_and_none_is_replaced(folder: JobFolder) -> None:
    decided = _begin(folder, ONE, "last-state")
    with pytest.raises(ConcurrentWriter) as other:
        folder.begin(_generation(decided, OTHER))
    assert other.value.code == "JOB-083"
    assert folder.current() == _generation(decided, ONE)
    folder.put_once("generations/2.json", '{"number": 2}')
    with pytest.raises(CheckpointDamaged) as raised:
        folder.current()
    assert (raised.value.code, raised.value.path) == ("JOB-008", f"{folder.uri}/penstock/generations/2.json")


def test_fields_of_a_later_release_do_not_matter(folder: JobFolder) -> None:
    decided = Continuation(1, 1, None, begins=True)
    text = _generation(decided, ONE).model_dump_json(by_alias=True)
    folder.put_once("generations/1.json", '{"somethingLater": "x", ' + text[1:])
    assert folder.current() == _generation(decided, ONE)


def test_a_fence_stops_a_driver_of_an_earlier_generation_and_not_a_later_one(folder: JobFolder) -> None:
    Checkpoint(f"{folder.uri}/checkpoints/1/queries/other", 4).record(BatchRecord(batch=0, token=4))
    folder.checkpoint(1, token=5).fence()
    for query in ("", "other"):
        old = folder.checkpoint(1, token=4).of_query(query)
        with pytest.raises(LeaseLost):
            old.record(BatchRecord(batch=0, token=4))
        # Nothing is committed: the next driver on this checkpoint begins at the same micro-batch.
        later = folder.checkpoint(1, token=6).of_query(query)
        assert later.last_record().batch == -1
        later.record(BatchRecord(batch=0, token=6))
