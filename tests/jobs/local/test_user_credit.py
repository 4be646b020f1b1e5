"""The traffic of user_credit: the worked example, then all faults of a day; and its expectation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from penstock.jobs.local import user_credit
from penstock.jobs.local.recording import Record, Recorded, RecordedBatch, Recording
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT

PARTITIONS = 10
Topic = Callable[[int], Iterator[Record]]
TOPICS: dict[str, Topic] = {"events-a": user_credit.events_a, "events-b": user_credit.events_b}


@pytest.fixture(scope="module")
def fed() -> dict[str, list[Record]]:
    return {topic: list(events(PARTITIONS)) for topic, events in TOPICS.items()}


def _row(record: Record) -> dict[str, Any] | None:
    """The record's fields, if it is a valid row for the app's schema and the spec's time."""
    try:
        body: dict[str, Any] = json.loads(record.value or b"")
        moment = datetime.fromisoformat(body["event_timestamp"])
    except (ValueError, KeyError, TypeError):
        return None
    return body if moment.tzinfo is not None and body.get("token") is not None else None


def _moment(record: Record) -> datetime | None:
    row = _row(record)
    return datetime.fromisoformat(row["event_timestamp"]) if row else None


def test_the_worked_example_comes_first_and_in_its_order(fed: dict[str, list[Record]]) -> None:
    for topic, times in {"events-a": ("29:50", "29:55", "29:45", "30:05"), "events-b": ("29:52", "29:58", "29:48", "30:08")}.items():
        example = [_row(record) for record in fed[topic][:4]]
        assert [row["event_timestamp"] for row in example if row] == [f"2025-04-05T12:{time}+00:00" for time in times]
        assert {row["token"] for row in example if row} == {"token123"}
    names = [row["user_id"][-1] for topic in TOPICS for row in map(_row, fed[topic][:4]) if row]
    assert names == list("ABCDWXYZ")
    # One partition, or the order of arrival would differ from the example.
    assert len({record.partition for topic in TOPICS for record in fed[topic][:4]}) == 1


def test_there_are_about_a_hundred_thousand_events(fed: dict[str, list[Record]]) -> None:
    assert 100_000 <= sum(not record.flush for records in fed.values() for record in records) <= 103_000


@pytest.mark.parametrize("topic", TOPICS)
def test_each_partition_ends_with_the_only_flush_event_that_it_has(fed: dict[str, list[Record]], topic: str) -> None:
    for number in range(PARTITIONS):
        records = [record for record in fed[topic] if record.partition == number]
        assert [record.flush for record in records].count(True) == 1
        assert records[-1].flush
        assert len(records) > 1_000, "the traffic is spread over the partitions"
    flush = [moment for record in fed[topic] if record.flush and (moment := _moment(record))]
    rest = [moment for record in fed[topic] if not record.flush and (moment := _moment(record))]
    assert min(flush) - max(rest) > timedelta(milliseconds=user_credit.WITHIN_MS + user_credit.BOUND_MS)
    tokens = {topic: {row["token"] for record in fed[topic] if record.flush and (row := _row(record))} for topic in TOPICS}
    assert tokens["events-a"].isdisjoint(tokens["events-b"])


@pytest.mark.parametrize("topic", TOPICS)
def test_all_faults_of_a_day_are_in_the_traffic(fed: dict[str, list[Record]], topic: str) -> None:
    records = [record for record in fed[topic] if not record.flush]
    assert all(copies <= 3 for copies in Counter(record.value for record in records if record.value).values())
    duplicates = len(records) - len({(record.value, record.key) for record in records})
    assert 400 < duplicates < 700
    broken = [record for record in records if _row(record) is None]
    assert 150 < len(broken) < 400
    assert b"" in {record.value for record in broken}
    assert any((record.value or b"").startswith(b"\xff\xfe") for record in broken)
    assert 400 < _surely_late(records) < 700
    offsets = {row["event_timestamp"][-6:] for record in records if (row := _row(record))}
    assert offsets == {"+00:00", "+05:30"}


def _surely_late(records: list[Record]) -> int:
    """Rows that arrive more than a minute behind the greatest time of their partition."""
    greatest: dict[int | None, datetime] = {}
    late = 0
    for record in records:
        moment = _moment(record)
        if moment is None:
            continue
        before = greatest.setdefault(record.partition, moment)
        late += moment < before - timedelta(seconds=50)
        greatest[record.partition] = max(before, moment)
    return late


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_seed_gives_the_same_records(fed: dict[str, list[Record]], topic: str) -> None:
    assert list(TOPICS[topic](PARTITIONS)) == fed[topic]


def test_the_two_topics_have_tokens_in_common_and_tokens_of_their_own(fed: dict[str, list[Record]]) -> None:
    a, b = ({row["token"] for record in fed[topic] if (row := _row(record))} for topic in TOPICS)
    assert min(len(a & b), len(a - b), len(b - a)) > 1_000


def test_the_clock_of_the_expectation_is_that_of_the_spec() -> None:
    sources = load(ROOT / "jobs/specs/user_credit.yaml").job.spec.sources
    for source in sources.values():
        assert source.time is not None
        assert (source.time.out_of_orderness, source.time.idleness) == (user_credit.BOUND_MS, user_credit.IDLENESS_MS)


