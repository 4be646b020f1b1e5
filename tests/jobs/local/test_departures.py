"""The departures of January as events: all of the file, each reported when the plane leaves."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.jobs.local.departures import FIELDS, UNDERWAY_S, of_january, records
from penstock.jobs.local.recording import Record

PARTITIONS = 3


@pytest.fixture(scope="module")
def fed() -> list[Record]:
    return list(records(of_january(), PARTITIONS, seed=7))


def _events(fed: list[Record]) -> list[dict[str, Any]]:
    events = []
    for record in fed:
        try:
            events.append(json.loads(record.value or b""))
        except ValueError:
            assert not record.flush
    return events


def test_each_departure_is_reported_once_and_some_are_truncated_before(fed: list[Record]) -> None:
    events = [event for event in _events(fed) if event["id"] >= 0]
    assert len(events) == len({event["id"] for event in events}) == 27_004
    assert 10 < len(fed) - PARTITIONS - len(events) < 60
    assert all(list(event) == FIELDS for event in events)


def test_a_departure_is_reported_when_the_plane_leaves_and_a_cancelled_one_at_its_time(fed: list[Record]) -> None:
    events = {event["id"]: event for event in _events(fed)}
    # The first line of the file: 515 in New York, 2 minutes late. Its longest delay: 1,301 minutes.
    assert (events[0]["scheduled_at"], events[0]["dep_delay"], events[0]["told_at"]) == ("2013-01-01T10:15:00Z", 2, "2013-01-01T10:17:00Z")
    for event in events.values():
        late = timedelta(minutes=event["dep_delay"] or 0)
        assert datetime.fromisoformat(event["told_at"]) - datetime.fromisoformat(event["scheduled_at"]) == late
    assert max(event["dep_delay"] or 0 for event in events.values()) == 1_301
    assert sum(event["dep_delay"] is None for event in events.values()) == 521 + 1


def test_the_events_arrive_in_the_order_of_their_moments_but_for_the_network(fed: list[Record]) -> None:
    moments = [datetime.fromisoformat(event["told_at"]) for event in _events(fed)]
    greatest = moments[0]
    for moment in moments:
        assert greatest - moment <= timedelta(seconds=UNDERWAY_S)
        greatest = max(greatest, moment)


def test_each_partition_ends_with_a_flush_event_that_is_later_than_all(fed: list[Record]) -> None:
    assert [record.flush for record in fed[-PARTITIONS:]] == [True] * PARTITIONS
    assert [record.partition for record in fed[-PARTITIONS:]] == list(range(PARTITIONS))
    assert sum(record.flush for record in fed) == PARTITIONS
