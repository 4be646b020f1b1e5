"""Which part files are due, and which chunks go to which."""

from __future__ import annotations

from penstock.jobs.sinks.open_parts import Chunk, OpenPart, extended
from penstock.jobs.spec import Roll

ROLL = Roll.model_validate({"size": "1k", "interval": "5m", "inactivity": "1m"})


def _chunk(name: str, size: int = 100) -> Chunk:
    return Chunk(name=name, rows=1, bytes=size)


def _part(directory: str = "", *, size: int = 100, opened_ms: int = 0, touched_ms: int = 0, shape: str = "json") -> OpenPart:
    return OpenPart(directory=directory, shape=shape, opened_ms=opened_ms, touched_ms=touched_ms, chunks=(_chunk("old", size),))


def test_a_part_is_due_by_its_size_its_age_or_the_time_since_it_got_rows() -> None:
    assert not _part(size=1_023).due(ROLL, 59_999)
    assert _part(size=1_024).due(ROLL, 0)
    assert _part().due(ROLL, 60_000)
    assert not _part(touched_ms=290_000).due(ROLL, 299_999)
    assert _part(touched_ms=290_000).due(ROLL, 300_000)


def test_chunks_go_to_the_open_part_of_their_directory_or_open_one() -> None:
    parts = extended([_part("a"), _part("b")], [("a", _chunk("1")), ("c", _chunk("2"))], ROLL, "json", 70, 90)
    assert [(part.directory, [chunk.name for chunk in part.chunks], part.opened_ms, part.touched_ms) for part in parts] == [
        ("a", ["old", "1"], 0, 90),
        ("b", ["old"], 0, 0),
        ("c", ["2"], 70, 90),
    ]


def test_a_part_that_is_full_gets_no_more_and_one_of_another_shape_gets_none() -> None:
    chunks = [("", _chunk("1", 600)), ("", _chunk("2", 600)), ("", _chunk("3", 600))]
    full, more = extended([], chunks, ROLL, "json", 0, 0)
    assert [[chunk.name for chunk in part.chunks] for part in (full, more)] == [["1", "2"], ["3"]]
    assert (full.due(ROLL, 0), more.due(ROLL, 0)) == (True, False)
    before, after = extended([_part(shape="parquet:1")], [("", _chunk("1"))], ROLL, "parquet:2", 0, 0)
    assert [[chunk.name for chunk in part.chunks] for part in (before, after)] == [["old"], ["1"]]
