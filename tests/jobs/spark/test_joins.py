"""The interval join against plain Python, whatever the micro-batches are."""

from __future__ import annotations

import json
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from jobs.errors import AppFailed
from jobs.joins import offset_ms
from jobs.local.recording import Recorded, Recording
from jobs.local.replay import Clock, judge
from jobs.streams import Tag
from scripts import recorded_run
from scripts.kafka_topics import Fed
from tests.jobs.spark.running import CHECKPOINTS, Running, Surroundings, TestedJob

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
    """One event of each side, of keys of their own, so that the watermark stands at a time of the day."""
    moment = datetime.fromisoformat(f"2025-04-05T{to}Z") + timedelta(milliseconds=BOUND_MS)
    time_ms = round((moment - EPOCH) / timedelta(milliseconds=1))
    job.feed("a", _event("mover", time_ms, key=f"a-{to}"))
    job.feed("b", _event("mover", time_ms, key=f"b-{to}"))
    (*_, last) = running.until_read({"a": [ends], "b": [ends]})
    assert last["watermarks"]["inForceMs"] == time_ms - BOUND_MS


def test_a_left_row_without_partner_is_kept_with_nulls_once_the_watermark_has_passed_and_told_only_then(surroundings: Surroundings) -> None:
    job = _job(surroundings, "left_pairs")
    with job.running() as running:
        job.feed("a", _event("alone", "12:30:00"))
        job.feed("b", _event("other key", "12:30:00", key="other"))
        # A right row of 12:31:00 would be in time and within the bounds while this is the watermark.
        running.until_read({"a": [1], "b": [1]})
        _move_watermark(job, running, "12:31:00", 2)
        assert job.rows() == []
        # Spark's watermark is a millisecond less than Penstock's, and state goes that lies before it.
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
    assert job.aside("late") == []


def test_an_inner_join_counts_the_left_rows_that_stay_without_partner(surroundings: Surroundings) -> None:
    job = _job(surroundings, "pairs")
    with job.running() as running:
        job.feed("a", _event("paired", "12:30:00"), _event("alone", "12:30:01", key="x"), _event("alone too", "12:30:02", key="y"))
        job.feed("b", _event("partner", "12:30:10"), _event("right alone", "12:30:10", key="z"))
        running.until_read({"a": [3], "b": [2]})
        assert running.batches[-1]["totalTags"] == {Tag.DATA: 1}
        job.feed("a", _event("mover", "12:40:00", key="a"))
        job.feed("b", _event("mover", "12:40:00", key="b"))
        running.until_read({"a": [4], "b": [3]})
        assert running.batches[-1]["totalTags"] == {Tag.DATA: 1, Tag.UNMATCHED: 2}
    assert job.rows() == [{"left": "paired", "right": "partner"}]


def test_random_rows_give_the_pairs_of_a_plain_join_and_each_record_is_read_once(surroundings: Surroundings) -> None:
    """Times lie on the borders of the join's slices and on its bounds, a millisecond before and behind; some rows are late."""
    random_ = random.Random(20250405)
    job = _job(surroundings, "lopsided_left_pairs", partitions=2)
    counts = {source: [0, 0] for source in "ab"}
    with job.running() as running:
        for step in range(4):
            for source in "ab":
                for partition in range(2):
                    events = [_random_event(random_, source, step, number) for number in range(15)]
                    job.feed(source, *events, partition=partition)
                    counts[source][partition] += len(events)
            running.until_read(counts)
        # The last word of each partition, of a key of its own: all that waits is told.
        for source, partition in ((source, partition) for source in "ab" for partition in range(2)):
            job.feed(source, _event(f"last {source}", BORDER_MS + 3_600_000, key=f"{source}-{partition}"), partition=partition)
            counts[source][partition] += 1
        running.until_read(counts)
        recording = _recording(job, running, counts)
    expected, late = _plain_left_join(job, recording)
    assert late > 3 and any(right is None for _, right in expected), "the case is worth something"
    found = _pairs(job)
    assert found == expected, f"missing {expected - found}, unexpected {found - expected}"
    assert len(job.aside("late")) == late
    assert sum(batch["rows"] for batch in running.committed) == sum(map(sum, counts.values())) == 244


def _random_event(random_: random.Random, source: str, step: int, number: int) -> dict[str, str]:
    # Half a slice a step, so that borders and what lies around them come in every other step.
    base_ms = BORDER_MS + step * SLICE_MS // 2
    apart_ms = random_.choice([0, LOWER_MS, UPPER_MS, -LOWER_MS, -UPPER_MS, random_.randrange(-20_000, 20_000)])
    edge_ms = random_.choice([-1, 0, 0, 1])
    return _event(f"{source}{step}-{number}-{random_.randrange(10**9)}", base_ms + apart_ms + edge_ms, key=f"k{random_.randrange(6)}")


def _recording(job: TestedJob, running: Running, counts: dict[str, list[int]]) -> Recording:
    fed = {job.topics[source]: Fed(len(ends), sum(ends), dict(enumerate(ends)), frozenset()) for source, ends in counts.items()}
    read = running.reading["offsets"].values()
    starts = {topic: {int(n): first for n, first in ends.items()} for topics in read for topic, ends in topics.items()}
    return recorded_run.recording(job.around.s3, job.around.brokers, (CHECKPOINTS, f"{job.name}/1"), fed, starts)


def _plain_left_join(job: TestedJob, recording: Recording) -> tuple[Counter[Pair], int]:
    """The pairs of accepted rows by two loops, and how many rows were late; the rows of the last word have no end and are left out."""

    def time_ms(record: Recorded) -> int:
        return round((datetime.fromisoformat(json.loads(record.value or b"")["at"]) - EPOCH) / timedelta(milliseconds=1))

    clock = Clock(time_ms, BOUND_MS, 10**12)
    judged = list(judge(recording, dict.fromkeys(job.topics.values(), clock)))
    rows = {
        source: [json.loads(e.record.value or b"") | {"ms": e.time_ms} for e in judged if e.topic == topic and not e.late]
        for source, topic in job.topics.items()
    }
    pairs: Counter[Pair] = Counter()
    for left in rows["a"]:
        partners = [r["name"] for r in rows["b"] if r["key"] == left["key"] and LOWER_MS <= r["ms"] - left["ms"] <= UPPER_MS]
        pairs.update((left["name"], partner) for partner in partners or [None] if left["name"] != "last a")
    return pairs, sum(event.late for event in judged)


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


def test_what_goes_aside_passes_through_a_join_once(surroundings: Surroundings) -> None:
    # A right row is copied to each slice that its partners can lie in; a record without event time has none.
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
        (record["source"], record["offset"], record["reason"].split(":")[0]) for record in job.aside("errors") + job.aside("late")
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
    assert raised.value.given == f"ValueError: {source} has no event time; give its source a `time` in the spec"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0", 0), ("-60s", -60_000), ("60s", 60_000), ("+60m", 3_600_000), ("-500ms", -500), ("1h", 3_600_000), ("+7d", 604_800_000)],
)
def test_a_bound_is_a_duration_with_or_without_a_sign(text: str, ms: int) -> None:
    assert offset_ms(text) == ms


@pytest.mark.parametrize("text", ["", "-", "+", "60", "--60s", "+-60s", "-+60s", "60 s", "1.5.0s", "nans", "60S ", "-0", "s"])
def test_what_is_no_bound_is_told_with_what_one_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no bound: .*, with a sign or without") as raised:
        offset_ms(text)
    assert f'"{text}"' in str(raised.value)
