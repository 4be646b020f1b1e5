"""The log of a file sink, read from the content of a checkpoint."""

from __future__ import annotations

import pytest

from penstock.jobs.sinks.part_log import ComposedPart, Manifest, PartLog
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged

FOLDER = "sinks/out/log/"


class Objects(Checkpoint):
    """A checkpoint in memory."""

    def __init__(self, **objects: bytes) -> None:
        super().__init__("s3a://bucket/job/1")
        self.objects = {f"{FOLDER}{name}": body for name, body in objects.items()}

    def get(self, name: str) -> str | None:
        return self.objects[name].decode() if name in self.objects else None

    def names(self, folder: str) -> list[str]:
        return sorted(name.removeprefix(folder) for name in self.objects if name.startswith(folder))

    def put_once(self, name: str, text: str) -> bool:
        return self.objects.setdefault(name, text.encode()) == text.encode()

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)


def manifest(number: int, *, files: bool = True) -> Manifest:
    part = ComposedPart(key="a", token="t", shape="json", chunks=())
    return Manifest(number=number, batch=number, rows=0, digest=0, composed=(part,) if files else ())


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"number": 3}'])
def test_a_broken_manifest_is_named(body: bytes) -> None:
    log = PartLog(Objects(**{"0000000003.json": body}), "out")
    with pytest.raises(CheckpointDamaged) as raised:
        log.last()
    assert (raised.value.code, raised.value.path) == ("JOB-008", "s3a://bucket/job/1/penstock/sinks/out/log/0000000003.json")
    assert raised.value.given


def test_a_mark_stays_until_the_next_and_goes_for_its_own_manifest_alone() -> None:
    objects = Objects()
    first = PartLog(objects, "out")
    assert first.add(manifest(0)) and not first.published(manifest(0))
    first.publish(manifest(0))
    assert first.published(manifest(0)) and PartLog(objects, "out").last() == manifest(0)
    second = PartLog(objects, "out")
    second.last()
    assert second.published(manifest(0)) and not second.finished(manifest(0))
    # A decision without files needs no mark.
    assert second.add(manifest(1, files=False)) and second.published(manifest(1, files=False))
    assert second.add(manifest(2)) and not second.published(manifest(2))
    third = PartLog(objects, "out")
    assert third.last() == manifest(2) and not third.published(manifest(2))
    third.publish(manifest(2))
    # The mark of the previous, slow driver; its own mark and that of its successor do no harm.
    second.publish(manifest(2))
    assert objects.names("sinks/out/published/") == ["0000000002"]


def test_the_mark_that_older_versions_left_at_the_end_of_a_run_still_counts() -> None:
    log = PartLog(Objects(**{"0000000000.json": manifest(0).model_dump_json().encode(), "0000000000.done": b""}), "out")
    last = log.last()
    assert last is not None and log.published(last)
