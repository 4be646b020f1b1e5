from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from benchmarks.streaming.workload import BROKEN, PARTITIONS
from benchmarks.streaming.workloads import WORKLOADS

RECORDS = 5_000
OUT_OF_ORDERNESS_MS = {"10s": 10_000, "6h": 6 * 3_600_000}
INPUTS = [(name, source) for name, workload in WORKLOADS.items() for source, given in workload.inputs.items() if given.time]


def _parsed(name: str, source: str) -> Iterator[dict[str, Any]]:
    for value in WORKLOADS[name].inputs[source].records(RECORDS):
        if value != BROKEN:
            yield json.loads(value)


@pytest.mark.parametrize(("name", "source"), INPUTS)
def test_no_record_is_late(name: str, source: str) -> None:
    """The contestants judge by different watermarks: what is late for one of them would be a row for another."""
    field = WORKLOADS[name].inputs[source].time or ""
    bound_ms = OUT_OF_ORDERNESS_MS[WORKLOADS[name].app_inputs[source]["time"]["outOfOrderness"]]
    times = [_ms(record[field]) for record in _parsed(name, source)]
    latest = 0
    for time in times:
        assert time > latest - bound_ms
        latest = max(latest, time)
    # The last record of each partition closes what is open.
    assert len({*times[-PARTITIONS:]}) == 1
    assert times[-1] > max(times[:-PARTITIONS]) + 24 * 3_600_000


def _ms(value: str | int) -> int:
    return value if isinstance(value, int) else int(datetime.fromisoformat(value).timestamp() * 1000)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_rows_to_come_are_computed_from_the_same_records_each_time(name: str) -> None:
    workload = WORKLOADS[name]
    expected = workload.expected(RECORDS)
    assert expected == workload.expected(RECORDS)
    assert expected
    values = [list(given.records(RECORDS)) for given in workload.inputs.values()]
    assert values == [list(given.records(RECORDS)) for given in workload.inputs.values()]


def test_broken_records_are_in_no_expected_row() -> None:
    """Counted once more, from what is written to the topic."""
    views = [record for record in _parsed("files", "events") if record["event_type"] == "view"]
    assert WORKLOADS["files"].expected(RECORDS).total() == len(views)
    assert sum(json.loads(row)["views"] for row in WORKLOADS["ads"].expected(RECORDS)) == len(views)
    impressions = [record for record in _parsed("tumbling", "impressions") if record["region_code"] != "flush"]
    for name in ("tumbling", "sessions"):
        rows = [json.loads(row) for row in WORKLOADS[name].expected(RECORDS).elements()]
        assert sum(row["events"] for row in rows) == len(impressions)
        assert sum(row["total_impressions"] for row in rows) == sum(record["impressions"] for record in impressions)
