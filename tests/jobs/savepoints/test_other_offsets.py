"""A new checkpoint that is filled with a savepoint and reads on at other offsets: what differs, and that nothing is left half done."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from penstock.jobs.savepoints.errors import OffsetsNotThere
from penstock.jobs.savepoints.other_offsets import Change, changes, of_these_sources, sources_of, with_positions
from penstock.jobs.savepoints.starting import Filling
from penstock.jobs.spec.sources import FromFiles, FromKafka, Source
from penstock.jobs.storage.checkpoint import BatchRecord, Position
from penstock.jobs.storage.generation import ORIGIN, Fingerprint, Generation, Origin, Versions
from penstock.jobs.storage.offset_log import OffsetLog
from penstock.jobs.storage.query_record import QueryRecord, SourceRecord
from tests.jobs.savepoints.conftest import RecordedJob

pytestmark = pytest.mark.emulated

MOVED = {"every-state-a": {0: 41, 1: 7}}
LAST = {"": "", "names": "queries/names/"}


def _filling(job: RecordedJob) -> Filling:
    saved = job.take()
    read = dict.fromkeys(((query, 0) for query in LAST), MOVED)
    return Filling(job.folder.checkpoint(2), job.savepoint(), saved, 2, offsets=MOVED, changes=lambda: changes(saved, read))


def test_the_copy_reads_on_at_them_and_differs_in_nothing_else(job: RecordedJob) -> None:
    filling = _filling(job)
    filling.fill()
    old, new = job.checkpoint, filling.checkpoint
    for query, folder in LAST.items():
        log, before = ((one.content(f"{folder}offsets/5") or b"").decode() for one in (new, old))
        assert OffsetLog.of(log).sources == ('{"every-state-a":{"0":41,"1":7}}',)
        assert log.split("\n")[:2] == before.split("\n")[:2]
        assert new.content(f"{folder}sources/0/0") == b'\0v1\n{"every-state-a":{"0":41,"1":7}}'
        record = new.of_query(query).last_record()
        assert record.positions == {"every-state-a": {0: Position(41, None), 1: Position(7, None)}}
        assert record.model_copy(update={"positions": {}}) == old.of_query(query).last_record()
    named = {f"{folder}{name}" for folder in LAST.values() for name in ("offsets/5", "sources/0/0", "penstock/batches/5.json")}
    differing = {name for name in filling.savepoint.by_name() if new.content(name) != old.content(name)}
    assert {name for name in differing if "metadata" not in name and "/published/" not in name} == named


def test_a_driver_that_fails_meanwhile_fills_it_again_and_nothing_is_written_for_what_is_refused(job: RecordedJob) -> None:
    filling = _filling(job)

    def refuse() -> Mapping[str, Change]:
        raise OffsetsNotThere(path="topic every-state-a")

    refused = Filling(filling.checkpoint, filling.folder, filling.savepoint, 2, offsets=MOVED, changes=refuse)
    with pytest.raises(OffsetsNotThere):
        refused.fill()
    assert filling.checkpoint.listed() == {}

    def fail(done: int) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filling.fill(fail)
    assert filling.checkpoint.get(ORIGIN) == Origin(savepoint=filling.folder.uri, generation=2, offsets=MOVED).text
    assert filling.checkpoint.get("identity") is None
    filling.fill()
    assert filling.checkpoint.last_record().positions["every-state-a"][0].next == 41
    # Once it is whole, nobody looks for the offsets again.
    refused.fill()


def test_a_savepoint_that_does_not_say_whose_its_offsets_are_is_refused(job: RecordedJob) -> None:
    saved = job.take()
    with pytest.raises(OffsetsNotThere) as raised:
        sources_of(saved)
    assert (raised.value.code, raised.value.path) == ("JOB-101", "savepoint one, the first query")
    reads = [SourceRecord(name="a", kind="topics", places=("every-state-a",))]
    queries = {"": QueryRecord.of(["a"], [], reads=reads), "names": QueryRecord.of(["b"], [])}
    known = saved.model_copy(update={"generation": _generation(queries)})
    assert [(one.query, one.position, one.name) for one in sources_of(known)] == [("", 0, "a"), ("names", 0, "b")]


def test_the_offsets_are_of_the_topics_that_the_sources_have_now(job: RecordedJob) -> None:
    reads = [SourceRecord(name=name, kind="topics", places=(name,)) for name in ("a", "b", "c")]
    saved = job.take().model_copy(update={"generation": _generation({"": QueryRecord.of(["a", "b", "c"], [], reads=reads)})})
    sources: dict[str, Source] = {
        "a": FromKafka.model_validate({"kafka": {"topic": "west.a"}}),
        "b": FromFiles.model_validate({"files": {"path": "b"}}),
    }
    moved = of_these_sources(saved, sources).generation
    assert moved is not None and moved.starts == {}
    # What is no topic any more, or is gone, differs as it always did.
    assert [(one.kind, one.places) for one in moved.queries[""].reads or ()] == [("topics", ("west.a",)), *(("topics", (n,)) for n in "bc")]


def test_positions_of_other_sources_stay() -> None:
    record = BatchRecord(batch=3, positions={"a": {0: Position(5, 5)}, "b": {0: Position(9, 9)}})
    changed = with_positions({1: {"west.a": {0: 2}}}, {"a"}, record.model_dump_json(by_alias=True).encode())
    assert BatchRecord.model_validate_json(changed).positions == {"west.a": {0: Position(2, None)}, "b": {0: Position(9, 9)}}
    later = json.loads(with_positions({}, set(), b'{"batch": 3, "ofALaterRelease": 1}'))
    assert later["ofALaterRelease"] == 1


def _generation(queries: dict[str, QueryRecord]) -> Generation:
    what = {"fingerprint": Fingerprint(app="a", spec="s", plan="p"), "versions": Versions(penstock=None, spark="4.3.0")}
    record = {"number": 1, "checkpoint": 1, "parent": None, "mode": "last-state", "began": "2026-11-26T00:00:00Z"}
    return Generation.model_validate({**record, **what, "queries": queries, "starts": {"a": {"a": {0: 1}}}})
