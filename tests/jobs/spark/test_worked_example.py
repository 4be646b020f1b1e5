"""The worked example of the seed document on watermarks and the interval join, on a real broker, one event a micro-batch and all at once.

Source: "Working with Spark & Flink" (2025-04-05), "Understanding Watermarks and Windows in Stream Processing", steps 1 to 3.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import product

import pytest

from penstock.jobs.local.recording import Recording
from penstock.jobs.local.replay import Clock, judge, moment_ms
from penstock.scripts.local import recorded_run
from penstock.scripts.local.kafka_topics import Fed
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

DAY = "2025-04-05"
# In the order of arrival: stream, event, timestamp, and the stream's own watermark after it.
ARRIVALS = [
    ("a", "A", "12:29:50", "12:29:40"),
    ("b", "W", "12:29:52", "12:29:42"),
    ("a", "B", "12:29:55", "12:29:45"),
    ("b", "X", "12:29:58", "12:29:48"),
    ("a", "C", "12:29:45", "12:29:45"),
    ("b", "Y", "12:29:48", "12:29:48"),
    ("a", "D", "12:30:05", "12:29:55"),
    ("b", "Z", "12:30:08", "12:29:58"),
]
PAIRS = [{"left": left, "right": right} for left, right in product("ABCD", "WXYZ")]


def _job(surroundings: Surroundings) -> TestedJob:
    return surroundings.job("tests.jobs.spark.apps.pairs", sources={"a": 1, "b": 1})


def _event(name: str, time: str) -> dict[str, str]:
    return {"key": "token123", "at": f"{DAY}T{time}+00:00", "name": name}


def _clock(text: str) -> int:
    return int(datetime.fromisoformat(f"{DAY}T{text}+00:00").replace(tzinfo=UTC).timestamp() * 1000)


def test_each_event_moves_its_streams_watermark_as_the_document_says_and_all_16_pairs_come_out(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    fed = {"a": 0, "b": 0}
    with job.running() as running:
        for stream, name, time, watermark in ARRIVALS:
            job.feed(stream, _event(name, time))
            fed[stream] += 1
            batches = running.until_read({source: [count] for source, count in fed.items()})
            assert batches[-1]["watermarks"]["inputs"][stream] == _clock(watermark), f"after {name}"
    assert job.rows() == PAIRS
    assert job.side_outputs("late") == []


def test_an_event_that_equals_the_current_watermark_is_in_time(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    with job.running() as running:
        job.feed("a", _event("A", "12:29:55"))
        job.feed("b", _event("W", "12:29:55"))
        running.until_read({"a": [1], "b": [1]})
        job.feed("a", _event("on time", "12:29:45"), {**_event("late", "12:29:45"), "at": f"{DAY}T12:29:44.999+00:00"})
        (batch, *_) = running.until_read({"a": [3], "b": [1]})
        assert batch["beganInForceMs"] == _clock("12:29:45")
    assert job.rows() == [{"left": "A", "right": "W"}, {"left": "on time", "right": "W"}]
    (late,) = job.side_outputs("late")
    assert (late["source"], late["offset"], late["reason"]) == ("a", 2, "older than the watermark by ms: 1")


def test_all_16_pairs_come_out_of_one_micro_batch_too(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    for stream, name, time, _ in sorted(ARRIVALS, key=lambda arrival: arrival[0], reverse=True):
        job.feed(stream, _event(name, time))
    with job.running() as running:
        running.until_read({"a": [4], "b": [4]})
    assert job.rows() == PAIRS


def test_pairs_are_made_up_to_the_bounds_and_not_beyond(surroundings: Surroundings) -> None:
    job = _job(surroundings)
    others = ["12:28:59.999", "12:29:00.000", "12:30:00.000", "12:31:00.000", "12:31:00.001"]
    job.feed("a", _event("middle", "12:30:00"))
    job.feed("b", *(_event(time, time) for time in others), {**_event("other key", "12:30:00"), "key": "token124"})
    with job.running() as running:
        running.until_read({"a": [1], "b": [6]})
    assert [row["right"] for row in job.rows()] == others[1:4]


# The document's second example, in the order of arrival: event, timestamp, and the watermark after it. It calls L1 still in time; by its
# own numbers it is not.
LATE_ARRIVALS = [
    ("E2", "12:30:10", "12:30:00"),
    ("E4", "12:30:20", "12:30:10"),
    ("L1", "12:30:08", "12:30:10"),
    ("E6", "12:30:30", "12:30:20"),
    ("L2", "12:30:05", "12:30:20"),
    ("E7", "12:30:35", "12:30:25"),
]
# Its watermark closes all windows of the example, with and without lateness.
FLUSH = ("flush", "12:31:00", "12:30:50")


@pytest.mark.parametrize(
    ("lateness", "late", "windows"),
    [
        pytest.param({}, ["L1", "L2"], ["E2", "E4", "E6 E7"], id="without lateness"),
        pytest.param({"allowedLateness": "10s"}, ["L2"], ["L1", "E2", "E4", "E6 E7"], id="with a lateness of 10 s"),
    ],
)
def test_late_events_are_kept_in_their_side_output_and_count_within_an_allowed_lateness(
    surroundings: Surroundings, lateness: dict[str, str], late: list[str], windows: list[str]
) -> None:
    time = {"field": "at", "outOfOrderness": "10s", **lateness}
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1}, time=time)
    with job.running() as running:
        for count, (name, moment, watermark) in enumerate([*LATE_ARRIVALS, FLUSH], start=1):
            job.feed("a", _event(name, moment))
            batches = running.until_read({"a": [count]})
            assert batches[-1]["watermarks"]["inForceMs"] == _clock(watermark), f"after {name}"
    assert [json.loads(record["value"])["name"] for record in job.side_outputs("late")] == late
    assert [record["reason"] for record in job.side_outputs("late")][-1] == "older than the watermark by ms: 15000"
    assert [row["names"] for row in sorted(job.rows(), key=lambda row: row["window_start"])] == windows
    assert running.batches[-1]["totalTolerated"] == {"a": 2 - len(late)}
    assert running.batches[-1]["totalLate"] == {"a": len(late)}
    clock = Clock(lambda record: moment_ms(json.loads(record.value or b"")["at"]), 10_000, None, 10_000 if lateness else 0)
    judged = list(judge(_recording(job), {job.topics["a"]: clock}, strict=False))
    assert [json.loads(one.record.value or b"")["name"] for one in judged if one.late] == late


def _recording(job: TestedJob) -> Recording:
    count = len(LATE_ARRIVALS) + 1
    fed = {topic: Fed(1, count, {0: count}, frozenset()) for topic in job.topics.values()}
    starts = {topic: {0: 0} for topic in fed}
    return recorded_run.recording(job.around.s3, job.around.brokers, (CHECKPOINTS, f"{job.name}/checkpoints/1"), fed, starts)
