"""The two jobs of the quickstart as workloads: their records, and the rows that must come out, computed without a stream processor."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any

from benchmarks.streaming import credit_service
from benchmarks.streaming.workload import FLUSH_MS, PARTITIONS, Input, Rows, Workload, closed, is_kept, iso, moments, row
from penstock.jobs.local import flights

# A quarter of the tokens are in both topics.
_TOKENS_A_PAIR = 4
_PAIR_WITHIN_MS = 60_000
_DEPARTURES, _WEATHER_ROWS = 336_776, 26_115


def _tokens(records: int) -> Iterator[tuple[int, int, float]]:
    """Token, event time and amount of each event of topic A."""
    for number, (moment, random_) in enumerate(moments(records, max(60.0, records / 500), 8)):
        yield number, moment, random_.randrange(1, 4_000) / 4


def _limits(records: int) -> list[tuple[int, int, float]]:
    """Token, event time and credit limit of each event of topic B, in the order of event time."""
    random_ = random.Random(9)
    events = [
        (number if number % _TOKENS_A_PAIR == 0 else records + number, moment + random_.randrange(90_000), random_.randrange(4_000) / 4)
        for number, moment, _ in _tokens(records)
    ]
    return sorted(events, key=lambda event: event[1])


def _events_a(records: int) -> Iterator[bytes]:
    made = (
        f'{{"token":"token-{token:08d}","event_timestamp":"{iso(moment)}","user_id":"user-{token % 9973}","amount":{amount}}}'.encode()
        for token, moment, amount in _tokens(records)
    )
    return closed(made, f'{{"token":"flush-a","event_timestamp":"{iso(FLUSH_MS)}"}}'.encode())


def _events_b(records: int) -> Iterator[bytes]:
    made = (
        f'{{"token":"token-{token:08d}","event_timestamp":"{iso(moment)}","credit_limit":{limit}}}'.encode()
        for token, moment, limit in _limits(records)
    )
    return closed(made, f'{{"token":"flush-b","event_timestamp":"{iso(FLUSH_MS)}"}}'.encode())


def _user_data(records: int) -> Rows:
    a = {token: (moment, amount) for number, (token, moment, amount) in enumerate(_tokens(records)) if is_kept(number)}
    rows: Rows = Counter()
    for number, (token, moment, limit) in enumerate(_limits(records)):
        if not is_kept(number) or token not in a:
            continue
        at, amount = a[token]
        if abs(moment - at) <= _PAIR_WITHIN_MS:
            user_data = {"token": f"token-{token:08d}", "user_id": f"user-{token % 9973}", "amount": amount, "credit_limit": limit}
            times = {"a_timestamp": iso(at), "b_timestamp": iso(moment)}
            rows[row(**user_data, **times, new_limit=credit_service.new_limit(limit, amount))] += 1
    return rows


def _departures(records: int) -> Iterator[bytes]:
    *arrivals, flush = _arrivals("flights")
    yield from islice(arrivals, records)
    yield from [flush] * PARTITIONS


def _weather(_: int) -> Iterator[bytes]:
    *arrivals, flush = _arrivals("weather")
    yield from arrivals
    yield from [flush] * PARTITIONS


@cache
def _arrivals(source: str) -> tuple[bytes, ...]:
    """The records of a source in the order of arrival, and one that closes what is open."""
    records = list(flights.departures(1) if source == "flights" else flights.weather(1))
    assert [record.flush for record in records] == [False] * (len(records) - 1) + [True]
    return tuple(record.value for record in records if record.value is not None)


def _with_weather(records: int) -> Rows:
    weather: dict[tuple[str, datetime], list[Mapping[str, Any]]] = defaultdict(list)
    for one in map(json.loads, _arrivals("weather")[:-1]):
        weather[one["origin"], datetime.fromisoformat(one["time_hour"])].append(one)
    rows: Rows = Counter()
    for departure in map(json.loads, _arrivals("flights")[:-1][:records]):
        hour = datetime.fromisoformat(departure["time_hour"])
        near = [one for shift in (-1, 0, 1) for one in weather.get((departure["origin"], hour + timedelta(hours=shift)), ())]
        fields = {**departure, "distance": float(departure["distance"])}
        for one in near or [{}]:
            rows[row(**fields, weather_hour=one.get("time_hour"), temp=one.get("temp"), precip=one.get("precip"))] += 1
    return rows


_WITHIN_10_S = {"time": {"field": "event_timestamp", "outOfOrderness": "10s", "idleness": "2m"}}
_WITHIN_6_H = {"field": "time_hour", "outOfOrderness": "6h", "idleness": "10m"}

USER_CREDIT = Workload(
    "user_credit",
    "events of two services within a minute of each other, a call for each pair, to files on S3",
    {
        "a": Input("token STRING, event_timestamp STRING, user_id STRING, amount DOUBLE", "event_timestamp", _events_a),
        "b": Input("token STRING, event_timestamp STRING, credit_limit DOUBLE", "event_timestamp", _events_b),
    },
    _user_data,
    "penstock.jobs.apps.user_credit",
    100_000,
    app_inputs={"a": _WITHIN_10_S, "b": _WITHIN_10_S},
    output="files",
    side_outputs=("errors", "late", "alerts"),
    service="credit-service",
)
FLIGHTS = Workload(
    "flights",
    "departures with the weather within an hour, by one of three airports, to files on S3",
    {
        "flights": Input(
            "id BIGINT, origin STRING, dest STRING, carrier STRING, flight BIGINT, distance DOUBLE, time_hour STRING",
            "time_hour",
            _departures,
        ),
        "weather": Input("origin STRING, time_hour STRING, temp DOUBLE, precip DOUBLE", "time_hour", _weather),
    },
    _with_weather,
    "penstock.jobs.apps.flights",
    _DEPARTURES,
    app_inputs={
        "flights": {"time": _WITHIN_6_H},
        # As far in time as the departures of a micro-batch.
        "weather": {"kafka": {"maxOffsetsPerTrigger": _WEATHER_ROWS // 12}, "time": _WITHIN_6_H},
    },
    output="files",
)
