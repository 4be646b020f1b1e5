"""Malformed, late and filtered rows: all of them are counted, and nothing is lost."""

from __future__ import annotations

import base64
import json

from penstock.jobs.stream.streams import Tag
from tests.jobs.spark.running import Surroundings

TIME = "2025-04-05T12:30:00+00:00"


def _row(name: str, at: str = TIME, **more: object) -> dict[str, object]:
    return {"key": "k", "at": at, "name": name, **more}


def test_a_record_that_does_not_parse_goes_to_quarantine_with_reason_and_place(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    broken = {
        b'{"key": "k", "at"': "the value is not JSON of the source's schema",
        b"": "the value is not JSON of the source's schema",
        b"[1, 2]": "the value is not JSON of the source's schema",
        b'\xff\xfe{"key": "k"}': "the value is not UTF-8",
        b'{"at": "%s"}' % TIME.encode(): "key is missing",
        b'{"key": null, "at": "%s"}' % TIME.encode(): "key is missing",
        b'{"key": "k"}': "at is missing",
        b'{"key": "k", "at": "2025-04-05T12:30:00"}': "at is not ISO-8601 with an offset",
        b'{"key": "k", "at": "2025-13-05T12:30:00Z"}': "at is not ISO-8601 with an offset",
        b'{"key": "k", "at": "2025-04-05"}': "at is not ISO-8601 with an offset",
        b'{"key": "k", "at": "%s", "amount": "much"}' % TIME.encode(): "the value is not JSON of the source's schema: amount is not double",
        b"[" * 10_000: "the value is not JSON of the source's schema",
        # The maximum that a broker accepts by default, and twice that once its quotes are escaped.
        b'"' * 1_000_000: "the value is not JSON of the source's schema",
    }
    job.feed("a", _row("good", amount=1.5), partition=0)
    job.feed("a", *broken, partition=1)
    with job.running() as running:
        running.until_read({"a": [1, len(broken)]})
    assert job.rows() == [{"key": "k", "name": "good", "amount": 1.5}]
    records = {record["offset"]: record for record in job.side_outputs("errors")}
    assert [records[offset]["reason"] for offset in range(len(broken))] == list(broken.values())
    assert {(record["source"], record["topic"], record["partition"]) for record in records.values()} == {("a", job.topics["a"], 1)}
    values = [base64.b64decode(r["valueBase64"]) if "valueBase64" in r else r["value"].encode() for _, r in sorted(records.items())]
    assert values == list(broken)


def test_a_record_in_quarantine_does_not_move_the_watermark(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.feed("a", _row("good"), {"at": "2025-04-05T23:00:00Z", "name": "without a key"})
    with job.running() as running:
        running.until_read({"a": [2]})
    assert running.batches[-1]["watermarks"]["inputs"]["a"] == 1743856200000 - 10_000
    assert len(job.side_outputs("errors")) == 1


def test_offsets_of_any_kind_and_fractions_are_read_as_the_same_moment(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    same = ["2025-04-05T18:30:00.5+05:30", "2025-04-05T13:00:00.500Z", "2025-04-05T08:00:00.500499999-05:00"]
    job.feed("a", *(_row(at, at=at) for at in same))
    with job.running() as running:
        (batch, *_) = running.until_read({"a": [3]})
    assert batch["watermarks"]["inputs"]["a"] == 1743858000500 - 10_000
    assert len(job.rows()) == 3


def test_rows_in_are_rows_out_and_quarantined_and_late_and_filtered(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    with job.running() as running:
        job.feed("a", _row("one"), _row("skip"), b"broken", _row("two"))
        running.until_read({"a": [4]})
        job.feed("a", _row("late", at="2025-04-05T12:29:49+00:00"), _row("in time", at="2025-04-05T12:29:50+00:00"))
        (batch, *_) = running.until_read({"a": [6]})
    assert batch["totalTags"] == {Tag.DATA: 3, Tag.FILTERED: 1, Tag.LATE: 1, Tag.QUARANTINED: 1}
    assert batch["totalRowsIn"] == {"a": 6}
    assert [row["name"] for row in job.rows()] == ["in time", "one", "two"]
    (late,) = job.side_outputs("late")
    assert json.loads(late["value"])["name"] == "late"


def test_a_partition_that_lags_behind_loses_no_row(surroundings: Surroundings) -> None:
    # Spark's own watermark is the greatest over all partitions: the second micro-batch's rows would all be late to it.
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    with job.running() as running:
        job.feed("a", *(_row(f"fast {n}", at=f"2025-04-05T13:{n:02d}:00Z") for n in range(5)), partition=0)
        job.feed("a", _row("slow 0", at="2025-04-05T12:00:00Z"), partition=1)
        running.until_read({"a": [5, 1]})
        job.feed("a", *(_row(f"slow {n}", at=f"2025-04-05T12:{n:02d}:00Z") for n in range(1, 5)), partition=1)
        running.until_read({"a": [5, 5]})
    assert len(job.rows()) == 10
    assert job.side_outputs("late") == []


def test_rows_lie_below_the_date_of_their_event_time_in_the_sinks_zone(surroundings: Surroundings) -> None:
    files = {"path": f"zoned-{surroundings.folder.name}", "zone": "Asia/Kolkata"}
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sinks"].update(out={"files": files}))
    job.feed("a", _row("evening", at="2025-04-05T18:29:59Z"), _row("night", at="2025-04-05T18:30:00Z"))
    with job.running() as running:
        running.until_read({"a": [2]})
    contents = surroundings.s3.list_objects_v2(Bucket="test-output", Prefix=f"{files['path']}/")["Contents"]
    assert sorted(item["Key"].split("/")[1] for item in contents) == ["dt=2025-04-05", "dt=2025-04-06"]
