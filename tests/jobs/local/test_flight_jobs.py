"""Expectations of the three jobs on January's departures, for a few rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from penstock.jobs.local import delay_chains, flight_delays, flights_weather
from penstock.jobs.local.departures import of_january
from penstock.jobs.local.flights import flights_table
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT


def _minutes(values: list[int | None]) -> pd.Series[Any]:
    return pd.Series(values, dtype="Int64").astype(object)


def test_delays_are_counted_by_carrier_and_scheduled_hour() -> None:
    table = pd.DataFrame(
        {
            "carrier": ["UA", "UA", "UA", "AA", "UA"],
            "scheduled_at": [f"2013-01-01T{time}:00Z" for time in ("10:00", "10:59", "10:30", "10:30", "11:00")],
            "dep_delay": _minutes([15, -3, None, None, 14]),
        }
    )
    ten, eleven, twelve = (f"2013-01-01T{hour}:00:00.000Z" for hour in (10, 11, 12))
    window = {"window_start": ten, "window_end": eleven}
    assert list(flight_delays.delays(table)) == [
        {"carrier": "AA", **window, "departures": 1, "cancelled": 1, "delayed": 0, "minutes_late": None, "longest": None},
        {"carrier": "UA", **window, "departures": 3, "cancelled": 1, "delayed": 1, "minutes_late": 15, "longest": 15},
        {
            "carrier": "UA",
            "window_start": eleven,
            "window_end": twelve,
            "departures": 1,
            "cancelled": 0,
            "delayed": 0,
            "minutes_late": 14,
            "longest": 14,
        },
    ]


def test_the_totals_of_the_delays_are_those_of_the_file() -> None:
    rows = list(flight_delays.delays(of_january()))
    delays = flights_table().query("month == 1")["dep_delay"]
    totals = {name: sum(int(str(row[name] or 0)) for row in rows) for name in ("departures", "cancelled", "delayed", "minutes_late")}
    assert totals == {
        "departures": len(delays),
        "cancelled": int(delays.isna().sum()),
        "delayed": int((delays >= 15).sum()),
        "minutes_late": int(delays[delays > 0].sum()),
    }


def test_a_plane_finds_the_newest_weather_of_its_airport() -> None:
    planes = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "carrier": "UA",
            "origin": ["EWR", "EWR", "EWR", "JFK"],
            "dest": "ORD",
            "told_at": [f"2013-01-01T{time}:00Z" for time in ("09:59", "10:00", "13:30", "12:00")],
            "dep_delay": _minutes([0, 1, 2, None]),
        }
    )
    hours = pd.DataFrame(
        {
            "origin": ["EWR", "EWR", "JFK"],
            "time_hour": [f"2013-01-01T{hour}:00:00Z" for hour in (10, 11, 9)],
            "temp": [1.0, 2.0, 3.0],
            "visib": 10.0,
            "wind_speed": 5.0,
        }
    )
    joined = [(row["id"], row["weather_hour"], row["temp"]) for row in flights_weather.joined(planes, hours)]
    assert joined == [(1, None, None), (2, "2013-01-01T10:00:00Z", 1.0), (3, "2013-01-01T11:00:00Z", 2.0)]


def test_some_departures_of_january_have_no_weather_yet() -> None:
    rows = list(flights_weather.joined(of_january(), flights_weather.weather_hours()))
    alone = [row for row in rows if row["weather_hour"] is None]
    assert len(rows) == 26_483
    assert 100 < len(alone) < 1_000
    assert {row["origin"] for row in alone} == {flights_weather.SILENT_AIRPORT}


def _event(number: int, at: str, delay: int | None, tailnum: str | None = "N1") -> dict[str, Any]:
    return {"id": number, "told_at": f"2013-01-{at}:00Z", "dep_delay": delay, "tailnum": tailnum}


def test_a_chain_of_delays_ends_on_time_or_when_idle_and_is_emitted_if_it_is_the_longest_so_far() -> None:
    events = [
        _event(1, "01T10:00", 15),
        _event(2, "01T14:00", 20),
        _event(3, "01T15:00", None),
        _event(4, "01T18:00", 14),
        # As long as the first one: not emitted.
        _event(5, "02T10:00", 30),
        _event(6, "05T10:00", 30),
        # A minute more than three days later.
        _event(7, "08T10:01", 40),
        _event(8, "08T11:00", 50),
        _event(9, "08T12:00", 60),
        _event(10, "08T12:00", 90, tailnum="N2"),
        _event(11, "08T12:00", 90, tailnum=None),
    ]
    first = {"departures": 2, "minutes": 35, "first_at": "2013-01-01T10:00:00Z", "last_at": "2013-01-01T14:00:00Z", "ended": "on time"}
    second = {"departures": 3, "minutes": 150, "first_at": "2013-01-08T10:01:00Z", "last_at": "2013-01-08T12:00:00Z", "ended": "silence"}
    for given in (events, events[::-1]):
        assert list(delay_chains.longest_so_far(given)) == [{"tailnum": "N1", **first}, {"tailnum": "N1", **second}]


def test_the_expectations_have_the_clocks_and_limits_of_the_specs() -> None:
    specs = {name: load(ROOT / f"jobs/specs/{name}.yaml").job.spec for name in ("flight_delays", "flights_weather", "delay_chains")}
    bounds = {name: {source.time.out_of_orderness for source in spec.sources.values() if source.time} for name, spec in specs.items()}
    assert bounds == {"flight_delays": {86_400_000}, "flights_weather": {600_000}, "delay_chains": {600_000}}
    assert dict(specs["flight_delays"].parameters) == {"delayed_minutes": flight_delays.DELAYED_MINUTES}
    assert dict(specs["delay_chains"].parameters) == {
        "delayed_minutes": delay_chains.DELAYED_MINUTES,
        "silence": f"{delay_chains.SILENCE.days}d",
    }
