"""Event times of fed records: now, in the form that the source reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from penstock.jobs.local.recording import Record
from penstock.jobs.spec import EventTime
from penstock.scripts.feeding.event_times import moved, written_at

NOW = datetime(2026, 5, 4, 3, 2, 1, 987_654, tzinfo=UTC)
FORMS = {
    "iso-8601": "2026-05-04T03:02:01.987Z",
    "epoch-seconds": 1777863721,
    "epoch-millis": 1777863721987,
    "epoch-micros": 1777863721987000,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_format_of_a_spec_is_written(form: str) -> None:
    assert written_at(form, NOW) == FORMS[form]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_of_a_generator_gets_this_time_and_keeps_the_rest(form: str) -> None:
    time = EventTime.model_validate({"field": "at", "format": form})
    old = "2025-04-05T18:35:54.857+05:30" if form == "iso-8601" else 12.5
    record = Record(json.dumps({"user": "zoé", "at": old, "n": 1}).encode(), key=b"k", partition=3)
    result = moved(record, time, NOW)
    assert json.loads(result.value or b"") == {"user": "zoé", "at": FORMS[form], "n": 1}
    assert (result.key, result.partition) == (b"k", 3)


def test_a_number_in_a_text_stays_a_text() -> None:
    time = EventTime.model_validate({"field": "at", "format": "epoch-millis"})
    assert moved(Record(b'{"at": "1700000000000"}'), time, NOW).value == b'{"at": "1777863721987"}'


@pytest.mark.parametrize(
    "value",
    [b"not JSON", b"[1]", b"\xff", b'{"user": "ann"}', b'{"at": null}', b'{"at": "2025-04-05T18:32:39"}', b'{"at": "2025-04-05"}', None],
)
def test_what_is_broken_or_has_no_time_is_left_as_it_is(value: bytes | None) -> None:
    record = Record(value)
    assert moved(record, EventTime.model_validate({"field": "at"}), NOW) is record
    assert moved(record, None, NOW) is record


def test_a_flag_is_no_number() -> None:
    record = Record(b'{"at": true}')
    assert moved(record, EventTime.model_validate({"field": "at", "format": "epoch-seconds"}), NOW) is record
