"""The oracles of the jobs with windows: a few records each, read in micro-batches, and rows computed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.jobs.local import log_processing, region_impressions, sensor_average, visitors_by_country
from penstock.jobs.local.recording import Record, RecordedBatch, Recording
from tests.jobs.local.recordings import ms, recorded, rows


def _at(clock: str) -> str:
    return f"2025-04-05T{clock}.000Z"


def _seen(region: str, token: str, count: int, clock: str) -> dict[str, object]:
    return {"region_code": region, "unique_session_token": token, "impressions": count, "at": _at(clock)}


def _impressions() -> Recording:
    """Two regions; the watermark is at 12:09:50 when the second micro-batch begins, at 12:49:50 when the third does."""
    return recorded(
        "impressions",
        [_seen("eu", "a", 1, "12:04:59"), _seen("us", "b", 2, "12:05:00"), _seen("eu", "a", 4, "12:10:00"), b'{"region_code": "eu"'],
        # The first is late by a second; the second is as old as the watermark, which is not late.
        [_seen("eu", "a", 8, "12:09:49"), _seen("eu", "a", 16, "12:09:50"), _seen("eu", "a", 32, "12:50:00")],
        [{**_seen("flush", "flush", 0, "13:50:00"), "flush": True}],
        watermarks=["12:09:50", "12:49:50"],
    )


def test_impressions_are_summed_by_five_minutes_without_those_that_came_too_late() -> None:
    expected = region_impressions.expect_tumbling(_impressions())
    sums = rows(expected, "region_code", "window_start")
    assert [(row["region_code"], row["window_start"][11:16], row["events"], row["total_impressions"]) for row in sums] == [
        ("eu", "12:00", 1, 1),
        ("eu", "12:05", 1, 16),
        ("eu", "12:10", 1, 4),
        ("eu", "12:50", 1, 32),
        ("us", "12:05", 1, 2),
    ]
    assert (expected.quarantined, expected.late) == (1, 1)


def test_a_backfill_ends_with_its_last_impression() -> None:
    batches = [[_seen("eu", "a", 1, "12:04:59")], [_seen("eu", "a", 2, "12:30:00")], []]
    recording = recorded("impressions-history", *batches, watermarks=["12:04:49", "12:29:50"])
    with pytest.raises(AssertionError, match="batch 2"):
        region_impressions.expect_backfill(recording)
    last = RecordedBatch(2, 2, 253_402_300_800_000, recording.batches[-1].ends)
    expected = region_impressions.expect_backfill(replace(recording, batches=[*recording.batches[:2], last]))
    assert [(row["window_start"][11:16], row["total_impressions"]) for row in rows(expected, "window_start")] == [
        ("12:00", 1),
        ("12:30", 2),
    ]


def test_each_impression_is_in_ten_windows_of_ten_minutes() -> None:
    expected = region_impressions.expect_sliding(_impressions())
    assert sum(row["events"] for row in rows(expected)) == 10 * 5
    ending = {row["window_end"][11:16]: row["total_impressions"] for row in rows(expected) if row["region_code"] == "eu"}
    # 12:00 to 12:10 has 12:04:59 and 12:09:50; 12:01 to 12:11 has 12:10:00 as well; 12:05 to 12:15 no longer has the first.
    assert (ending["12:10"], ending["12:11"], ending["12:15"]) == (1 + 16, 1 + 16 + 4, 16 + 4)
    assert ending["13:00"] == 32


def test_a_token_has_a_new_session_after_half_an_hour_of_silence() -> None:
    expected = region_impressions.expect_sessions(_impressions())
    assert rows(expected, "window_start") == [
        _session("a", "12:04:59", "12:40:00", 3, 1 + 4 + 16),
        _session("b", "12:05:00", "12:35:00", 1, 2),
        _session("a", "12:50:00", "13:20:00", 1, 32),
    ]


def _session(token: str, start: str, end: str, events: int, total: int) -> dict[str, object]:
    return {
        "unique_session_token": token,
        "window_start": _at(start),
        "window_end": _at(end),
        "events": events,
        "total_impressions": total,
    }


def test_an_average_is_rounded_at_each_step_as_decimals_are() -> None:
    def read(sensor: str, fahrenheit: float, clock: str) -> dict[str, object]:
        return {"id": sensor, "timestamp": ms(clock), "temperature": fahrenheit}

    batches = [
        # 0.5556 and 0 have an average of 0.2778, which is rounded up; 32.009 is 0.0050.
        [read("s1", 33, "12:00:00.000"), read("s1", 32, "12:00:00.999"), read("s2", 31, "12:00:00.500")],
        [
            read("s1", 32.009, "12:00:01.000"),
            {"id": "s1", "timestamp": ms("12:00:01.500")},
            {**read("flush", 0, "13:00:00"), "flush": True},
        ],
    ]
    expected = sensor_average.expect(recorded(sensor_average.TOPIC, *batches, watermarks=["11:59:55.999"]))
    assert [(row["id"], row["window_start"][17:23], row["average"], row["readings"]) for row in rows(expected, "id", "window_start")] == [
        ("s1", "00.000", 0.278, 2),
        ("s1", "01.000", 0.005, 1),
        ("s2", "00.000", -0.556, 1),
    ]
    assert expected.quarantined == 1


def test_a_visitor_counts_once_in_a_window_however_often_it_comes() -> None:
    def visit(country: str, visitor: str, clock: str) -> dict[str, object]:
        return {"country": country, "visitor": visitor, "at": _at(clock)}

    visits = [visit("NZ", "a", "12:00:10"), visit("NZ", "a", "12:00:50"), visit("NZ", "b", "12:03:00"), visit("DE", "a", "12:03:00")]
    expected = visitors_by_country.expect(recorded(visitors_by_country.TOPIC, visits))
    ending = {(row["country"], row["window_end"][11:16]): (row["visitors"], row["visits"]) for row in rows(expected)}
    # The last five minutes, every minute.
    assert [ending["NZ", f"12:0{minute}"] for minute in range(1, 9)] == [*[(1, 2)] * 3, *[(2, 3)] * 2, *[(1, 1)] * 3]
    assert [ending.get(("DE", f"12:0{minute}")) for minute in (3, 4, 8, 9)] == [None, (1, 1), (1, 1), None]


def test_a_service_without_any_duration_has_no_slowest_one() -> None:
    def event(service: str, level: str, millis: int | None, clock: str) -> dict[str, object]:
        return {"service": service, "level": level, "millis": millis, "at": _at(clock)}

    events = [
        event("search", "INFO", None, "12:00:00"),
        event("search", "ERROR", None, "12:00:09"),
        event("search", "ERROR", 7, "12:00:10"),
        event("search", "INFO", 40, "12:00:19"),
    ]
    expected = log_processing.expect(recorded(log_processing.TOPIC, events))
    assert [(row["events"], row["errors"], row["slowest_ms"]) for row in rows(expected, "window_start")] == [(2, 1, None), (2, 1, 40)]


GENERATORS: dict[str, Callable[[int], Iterator[Record]]] = {
    "impressions": region_impressions.impressions,
    "sensors": sensor_average.readings,
    "visits": visitors_by_country.visits,
    "log": log_processing.log,
}


@pytest.mark.parametrize("name", GENERATORS)
def test_traffic_comes_out_of_order_some_of_it_broken_and_ends_with_a_flush_in_each_partition(name: str) -> None:
    records = list(GENERATORS[name](4))
    assert records == list(GENERATORS[name](4)), "a generator has to give the same whenever it is asked"
    assert [record.partition for record in records if record.flush] == [0, 1, 2, 3]
    assert all(record.flush for record in records[-4:])
    times = [moment for record in records[:-4] if (moment := _time(record)) is not None]
    assert 0 < len(records) - 4 - len(times) < 100, "some records are no JSON"
    behind_s = [(latest - moment).total_seconds() for latest, moment in zip(_latest(times), times, strict=True)]
    assert sum(0 < seconds <= 20 for seconds in behind_s) > len(times) / 2
    assert sum(seconds > 30 for seconds in behind_s) > 50


def _time(record: Record) -> datetime | None:
    try:
        body = json.loads(record.value or b"")
    except ValueError:
        return None
    return datetime.fromisoformat(body["at"]) if "at" in body else datetime.fromtimestamp(body["timestamp"] / 1000, UTC)


def _latest(times: list[datetime]) -> Iterator[datetime]:
    latest = times[0]
    for moment in times:
        latest = max(latest, moment)
        yield latest
