"""A new checkpoint that is filled with a savepoint: what is copied, what differs, and what is refused before anything is written."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from penstock.jobs.savepoints.errors import (
    SavepointDamaged,
    SavepointMissing,
    SavepointNameTaken,
    SavepointOfAnotherJob,
    SavepointOfNewerRelease,
)
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.starting import Filling, mark_repartitioning, refuse_another_job
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.sinks.parts import StagedPart
from penstock.jobs.storage.continuation import SavepointStart
from penstock.jobs.storage.generation import ORIGIN
from penstock.jobs.storage.objects import Folder
from penstock.scripts.progress import Step
from penstock.scripts.savepoints.importing import imported
from tests.jobs.savepoints.conftest import RecordedJob
from tests.jobs.storage.conftest import BUCKET

pytestmark = pytest.mark.emulated

OTHER = "other-checkpoints"


@pytest.fixture
def other_bucket(job: RecordedJob) -> Iterator[str]:
    job.s3.create_bucket(Bucket=OTHER)
    yield f"s3a://{OTHER}/every-state"
    for item in job.s3.list_objects_v2(Bucket=OTHER).get("Contents", []):
        job.s3.delete_object(Bucket=OTHER, Key=item["Key"])
    job.s3.delete_bucket(Bucket=OTHER)


def _filling(job: RecordedJob, checkpoint: int = 2) -> Filling:
    folder = job.savepoint()
    return Filling(job.folder.checkpoint(checkpoint), folder, folder.manifest(), generation=2)


def _of_savepoint(job: RecordedJob, name: str) -> str:
    """The key of an object of the savepoint."""
    folder = job.savepoint()
    return f"{folder.uri.removeprefix(f's3a://{BUCKET}/')}/{folder.manifest().data}/{name}"


def test_the_copy_differs_in_what_belongs_to_one_checkpoint(job: RecordedJob) -> None:
    saved = job.take()
    filling = _filling(job)
    filling.fill()
    old, new = job.checkpoint, filling.checkpoint
    added = {f"penstock/{ORIGIN}", "penstock/identity", "queries/names/penstock/identity"}
    assert new.listed().keys() == {one.name for one in saved.objects} | added
    differing = {"metadata", "queries/names/metadata", "state/0/_metadata/metadata", "queries/names/state/0/_metadata/v2/0"}
    marks = {one.name for one in saved.objects if "/published/" in one.name}
    for name in saved.by_name().keys() - differing - marks:
        assert new.content(name) == old.content(name), name
    assert new.identity() != old.identity()
    assert new.of_query("names").identity() not in (new.identity(), old.of_query("names").identity())
    ids = [json.loads(one.content("metadata") or b"")["id"] for one in (old, new, new.of_query("names"))]
    assert len(set(ids)) == 3
    before, after = (one.content("queries/names/state/0/_metadata/v2/0") or b"" for one in (old, new))
    schema = "queries/names/state/0/_stateSchema/default/0_c0c4851e-acd1-4f64-958e-8a70f343f976"
    path = json.loads(after.partition(b"\n")[2])["stateStoreInfo"][0]["stateSchemaFilePaths"]
    assert path == [f"{new.uri}/{schema}"]
    # Nothing else of it.
    assert after.replace(new.uri.encode(), b"s3a://test-checkpoints/every-state/checkpoints/1") == before
    assert new.last_record() == old.last_record()


def test_a_driver_that_fails_while_it_copies_copies_again_and_one_that_is_done_does_not(job: RecordedJob) -> None:
    job.take()
    filling = _filling(job)

    def fail(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filling.fill(fail)
    assert filling.checkpoint.get("identity") is None
    copied: list[int] = []
    filling.fill(copied.append)
    assert len(copied) == len(filling.savepoint.objects)
    identity = filling.checkpoint.identity()
    filling.fill(copied.append)
    assert len(copied) == len(filling.savepoint.objects) and filling.checkpoint.identity() == identity


def test_a_savepoint_that_was_cut_short_is_refused_before_anything_is_written(job: RecordedJob) -> None:
    job.take()
    job.s3.delete_object(Bucket=BUCKET, Key=_of_savepoint(job, "offsets/5"))
    filling = _filling(job)
    with pytest.raises(SavepointDamaged) as missing:
        filling.fill()
    assert (missing.value.code, missing.value.given) == ("JOB-096", "none") and missing.value.path.endswith("/offsets/5")
    job.s3.put_object(Bucket=BUCKET, Key=_of_savepoint(job, "offsets/5"), Body=b"short")
    with pytest.raises(SavepointDamaged) as short:
        filling.fill()
    assert short.value.given == "5 bytes"
    assert filling.checkpoint.listed() == {}


def test_files_that_the_job_has_published_since_are_not_published_again(job: RecordedJob) -> None:
    """Four chunks are open at the savepoint: one is published since, one is in a decision that nobody has completed, and two stay open."""
    log, chunks = "penstock/sinks/out/log", "penstock/sinks/out/chunks"
    names = ["00000001-a", "00000002-b", "00000003-c", "00000004-d"]
    open_parts = [_open("dt=1", names[:1]), _open("dt=2", names[1:3]), _open("dt=3", names[3:])]
    decided = Manifest(number=5, batch=5, rows=4, digest=0, open=tuple(open_parts))
    job.put(f"{log}/0000000005.json", decided.model_dump_json().encode())
    for name in names:
        job.put(f"{chunks}/{name}", b"{}")
    job.take()
    upload = StagedPart(key="f", upload_id="u", token="t", etags=(), rows=1, bytes=1, digest=0)
    closed = decided.model_copy(
        update={"number": 6, "parts": (upload,), "used": (names[0], names[1]), "open": (_open("dt=2", names[2:3]),)}
    )
    for one in (closed, closed.model_copy(update={"number": 7, "batch": 6, "used": (names[3],), "open": ()})):
        job.put(f"{log}/{one.number:010d}.json", one.model_dump_json().encode())
    filling = _filling(job)
    filling.fill()
    kept = Manifest.model_validate_json(filling.checkpoint.content(f"{log}/0000000005.json") or b"")
    assert [(part.directory, [chunk.name for chunk in part.chunks]) for part in kept.open] == [("dt=2", names[2:3]), ("dt=3", names[3:])]
    # Of a checkpoint that is gone nobody knows.
    for name in job.checkpoint.listed():
        job.delete(name)
    again = _filling(job, checkpoint=3)
    again.fill()
    assert Manifest.model_validate_json(again.checkpoint.content(f"{log}/0000000005.json") or b"") == decided


def _open(directory: str, names: list[str]) -> OpenPart:
    chunks = tuple(Chunk(name=name, rows=1, bytes=2) for name in names)
    return OpenPart(directory=directory, shape="json", opened_ms=1, touched_ms=1, chunks=chunks)


def test_other_content_of_the_same_size_is_refused_and_leaves_no_complete_checkpoint(job: RecordedJob) -> None:
    saved = job.take()
    # Copied by S3, replaced, and changed on the way.
    for checkpoint, name in enumerate(["offsets/5", "metadata", "queries/names/state/0/_metadata/v2/0"], start=2):
        key = _of_savepoint(job, name)
        content = job.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        job.s3.put_object(Bucket=BUCKET, Key=key, Body=b"x" * saved.by_name()[name].bytes)
        filling = _filling(job, checkpoint)
        with pytest.raises(SavepointDamaged) as raised:
            filling.fill()
        assert raised.value.path.endswith(f"/{name}") and "SHA-256" in raised.value.given
        assert filling.checkpoint.get("identity") is None
        # Another start passes over what it has left.
        assert filling.checkpoint.get(ORIGIN) is not None
        job.s3.put_object(Bucket=BUCKET, Key=key, Body=content)


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        (b'{"formatVersion": 2, "somethingNew": 1}', SavepointOfNewerRelease),
        (b'{"formatVersion": 1}', SavepointDamaged),
        (b"[]", SavepointDamaged),
        (b"{", SavepointDamaged),
        (b"\xff", SavepointDamaged),
        (None, SavepointMissing),
    ],
)
def test_a_manifest_that_cannot_be_read_says_why(empty: RecordedJob, manifest: bytes | None, error: type[Exception]) -> None:
    folder = empty.savepoint()
    if manifest is not None:
        empty.s3.put_object(Bucket=BUCKET, Key=f"{folder.uri.removeprefix(f's3a://{BUCKET}/')}/manifest.json", Body=manifest)
    with pytest.raises(error):
        folder.manifest()


def test_a_savepoint_of_another_job_needs_consent(job: RecordedJob) -> None:
    saved, uri = job.take(), job.savepoint().uri
    refuse_another_job(saved, uri, "every-state", SavepointStart(uri))
    refuse_another_job(saved, uri, "fork", SavepointStart(uri, of_another_job=True))
    with pytest.raises(SavepointOfAnotherJob) as raised:
        refuse_another_job(saved, uri, "fork", SavepointStart(uri))
    assert raised.value.code == "JOB-098"


def test_a_savepoint_is_imported_from_another_bucket_once(job: RecordedJob, other_bucket: str) -> None:
    saved, target = job.take(), Savepoints(other_bucket)
    own = imported(saved, job.savepoint(), target, job.s3, Step(""))
    assert (own.uri, own.manifest().objects) == (f"{other_bucket}/savepoints/every-state-one", saved.objects)
    own.verify(own.manifest())
    # The source may be gone by then.
    assert imported(saved, Savepoints(f"{other_bucket}-gone").of("one"), target, job.s3, Step("")).uri == own.uri
    later = job.take("two").model_copy(update={"name": "one"})
    with pytest.raises(SavepointNameTaken):
        imported(later, job.savepoint("two"), target, job.s3, Step(""))


def test_a_checkpoint_whose_repartition_broke_off_is_filled_again(job: RecordedJob) -> None:
    job.take()
    filling = _filling(job)
    filling.fill()
    identity, objects = filling.checkpoint.identity(), filling.checkpoint.listed().keys()
    mark_repartitioning(filling.checkpoint)
    # What Spark leaves if it ends before it commits.
    left = Folder(filling.checkpoint.uri)
    left.put_once("offsets/99", "v1")
    left.put_once("state/0/_metadata/v2/99", "v2")
    copied: list[int] = []
    filling.fill(copied.append)
    assert len(copied) == len(filling.savepoint.objects)
    assert filling.checkpoint.listed().keys() == objects
    assert filling.checkpoint.identity() != identity
