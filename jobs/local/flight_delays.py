"""Input and expectation of flight_delays: the departures of January 2013, and their delays computed by pandas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pandas as pd

from penstock.jobs.local.departures import of_january
from penstock.jobs.local.departures import records as in_order_of_arrival
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.local.traffic import time_ms

TOPIC = "departures"
HOUR = pd.Timedelta(hours=1)
# A departure counts as delayed from this many minutes, as in the reports of the US Department of Transportation.
DELAYED_MINUTES = 15


def departures(partitions: int) -> Iterator[Record]:
    """The departures of January at the time they leave."""
    yield from in_order_of_arrival(of_january(), partitions, seed=31)


def expect(recording: Recording) -> Expectation:
    """The delays of the file by carrier and scheduled hour, grouped by pandas: no reported departure may be missing."""
    clock = Clock(time_ms("scheduled_at", ("id", "carrier")), bound_ms=24 * 3_600_000, idleness_ms=600_000)
    judged = list(judge(recording, {TOPIC: clock}, strict=False))
    rows = Counter(json.dumps(row, sort_keys=True) for row in delays(of_january()))
    quarantined, late = sum(event.time_ms is None for event in judged), sum(event.late for event in judged)
    return Expectation(rows=rows.total(), quarantined=quarantined, late=late, exact=rows)


def delays(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The expected rows for some departures."""
    minutes = table["dep_delay"].astype("Int64")
    hours = table.assign(
        minutes=minutes,
        late=minutes.clip(lower=0),
        delayed=minutes.ge(DELAYED_MINUTES).fillna(False),
        hour=pd.to_datetime(table["scheduled_at"], utc=True).dt.floor("h"),
    ).groupby(["carrier", "hour"])
    columns = {
        "departures": hours.size(),
        "cancelled": hours.size() - hours["minutes"].count(),
        "delayed": hours["delayed"].sum(),
        "minutes_late": hours["late"].sum(min_count=1),
        "longest": hours["minutes"].max(),
    }
    for (carrier, hour), *values in zip(hours.size().index, *columns.values(), strict=True):
        numbers = {name: None if pd.isna(value) else int(value) for name, value in zip(columns, values, strict=True)}
        yield {"carrier": carrier, "window_start": _text(hour), "window_end": _text(hour + HOUR), **numbers}


def _text(moment: pd.Timestamp) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
