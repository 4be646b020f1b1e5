"""A savepoint of a checkpoint that Spark has written: what it has, and what happens if the job goes on meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.jobs.savepoints.errors import CheckpointMoves, NothingToSave, SavepointNameTaken, StateExpired
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.state import StateFiles, StateIncomplete
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.offset_log import OffsetLog
from penstock.scripts.savepoints.listing import listed
from tests.jobs.savepoints.conftest import RecordedJob
from tests.jobs.storage.conftest import BUCKET

pytestmark = pytest.mark.emulated

# Of the recording: the last change of a keyed function's state, in the second partition.
CHANGE = "queries/names/state/0/1/6_42db8ca7-c509-4d71-aa4d-b7e914d48246.changelog"


def _of(job: RecordedJob) -> Savepoints:
    return Savepoints(job.uri)


def test_it_has_what_a_start_from_the_last_micro_batch_needs(job: RecordedJob) -> None:
    before = job.checkpoint.listed()
    saved = job.take()
    assert {name: query.batch for name, query in saved.queries.items()} == {"": 5, "names": 5}
    assert saved.topics == ["every-state-a"]
    names = [one.name for one in saved.objects]
    own = [name for name in names if not name.startswith("queries/")]
    assert [name for name in own if not name.startswith(("state/", "penstock/"))] == [
        "commits/4",
        "commits/5",
        "metadata",
        "offsets/4",
        "offsets/5",
        "sources/0/0",
    ]
    # Neither identity nor lease: they belong to one checkpoint.
    assert [name for name in own if name.startswith("penstock/")] == [
        "penstock/batches/5.json",
        "penstock/sinks/out/log/0000000005.json",
        "penstock/sinks/out/published/0000000005",
    ]
    # A snapshot with its one table, and the changes since, each with its checksum.
    state = [name.removeprefix("queries/names/state/0/0/") for name in names if name.startswith("queries/names/state/0/0/")]
    versions = [name.partition("_")[0] for name in state if not name.startswith("SSTs/")]
    assert versions == ["1", "1", *[str(version) for version in range(2, 7) for _ in range(2)]]
    assert [name for name in state if ".zip" in name or "SSTs/" in name] == [
        "1_4061a79a-3c98-41b0-8ac0-42d84a972967.zip",
        "1_4061a79a-3c98-41b0-8ac0-42d84a972967.zip.crc",
        "SSTs/000008-6469e41d-650e-47d1-95ba-ec530c054974.sst",
    ]
    # The checkpoint is as it was, and all of the copy is there.
    assert job.checkpoint.listed() == before
    job.savepoint().verify(job.savepoint().manifest())
    assert job.savepoint().manifest() == saved


def test_a_driver_that_deletes_old_state_meanwhile_has_it_taken_again(job: RecordedJob) -> None:
    deleted: list[bytes] = []

    def delete_once(now: str) -> None:
        """Deletes an object once copying has begun, and puts it back as another attempt begins."""
        if not deleted:
            deleted.append(job.delete(CHANGE))
            for folder in _folders(job):
                job.s3.delete_object(Bucket=BUCKET, Key=f"{folder}/{CHANGE}")
        elif now.startswith("taken again"):
            job.put(CHANGE, deleted[0])

    saved = job.take(said=delete_once)
    assert CHANGE in saved.by_name()
    # What the first attempt has copied is deleted.
    assert {name.partition("/")[0] for name in job.savepoint().listed()} == {"manifest.json", saved.data}


def _folders(job: RecordedJob) -> list[str]:
    prefix = job.savepoint().uri.removeprefix(f"s3a://{BUCKET}/")
    return sorted({f"{prefix}/{name.partition('/')[0]}" for name in job.savepoint().listed()})


def test_a_checkpoint_that_lacks_state_is_no_savepoint(job: RecordedJob) -> None:
    job.delete(CHANGE)
    with pytest.raises(CheckpointMoves) as raised:
        job.take()
    assert (raised.value.code, raised.value.given) == ("DEP-032", "no version 6 of state/0/1/")
    assert not job.savepoint().begun()


def test_files_of_a_driver_that_had_lost_the_job_are_left_out(job: RecordedJob) -> None:
    stale = CHANGE.replace("42db8ca7", "00000000")
    job.put(stale, b"written by another driver")
    # Of a micro-batch that is not committed.
    job.put(CHANGE.replace("/6_", "/7_"), b"later")
    job.put("queries/names/state/0/_metadata/v2/6", b"v2\n{}")
    names = job.take().by_name()
    assert CHANGE in names
    assert not {stale, CHANGE.replace("/6_", "/7_"), "queries/names/state/0/_metadata/v2/6"} & names.keys()


def test_a_name_is_taken_once_and_what_was_interrupted_is_listed_and_goes_with_the_next(job: RecordedJob) -> None:
    left = f"{job.savepoint().uri.removeprefix(f's3a://{BUCKET}/')}/data-0/commits/5"
    job.s3.put_object(Bucket=BUCKET, Key=left, Body=b"v1\n{}")
    assert [(one.name, one.state) for one in listed(_of(job))] == [("one", "incomplete")]
    saved = job.take()
    assert not any(name.startswith("data-0/") for name in job.savepoint().listed())
    assert [(one.name, one.state, one.savepoint) for one in listed(_of(job))] == [("one", "complete", saved)]
    with pytest.raises(SavepointNameTaken) as raised:
        job.take()
    assert raised.value.code == "DEP-030"
    # It stays as it was.
    assert job.savepoint().manifest() == saved
    assert job.savepoint().delete_attempts() == len(saved.objects) + 1
    assert listed(_of(job)) == []


def test_a_job_without_a_committed_micro_batch_has_nothing_to_save(job: RecordedJob) -> None:
    for name in [name for name in job.checkpoint.listed() if "commits/" in name]:
        job.delete(name)
    with pytest.raises(NothingToSave) as raised:
        job.take()
    assert raised.value.code == "DEP-031"
    assert job.savepoint().listed() == {}


def test_a_savepoint_of_a_time_has_the_last_micro_batch_that_was_planned_before(job: RecordedJob) -> None:
    times = {batch: _planned(job, batch) for batch in range(6)}
    saved = job.take(until=times[3])
    assert (saved.queries[""].batch, saved.queries[""].at) == (3, times[3])
    names = saved.by_name()
    assert {name for name in names if name.startswith(("offsets/", "commits/", "penstock/batches/"))} == {
        "commits/2",
        "commits/3",
        "offsets/2",
        "offsets/3",
        "penstock/batches/3.json",
    }
    assert {int(name.split("/")[3].partition("_")[0]) for name in names if name.startswith("state/0/0/") and "_metadata" not in name} == {
        1,
        2,
        3,
        4,
    }
    assert "penstock/sinks/out/log/0000000003.json" in names and "penstock/sinks/out/published/0000000003" in names
    # A moment before the next one, and before the first one.
    assert job.take("later", until=times[4] - timedelta(milliseconds=1)).queries[""].batch == 3
    with pytest.raises(StateExpired) as raised:
        job.take("early", until=times[0] - timedelta(milliseconds=1))
    assert (raised.value.code, raised.value.need) == ("DEP-034", f"a time from {times[0].isoformat(timespec='milliseconds')} on")
    assert not job.savepoint("early").begun()


def test_files_that_were_open_at_that_time_and_are_published_by_now_are_closed(job: RecordedJob) -> None:
    log, chunks = "penstock/sinks/out/log", "penstock/sinks/out/chunks"
    parts = [_open("dt=1", "00000001-a"), _open("dt=2", "00000002-b")]
    for number, some in ((3, parts), (4, parts[1:]), (5, parts[1:])):
        used = ("00000001-a",) if number == 4 else ()
        decided = Manifest(number=number, batch=number, rows=1, digest=0, used=used, open=tuple(some))
        job.put(f"{log}/{number:010d}.json", decided.model_dump_json().encode())
    job.put(f"{chunks}/00000002-b", b"{}")
    saved = job.take(until=_planned(job, 3))
    assert {name for name in saved.by_name() if "/chunks/" in name} == {f"{chunks}/00000002-b"}
    content = job.savepoint().data(saved).content(f"{log}/0000000003.json")
    assert [part.directory for part in Manifest.model_validate_json(content or b"").open] == ["dt=2"]


def _open(directory: str, name: str) -> OpenPart:
    return OpenPart(directory=directory, shape="json", opened_ms=1, touched_ms=1, chunks=(Chunk(name=name, rows=1, bytes=2),))


def _planned(job: RecordedJob, batch: int) -> datetime:
    log = OffsetLog.of((job.checkpoint.content(f"offsets/{batch}") or b"").decode())
    return datetime.fromtimestamp(log.batch_timestamp_ms / 1000, UTC)


def test_a_damaged_checkpoint_is_said(job: RecordedJob) -> None:
    for name in ("offsets/5", "penstock/batches/5.json", "penstock/sinks/out/log/0000000005.json", "commits/5"):
        content = job.delete(name)
        job.put(name, b"\xff{")
        with pytest.raises(CheckpointDamaged):
            job.take()
        job.put(name, content)
    assert not job.savepoint().begun()


STORE = "state/0/3/left-keyToNumValues/"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # State on the heap: the last snapshot and the changes since.
        (["1.delta", "2.delta", "2.snapshot", "3.delta", "4.delta"], {"2.snapshot", "3.delta"}),
        (["1.delta", "2.delta", "3.delta"], {"1.delta", "2.delta", "3.delta"}),
        (["2.delta", "3.snapshot", "3.delta"], {"3.snapshot"}),
    ],
)
def test_state_on_the_heap_is_the_last_snapshot_and_the_changes_since(names: list[str], expected: set[str]) -> None:
    files = StateFiles(frozenset(f"{STORE}{name}" for name in names), lambda name: b"")
    assert files.needed(2) == {f"{STORE}{name}" for name in expected}


def test_a_gap_in_the_changes_is_incomplete() -> None:
    with pytest.raises(StateIncomplete, match=f"version 2 of {STORE}"):
        StateFiles(frozenset({f"{STORE}1.snapshot", f"{STORE}3.delta"}), lambda name: b"").needed(2)
