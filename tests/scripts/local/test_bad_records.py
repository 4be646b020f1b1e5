"""The reasons of side-output records, as a person reads them after a run."""

from __future__ import annotations

from typing import Any

from penstock.scripts.local.bad_records import most_frequent


def _record(offset: int, reason: str, **fields: Any) -> dict[str, Any]:
    return {"reason": reason, "topic": "clicks", "partition": 0, "offset": offset, **fields}


def test_the_most_frequent_reasons_come_first_each_with_its_first_record() -> None:
    records = [
        _record(0, "user is missing", value='{"at": "2025-04-05T12:00:00Z"}'),
        _record(1, "at is not ISO-8601 with an offset", value='{"user": "ann", "at": 1743854400000}'),
        _record(2, "at is not ISO-8601 with an offset", value='{"user": "bob", "at": 1743854401000}'),
    ]
    assert [str(reason) for reason in most_frequent(records)] == [
        '2 x at is not ISO-8601 with an offset, for example clicks-0-1: {"user": "ann", "at": 1743854400000}',
        '1 x user is missing, for example clicks-0-0: {"at": "2025-04-05T12:00:00Z"}',
    ]


def test_what_differs_from_record_to_record_is_no_reason_of_its_own() -> None:
    (reason,) = most_frequent(_record(ms, f"ahead of the clock by ms: {ms}", value="{}") for ms in range(5))
    assert (reason.text, reason.records) == ("ahead of the clock by ms", 5)


def test_no_more_than_three_are_shown() -> None:
    records = [_record(number, f"reason {number}", value="") for number in range(9)]
    assert len(most_frequent(records)) == 3


def test_an_example_is_one_line_of_some_length() -> None:
    long, several, binary, nothing = (
        most_frequent([{"reason": "it does not parse", **fields}])[0].example
        for fields in ({"value": "x" * 500}, {"value": "one\ntwo"}, {"valueBase64": "//8="}, {})
    )
    assert long == "x" * 100 + "..."
    assert several == r"one\ntwo"
    assert binary == "//8="
    assert nothing == "a record without a value"
