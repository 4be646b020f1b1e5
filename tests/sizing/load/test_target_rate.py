"""The target rate, and the time to drain a backlog."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.sizing.load.load import Load
from penstock.sizing.load.target_rate import catch_up_s, needed_rate, scaled_parallelism, sustained_rate, target_rate
from tests.sizing.load.loads import LOADS
from tests.sizing.load_cases import case


@pytest.mark.parametrize("name", ["A1", "A2"])
def test_target_and_parallelism_are_those_of_the_known_answers(name: str) -> None:
    asked, expected = case(name)
    load = Load(
        events_per_s=float(asked["input_rate"]),
        event_bytes=100,
        events_per_slot_per_s=12_000.0,
        backlog_events=asked["lag"],
        utilisation=asked.get("util", 0.7),
        catch_up_s=float(asked.get("catch_up_s", 1800)),
        restart_s=float(asked.get("restart_s", 300)),
    )
    assert target_rate(load) == expected["target"]
    assert scaled_parallelism(10, target_rate(load), 120_000) == expected["new_par_from_tpr_120000_at_10"]
    assert load.slots_for(needed_rate(load)) == expected["new_par_from_tpr_120000_at_10"]


def test_the_peak_counts_not_the_average() -> None:
    load = Load(events_per_s=1000.0, event_bytes=1, events_per_slot_per_s=1.0, peak_factor=3.0)
    assert target_rate(load) == round(3000 * 300 / 1800 + 3000 / 0.7)


def test_a_backlog_goes_with_what_is_spare() -> None:
    assert catch_up_s(30_000_000, 159_524, 100_000) == pytest.approx(504.0, abs=0.1)
    assert catch_up_s(0, 1, 1) == 0
    assert catch_up_s(1, 1, 1) is None
    assert catch_up_s(1, 1, 2) is None


@given(load=LOADS)
def test_what_is_sustained_is_the_inverse_of_what_is_needed(load: Load) -> None:
    assert sustained_rate(load, needed_rate(load)) >= load.peak_events_per_s * (1 - 1e-9)