def test_all_16_pairs_of_the_worked_example_are_expected() -> None:
    records = {topic: _recorded(list(events(1))[:4]) for topic, events in TOPICS.items()}
    ends = {topic: {0: 4} for topic in TOPICS}
    expected = user_credit.expect(
        Recording(records, dict.fromkeys(TOPICS, 1), [RecordedBatch(0, 0, 0, ends)], {topic: {0: 0} for topic in TOPICS})
    )
    assert (expected.rows, expected.quarantined, expected.late, expected.side_outputs) == (16, 0, 0, {"failed": 0})
    assert expected.exact is not None
    pairs = {(json.loads(row)["a_timestamp"], json.loads(row)["b_timestamp"]) for row in expected.exact}
    a, b = ([f"2025-04-05T{time}+00:00" for time in user_credit.WORKED_EXAMPLE[topic].values()] for topic in TOPICS)
    assert pairs == set(product(a, b))


def test_what_is_expected_is_what_a_loop_over_all_pairs_gives() -> None:
    """A handful of records, one of each kind, in two micro-batches."""

    def event(token: str | None, at: str, **more: object) -> bytes:
        return json.dumps({"token": token, "event_timestamp": f"2025-04-05T{at}", **more}).encode()

    a = [
        event("t", "12:00:00Z", user_id="u", amount=1.5),
        event("t", "12:01:00.001Z", amount=20),
        event("other", "12:00:00Z", amount=20),
        event("t", "12:02:00Z", amount=20),
    ]
    limit = {"credit_limit": 9.0}
    b = [
        event("t", "12:01:00Z", **limit),
        event("t", "17:29:00+05:30", **limit),
        event(None, "12:00:00Z", **limit),
        b"{",
        event("t", "12:02:00Z", **limit),
    ]
    # The watermark of the second micro-batch is 12:02:00 less 10 s: the first of these equals it, the second is older by a millisecond. The
    # pairs of the first of these each exceed their limit.
    a_later = [event("t", "12:01:50Z", amount=90.1), event("t", "12:01:49.999Z", amount=20)]
    b_later = [event("t", "12:03:00Z", **limit)]
    current_ms = 1743854510000
    recording = Recording(
        {"events-a": _recorded([Record(value) for value in a + a_later]), "events-b": _recorded([Record(value) for value in b + b_later])},
        dict.fromkeys(TOPICS, 1),
        [
            RecordedBatch(0, 0, 0, {"events-a": {0: 4}, "events-b": {0: 5}}),
            RecordedBatch(1, 0, current_ms - 1, {"events-a": {0: 6}, "events-b": {0: 6}}),
        ],
        {topic: {0: 0} for topic in TOPICS},
    )
    expected = user_credit.expect(recording)
    assert (expected.quarantined, expected.late, expected.side_outputs) == (2, 1, {"failed": 2})
    assert expected.exact is not None and expected.rows == expected.exact.total()
    pairs = sorted((row["a_timestamp"][11:], row["b_timestamp"][11:]) for row in map(json.loads, expected.exact))
    assert pairs == [
        ("12:00:00Z", "12:01:00Z"),
        ("12:00:00Z", "17:29:00+05:30"),
        ("12:01:00.001Z", "12:01:00Z"),
        ("12:01:00.001Z", "12:02:00Z"),
        ("12:02:00Z", "12:01:00Z"),
        ("12:02:00Z", "12:02:00Z"),
        ("12:02:00Z", "12:03:00Z"),
    ]
    assert {(row["user_id"], row["amount"], row["new_limit"]) for row in map(json.loads, expected.exact)} == {
        ("u", 1.5, 8.85),
        (None, 20, 7.0),
    }
    first = json.loads(min(expected.exact))
    assert set(first) == {"token", "user_id", "amount", "credit_limit", "new_limit", "a_timestamp", "b_timestamp"}


def _asked(key: str, **pair: object) -> tuple[int, object]:
    body = json.dumps({"token": "t", "user_id": "u", **pair}).encode()
    return user_credit.credit_service("POST", "/limits", {"idempotency-key": key}, body)


def test_the_credit_service_answers_the_same_to_the_same_request() -> None:
    assert _asked("k", amount=1.5, credit_limit=9.0) == _asked("k", amount=1.5, credit_limit=9.0) == (200, {"new_limit": 8.85})
    assert _asked("k", amount=90.0, credit_limit=9.0) == (200, {"new_limit": 0.0})
    assert _asked("k", amount=90.1, credit_limit=9.0)[0] == _asked("k", amount=None, credit_limit=9.0)[0] == 422
    assert user_credit.credit_service("GET", "/", {}, b"")[0] == 404


def test_the_credit_service_is_busy_once_for_some_pairs_and_never_available_for_others() -> None:
    answers: Counter[tuple[int, ...]] = Counter()
    for number in range(4_000):
        answers[tuple(_asked(f"busy-{number}", amount=1.0, credit_limit=9.0)[0] for _ in range(3))] += 1
    assert set(answers) == {(200, 200, 200), (503, 200, 200), (503, 503, 503)}
    assert 40 < answers[503, 200, 200] < 160 and 1 <= answers[503, 503, 503] < 30


def _recorded(records: list[Record]) -> list[Recorded]:
    return [Recorded(0, offset, record.key, record.value, record.flush) for offset, record in enumerate(records)]
