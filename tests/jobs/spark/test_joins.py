"""The interval join compared with plain Python, in any micro-batches."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, interval_join, offset_ms
from penstock.jobs.stream.errors import AppFailed
from penstock.jobs.stream.streams import TIME, Stream, Tag
from tests.jobs.spark.running import Running, Surroundings, TestedJob

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOUND_MS = 10_000
LOWER_MS, UPPER_MS = -5_000, 90_000
# The join copies right rows by slices of event time of twice the interval; a border of such slices near the day of the other tests.
SLICE_MS = 2 * (UPPER_MS - LOWER_MS)
BORDER_MS = 1_743_854_400_000 // SLICE_MS * SLICE_MS
Pair = tuple[str | None, str | None]


def _job(surroundings: Surroundings, app: str, partitions: int = 1) -> TestedJob:
    return surroundings.job(f"tests.jobs.spark.apps.{app}", sources={"a": partitions, "b": partitions})


def _event(name: str, time: str | int, key: str = "k") -> dict[str, str]:
    at = (EPOCH + timedelta(milliseconds=time)).isoformat(timespec="milliseconds") if isinstance(time, int) else f"2025-04-05T{time}Z"
    return {"key": key, "at": at, "name": name}


def _pairs(job: TestedJob) -> Counter[Pair]:
    return Counter((row["left"], row["right"]) for row in job.rows())


def _move_watermark(job: TestedJob, running: Running, to: str, ends: int) -> None:
    """One event of each side, with separate keys, so that the watermark is at a time of the day."""
    moment = datetime.fromisoformat(f"2025-04-05T{to}Z") + timedelta(milliseconds=BOUND_MS)
    time_ms = round((moment - EPOCH) / timedelta(milliseconds=1))
    job.feed("a", _event("mover", time_ms, key=f"a-{to}"))
    job.feed("b", _event("mover", time_ms, key=f"b-{to}"))
    (*_, last) = running.until_read({"a": [ends], "b": [ends]})
    assert last["watermarks"]["inForceMs"] == time_ms - BOUND_MS


def test_an_unmatched_left_row_is_emitted_with_nulls_only_once_the_watermark_has_passed(surroundings: Surroundings) -> None:
    job = _job(surroundings, "left_pairs")
    with job.running() as running:
        job.feed("a", _event("alone", "12:30:00"))
        job.feed("b", _event("other key", "12:30:00", key="other"))
        # A right row of 12:31:00 would be in time and within the bounds with this watermark.
        running.until_read({"a": [1], "b": [1]})
        _move_watermark(job, running, "12:31:00", 2)
        assert job.rows() == []
        # Spark's watermark is a millisecond less than Penstock's, and state before it is cleared.
        _move_watermark(job, running, "12:31:00.002", 3)
        assert job.rows() == [{"left": "alone", "right": None}]
        assert running.batches[-1]["totalTags"] == {Tag.DATA: 1}


def test_a_left_row_waits_for_its_partner_to_the_last_millisecond(surroundings: Surroundings) -> None:
    job = _job(surroundings, "left_pairs")
    with job.running() as running:
        job.feed("a", _event("waits", "12:30:00"))
        job.feed("b", _event("other key", "12:30:00", key="other"))
        running.until_read({"a": [1], "b": [1]})
        _move_watermark(job, running, "12:31:00", 2)
        job.feed("b", _event("last moment", "12:31:00"))
        running.until_read({"a": [2], "b": [3]})
        assert job.rows() == [{"left": "waits", "right": "last moment"}]
    assert job.side_outputs("late") == []


@pytest.mark.on_executors("interval_join")
def test_an_inner_join_passes_only_pairs_and_counts_no_row_that_stays_without_partner(surroundings: Surroundings) -> None:
    job = _job(surroundings, "pairs")
    with job.running() as running:
        job.feed("a", _event("paired", "12:30:00"), _event("alone", "12:30:01", key="x"), _event("alone too", "12:30:02", key="y"))
        job.feed("b", _event("partner", "12:30:10"), _event("right alone", "12:30:10", key="z"))
        running.until_read({"a": [3], "b": [2]})
        assert running.batches[-1]["totalTags"] == {Tag.DATA: 1}
        job.feed("a", _event("mover", "12:40:00", key="a"))
        job.feed("b", _event("mover", "12:40:00", key="b"))
        running.until_read({"a": [4], "b": [3]})
        assert running.batches[-1]["totalTags"] == {Tag.DATA: 1}
    assert job.rows() == [{"left": "paired", "right": "partner"}]


def test_a_hot_key_is_joined_right(surroundings: Surroundings) -> None:
    random_ = random.Random(1)
    job = _job(surroundings, "close_pairs")
    times = {source: sorted(BORDER_MS + random_.randrange(3_600_000) for _ in range(2_000)) for source in "ab"}
    for source, some in times.items():
        job.feed(source, *(_event(f"{number}", time) for number, time in enumerate(some)))
    with job.running() as running:
        running.until_read({"a": [2_000], "b": [2_000]})
    expected: Counter[Pair] = Counter()
    for number, time in enumerate(times["a"]):
        first, behind = bisect_left(times["b"], time - 1_000), bisect_right(times["b"], time + 1_000)
        expected.update((f"{number}", f"{other}") for other in range(first, behind))
    assert expected.total() > 1_500, "the case is worth something"
    assert _pairs(job) == expected


def test_rows_for_side_outputs_pass_a_join_once(surroundings: Surroundings) -> None:
    # A right row is copied to each slice that its partners can be in; a record without event time has none.
    job = _job(surroundings, "lopsided_left_pairs")
    with job.running() as running:
        job.feed("a", b"broken left", _event("left", "12:30:00"))
        job.feed("b", b"broken right", b'{"key": "k"}', _event("right", "12:30:00"))
        running.until_read({"a": [2], "b": [3]})
        job.feed("b", _event("late right", "12:29:49.999"))
        job.feed("a", _event("late left", "12:29:49.999"))
        running.until_read({"a": [3], "b": [4]})
        totals = running.batches[-1]["totalTags"]
    assert totals == {Tag.DATA: 1, Tag.QUARANTINED: 3, Tag.LATE: 2}
    assert job.rows() == [{"left": "left", "right": "right"}]
    places = Counter(
        (record["source"], record["offset"], record["reason"].split(":")[0])
        for record in job.side_outputs("errors") + job.side_outputs("late")
    )
    assert places == Counter(
        [
            ("a", 0, "the value is not JSON of the source's schema"),
            ("b", 0, "the value is not JSON of the source's schema"),
            ("b", 1, "at is missing"),
            ("a", 2, "older than the watermark by ms"),
            ("b", 3, "older than the watermark by ms"),
        ]
    )


@pytest.mark.parametrize("source", ["a", "b"])
def test_a_side_without_event_time_is_an_error_that_names_it(surroundings: Surroundings, source: str) -> None:
    job = _job(surroundings, "pairs").edit(lambda spec: spec["sources"][source].pop("time"))
    with pytest.raises(AppFailed) as raised, job.running():
        pass
    assert (raised.value.code, raised.value.path) == ("JOB-003", "tests.jobs.spark.apps.pairs")
    assert raised.value.given == f"ValueError: {source} has no event time; set `time` of its source in the spec"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("0s", 0),
        ("00ms", 0),
        ("-60s", -60_000),
        ("60s", 60_000),
        ("+60m", 3_600_000),
        ("-500ms", -500),
        ("1h", 3_600_000),
        ("+7d", 604_800_000),
    ],
)
def test_a_bound_is_a_duration_with_or_without_a_sign(text: str, ms: int) -> None:
    assert offset_ms(text) == ms


@pytest.mark.parametrize("text", ["", "-", "+", "60", "--60s", "+-60s", "-+60s", "60 s", "1.5.0s", "nans", "60S ", "-0", "s"])
def test_an_invalid_bound_is_reported_with_valid_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid bound .*, optionally signed") as raised:
        offset_ms(text)
    assert f'"{text}"' in str(raised.value)


def test_a_full_join_has_no_slices_for_hot_keys(session: SparkSession) -> None:
    rows = session.createDataFrame([("k", 0)], "key string, at long").withColumn(TIME, F.timestamp_millis("at"))
    left, right = (Side(name, Stream(rows, timed=True), "key") for name in "lr")
    with pytest.raises(ValueError, match='hot_keys=True is not supported with how="full"'):
        interval_join(left, right, lower="-1s", upper="1s", how="full", hot_keys=True)
