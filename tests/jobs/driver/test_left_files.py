"""Rows of files that a driver has not published: counted in the log of a sink that a query no longer has, on an emulated S3."""

from __future__ import annotations

import uuid

import pytest

from penstock.jobs.driver.left_files import left_files
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.part_log import Manifest, PartLog
from penstock.jobs.sinks.parts import StagedPart
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.query_record import QueryRecord, SinkRecord
from tests.jobs.storage.conftest import BUCKET, aws

__all__ = ["aws"]
pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("aws")]

OUT = SinkRecord(name="out", kind="files", place="clicks", guarantee="exactly-once")
OPEN = OpenPart(directory="", shape="json", opened_ms=1, touched_ms=1, chunks=(Chunk(name="00000003-a", rows=5, bytes=9),))
STAGED = StagedPart(key="clicks/part-1.json", upload_id="u", token="t", etags=("e",), rows=7, bytes=9, digest=0)


@pytest.fixture
def checkpoint() -> Checkpoint:
    return Checkpoint(f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}/checkpoints/1")


def _left(checkpoint: Checkpoint, *sinks: SinkRecord, query: str = "") -> list[str]:
    before, now = (QueryRecord.of(["a"], [], sinks=some) for some in ([OUT], sinks))
    return [f"{fault.path}: {fault.need}" for fault in left_files(checkpoint, {query: before}, {query: now})]


def _decide(checkpoint: Checkpoint, **decided: object) -> PartLog:
    log = PartLog(checkpoint, "out")
    assert log.add(Manifest.model_validate({"number": 0, "batch": 3, "rows": 5, "digest": 0, **decided}))
    return log


def test_what_is_open_or_decided_and_not_published_is_left(checkpoint: Checkpoint) -> None:
    assert _left(checkpoint) == []
    log = _decide(checkpoint, open=(OPEN,), parts=(STAGED,))
    assert _left(checkpoint) == ["the query, sink out: the sink of files clicks: the checkpoint has 12 rows of it that are not published"]
    last = log.last()
    assert last is not None
    log.publish(last)
    assert _left(checkpoint) == ["the query, sink out: the sink of files clicks: the checkpoint has 5 rows of it that are not published"]
    # Those of another path are published there, and so nothing is left; a topic of this name publishes none.
    assert _left(checkpoint, OUT.model_copy(update={"place": "views"})) == []
    assert len(_left(checkpoint, SinkRecord(name="out", kind="topic", place="clicks"))) == 1
    # What was staged in one bucket can't be published in another.
    assert len(_left(checkpoint, OUT.model_copy(update={"place": "s3a://lake/clicks"}))) == 1


def test_a_job_that_was_stopped_leaves_none(checkpoint: Checkpoint) -> None:
    log = _decide(checkpoint, parts=(STAGED,))
    last = log.last()
    assert last is not None
    log.publish(last)
    assert _left(checkpoint) == []


def test_a_further_query_has_a_log_of_its_own_and_records_of_earlier_releases_are_not_compared(checkpoint: Checkpoint) -> None:
    _decide(checkpoint.of_query("totals"), open=(OPEN,))
    assert _left(checkpoint) == []
    assert [one.partition(":")[0] for one in _left(checkpoint, query="totals")] == ["query totals, sink out"]
    earlier, now = QueryRecord.of(["a"], []), QueryRecord.of(["a"], [], sinks=[OUT])
    for before, after in ((earlier, QueryRecord.of(["a"], [], sinks=[])), (now, earlier)):
        assert list(left_files(checkpoint, {"totals": before}, {"totals": after})) == []
