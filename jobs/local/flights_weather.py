"""Input and expectation of flights_weather: January's departures, the hourly weather, and their join by pandas' merge_asof."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pandas as pd

from penstock.jobs.local.departures import of_january
from penstock.jobs.local.departures import records as in_order_of_arrival
from penstock.jobs.local.flights import FLUSH_TIME, weather_table
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.local.traffic import time_ms

DEPARTURES, WEATHER = "departures", "weather-hours"
# An airport without weather for the first day, so that some departures have no match.
SILENT_AIRPORT, SILENT_UNTIL = "LGA", "2013-01-02T05:00:00Z"
_BOUND_MS, _IDLENESS_MS = 600_000, 600_000


def departures(partitions: int) -> Iterator[Record]:
    """The departures of January at the time they leave."""
    yield from in_order_of_arrival(of_january(), partitions, seed=32)


def weather(partitions: int) -> Iterator[Record]:
    """The weather of January by airport and hour, in the order of the hours."""
    hours = weather_hours().sort_values(["time_hour", "origin"])
    for turn, hour in enumerate(hours.to_dict("records")):
        value = {str(name): None if pd.isna(value) else value for name, value in hour.items()}
        yield Record(json.dumps(value).encode(), partition=turn % partitions)
    for partition in range(partitions):
        yield Record(json.dumps({"origin": "flush", "time_hour": FLUSH_TIME}).encode(), partition=partition, flush=True)


def expect(recording: Recording) -> Expectation:
    """Each departure with the latest weather of its airport at that time."""
    planes = Clock(time_ms("told_at", ("id", "origin")), _BOUND_MS, _IDLENESS_MS)
    hours = Clock(time_ms("time_hour", ("origin",)), _BOUND_MS, _IDLENESS_MS)
    judged = list(judge(recording, {DEPARTURES: planes, WEATHER: hours}))
    rows = Counter(json.dumps(row, sort_keys=True) for row in joined(of_january(), weather_hours()))
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def weather_hours() -> pd.DataFrame:
    """The rows of the weather input."""
    table = weather_table()
    silent = (table["origin"] == SILENT_AIRPORT) & (table["time_hour"] < SILENT_UNTIL)
    return table.loc[(table["month"] == 1) & ~silent, ["origin", "time_hour", "temp", "visib", "wind_speed"]]


def joined(planes: pd.DataFrame, hours: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The expected rows; cancelled departures have none."""
    left = planes[planes["dep_delay"].notna()].assign(at=lambda some: pd.to_datetime(some["told_at"], utc=True)).sort_values("at")
    right = hours.assign(at=pd.to_datetime(hours["time_hour"], utc=True)).rename(columns={"time_hour": "weather_hour"}).sort_values("at")
    for row in pd.merge_asof(left, right, on="at", by="origin").to_dict("records"):
        wanted = ("id", "carrier", "origin", "dest", "told_at", "dep_delay", "weather_hour", "temp", "visib", "wind_speed")
        yield {name: None if pd.isna(row[name]) else row[name] for name in wanted}
