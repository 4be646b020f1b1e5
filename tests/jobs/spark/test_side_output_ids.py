"""The id of a side-output row: two rows never share one, and a replay of the micro-batch gives the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.leaving import TagCount
from penstock.jobs.stream.quarantine import side_records
from penstock.jobs.stream.side_outputs import SCHEMA
from tests.jobs.spark.running import Surroundings
from tests.jobs.spark.test_kafka_sink import read_committed


class Killed(Exception):
    """Represents the end of the process at a chosen point."""


Record = tuple[str, str | None, int | None, int | None, str]
DIVERTED: Record = ("odd", None, None, None, '{"n":1}')


def _rows(session: SparkSession, rows: Sequence[tuple[str, str, Record]]) -> DataFrame:
    values = [(tag, reason, (*record[:4], None, None, record[4].encode())) for tag, reason, record in rows]
    return session.createDataFrame(values, SCHEMA)


def _ids(rows: DataFrame, batch: int = 12) -> list[str]:
    counts = TagCount(rows.count(), rows.where("_record.offset is null").count())
    written = side_records(rows, batch, counts).collect()
    assert [json.loads(row["value"])["id"] for row in written] == [row["key"] for row in written]
    return sorted(row["key"] for row in written)


def test_a_record_of_a_topic_is_known_by_its_offset_and_any_other_row_by_its_content(session: SparkSession) -> None:
    rows = _rows(session, [("quarantined", "broken", ("clicks", "in", 3, 17, "{")), ("odd", "an odd row", DIVERTED)])
    made, located = _ids(rows)[::-1], "in-3-17"
    assert located in made
    (other,) = set(made) - {located}
    source, batch, digest, ordinal = other.split("-")
    assert (source, batch, ordinal) == ("odd", "12", "0")
    assert len(digest) == 16 and int(digest, 16) >= 0


def test_equal_rows_have_different_ids_and_another_order_of_the_rows_has_the_same(session: SparkSession) -> None:
    given = [("odd", "an odd row", DIVERTED)] * 3 + [("odd", "another reason", DIVERTED), ("alerts", "an odd row", DIVERTED)]
    ids = _ids(_rows(session, given))
    assert len(set(ids)) == 5
    assert Counter(one.rsplit("-", 1)[1] for one in ids) == {"0": 3, "1": 1, "2": 1}
    assert _ids(_rows(session, given[::-1]).repartition(3)) == ids
    assert not set(ids) & set(_ids(_rows(session, given), batch=13))


def test_malformed_lines_of_a_file_have_different_ids(session: SparkSession) -> None:
    file = "s3a://bucket/in/one.jsonl"
    rows = [("quarantined", "broken", ("a", file, None, None, text)) for text in ("{", "[", "{")]
    assert len(set(_ids(_rows(session, rows)))) == 3


def test_a_replay_writes_the_same_ids_again(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.made_rows", sources={"a": 1})
    at = "2025-04-05T12:30:00Z"
    names = ["odd", "odd", "refused", "refused", "alarming", "alarming", "fine"]
    job.feed("a", b"broken", b"broken", *({"key": "k", "at": at, "name": name} for name in names))
    record = Checkpoint.record

    def killed(*arguments: object, **named: object) -> None:
        record(*arguments, **named)  # type: ignore[arg-type]
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", killed)
        with job.running() as running:
            running.wait("failed")
            assert "Killed" in str(running.failure)
    with job.running() as running:
        running.until_read({"a": [9]})
        assert running.batches[0]["tags"] == {"data": 3, "quarantined": 2, "odd": 2, "failed": 2, "alerts": 2}
    times = Counter((message.key() or b"").decode() for message in read_committed(surroundings.brokers, f"{job.name}-errors"))
    assert sorted({name.split("-")[0] for name in times if not name.startswith(job.name)}) == ["alerts", "ask", "odd"]
    assert len(times) == 8, "as many ids as rows"
    assert set(times.values()) == {2}, "each twice: by the micro-batch and by its replay"
