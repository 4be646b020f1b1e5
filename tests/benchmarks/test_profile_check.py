from __future__ import annotations

from benchmarks.profile_check import _table, _together
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT
from penstock.sizing.load.observation import MicroBatch, SlotsRun

SPEC = ROOT / "jobs/specs/sensor_average.yaml"


def run(slots: int, rate: float, busy: float) -> SlotsRun:
    return SlotsRun(
        slots,
        [
            MicroBatch(rows, 0.5 + rows / rate, busy * (0.5 + rows / rate), 0.1 * (0.5 + rows / rate))
            for rows in (30_000, 29_000, 31_000, 3_000)
        ],
    )


def test_the_table_has_what_was_predicted_what_was_measured_and_how_far_they_are_apart() -> None:
    profiled = [run(1, 10_000, 1.0), run(2, 18_000, 1.8)]
    head, columns, *rows = _table(load(SPEC), profiled, [run(1, 10_000, 1.0), run(2, 20_000, 1.8), run(4, 18_000, 1.8)])
    assert head.startswith("sensor-average on ") and "10,000 events/s a slot" in head and "0.50 s without rows" in head
    assert columns.split() == ["slots", "predicted", "measured", "quartiles", "difference", "busy", "cores"]
    cells = [row.split() for row in rows]
    assert [(row[0], row[2]) for row in cells] == [("1", "10,000"), ("2", "20,000"), ("4", "18,000")]
    assert cells[0][1] == "10,000" and cells[0][-2] == "+0.0%"
    # Two slots are what the cores compute, and four are not more.
    assert cells[1][1] == cells[2][1]


def test_the_rounds_of_a_number_of_slots_are_one_run() -> None:
    two = _together([run(1, 10_000, 1.0), run(2, 18_000, 1.8), run(1, 12_000, 1.0), run(2, 18_000, 1.8)])
    assert [(one.slots, len(one.batches)) for one in two] == [(1, 8), (2, 8)]
    assert 10_000 < two[0].events_per_s(0.5).typical < 12_000
