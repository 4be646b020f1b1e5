"""The harness of the blocks' tests, and what every block relies on: rows for side outputs before a stateful operator."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest
from pyspark.sql import functions as F

from penstock.jobs.stream.streams import TIME, Stream, Tag
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.running import CHECKPOINTS, Surroundings


def _count_by_ten_seconds(streams: Mapping[str, Stream]) -> Stream:
    counted = streams["clicks"].frame.groupBy(F.window(TIME, "10 seconds").alias("w"), "user").count()
    return Stream(counted.select("user", F.col("w.start").alias("start"), "count", F.lit(None).cast("timestamp").alias(TIME)), timed=True)


@pytest.mark.on_executors("side outputs")
def test_side_outputs_before_an_aggregation_are_written_with_their_micro_batch(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a"), row("5", user="a"), row(None, user="x")],
        [row("19.999", user="b")],
        [row("20", user="a"), row("9", user="late"), row(None, user="y")],
    ]
    name = f"aside{uuid.uuid4().hex[:8]}"
    ran = run(surroundings, {"clicks": Input("user STRING", batches)}, _count_by_ten_seconds, name=name)
    # A window closes with the first watermark that has reached its end: that of the previous micro-batch.
    assert [len(rows) for rows in ran.batches] == [0, 0, 1, 1]
    same(ran.rows, [{"user": "a", "start": at("0"), "count": 2}, {"user": "b", "start": at("10"), "count": 1}])
    assert [side_outputs["value"].count('"x"') for side_outputs in ran.side_outputs[Tag.QUARANTINED]] == [1, 0]
    assert ['"late"' in side_outputs["value"] for side_outputs in ran.side_outputs[Tag.LATE]] == [True]
    assert [batch["tags"] for batch in ran.events] == [
        {"quarantined": 1},
        {},
        {"data": 1, "late": 1, "quarantined": 1},
        {"data": 1},
    ]
    # Staged rows are deleted once they are written.
    objects = surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{name}/1/penstock/")["Contents"]
    assert [item["Key"] for item in objects if "/aside/" in item["Key"]] == []


def test_rows_that_are_filtered_out_before_an_aggregation_are_counted(surroundings: Surroundings) -> None:
    batches = [[row("1", user="a"), row("2", user="robot"), row(None, user="x")], [row("30", user="robot")]]

    def build(streams: Mapping[str, Stream]) -> Stream:
        return _count_by_ten_seconds({"clicks": streams["clicks"].filter("user <> 'robot'")})

    ran = run(surroundings, {"clicks": Input("user STRING", batches)}, build)
    same(ran.rows, [{"user": "a", "start": at("0"), "count": 1}])
    assert [batch["tags"] for batch in ran.events] == [{"filtered": 1, "quarantined": 1}, {"filtered": 1}, {"data": 1}]


def test_a_row_that_an_app_sends_to_a_side_output_keeps_its_fields_and_its_reason(
    surroundings: Surroundings, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [[row("1", user="a"), row("2", user="b"), row("3", user="c")], [row("4", user="c")]]

    def build(streams: Mapping[str, Stream]) -> Stream:
        kept = streams["clicks"].divert("alerts", "user = 'b'", "concat('not ', user)")
        return kept.divert("nowhere", "user = 'c'", "'as a keyed function may'").select(name="upper(user)")

    ran = run(surroundings, {"clicks": Input("user STRING", batches)}, build)
    same(ran.rows, [{"name": "A"}])
    (alert,) = ran.side_outputs["alerts"]
    assert (alert["reason"], alert["source"], alert["value"]) == ("not b", "alerts", '{"user":"b"}')
    # A tag without a side output can't be rejected if a function assigns it: its rows are counted, with one warning.
    assert ran.events[-1]["totalTags"] == {"data": 1, "alerts": 1, "nowhere": 2}
    assert capsys.readouterr().err.count('rows with the tag "nowhere" are counted but not written') == 1


@pytest.mark.parametrize("tag", [Tag.DATA, Tag.FILTERED, Tag.UNMATCHED])
def test_a_tag_that_means_something_else_can_not_be_diverted_to(surroundings: Surroundings, tag: str) -> None:
    with pytest.raises(ValueError, match=f'divert\\("{tag}"\\)'):
        Stream(surroundings.session.range(1).toDF("n"), timed=False).divert(tag, "n = 1", "'why'")


def test_a_difference_is_shown_side_by_side() -> None:
    with pytest.raises(AssertionError) as raised:
        same([{"a": 1}, {"a": 3}], [{"a": 1}, {"a": 2}])
    assert str(raised.value).splitlines()[1:] == [
        "   expected  found",
        "   a=1       a=1",
        "!  a=2",
        "!            a=3",
    ]
