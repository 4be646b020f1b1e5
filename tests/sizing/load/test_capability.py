"""The load that a plan sustains, and the effect of losing nodes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.sizing.load.capability import Running, capability, curves
from penstock.sizing.load.checkpoint_interval import checkpoint_interval
from penstock.sizing.load.load import Load
from penstock.sizing.load.spot_loss import SpotFleet, drain, loss
from tests.sizing.load.loads import LOADS
from tests.sizing.load_cases import case

LOAD = Load(events_per_s=100_000.0, event_bytes=240, events_per_slot_per_s=12_000.0)
FLEET = SpotFleet(executors=4, slots_per_executor=4, parallelism=16, nodes=4)


def test_the_highest_load_is_the_one_whose_target_is_the_capacity() -> None:
    result = capability(LOAD, Running(tasks=14))
    assert result.capacity_events_per_s == 168_000
    assert result.sustained_peak_events_per_s == pytest.approx(168_000 / (1 / 6 + 1 / 0.7))
    assert result.catch_up_s == pytest.approx(30_000_000 / 68_000)
    assert result.binding == "target rate"


def test_a_small_batch_limit_is_what_holds_a_plan() -> None:
    result = capability(LOAD, Running(tasks=14, trigger_s=10.0, max_offsets_per_trigger=1_100_000))
    assert (result.binding, result.drain_events_per_s) == ("batch limit", 110_000)
    assert result.sustained_peak_events_per_s == pytest.approx(110_000 * 6 / 7)
    assert result.catch_up_s == pytest.approx(3000)


def test_what_processes_less_than_comes_never_catches_up() -> None:
    result = capability(LOAD, Running(tasks=8))
    assert result.catch_up_s is None
    assert result.sustained_events_per_s < LOAD.events_per_s


def test_curves_rise_with_the_executors_and_the_catch_up_falls() -> None:
    points = curves(LOAD, 4, range(1, 9))
    assert [point.executors for point in points] == list(range(1, 9))
    assert [point.capacity_events_per_s for point in points] == [48_000 * count for count in range(1, 9)]
    times = [point.catch_up_s for point in points]
    assert times[:2] == [None, None]
    assert all(later is not None and earlier is not None and later < earlier for earlier, later in pairwise(times[2:]))


def test_one_of_four_nodes_leaves_three_quarters_of_the_capacity() -> None:
    result = loss(LOAD, FLEET, 1)
    assert (result.lost_executors, result.left_events_per_s) == (1, 144_000)
    assert (result.stall_s, result.short_s) == (10, 80)
    assert result.lag_events == 100_000 * 10
    assert result.recovery_s == pytest.approx(1_000_000 / 92_000)


def test_two_of_four_nodes_lag_until_there_are_new_ones() -> None:
    result = loss(LOAD, FLEET, 2)
    assert result.lag_events == 100_000 * 10 + 4_000 * 70
    assert result.lag_s == pytest.approx(12.8)


def test_with_all_the_nodes_nothing_is_processed_until_there_are_new_ones() -> None:
    result = loss(LOAD, FLEET, 9)
    assert (result.lost_nodes, result.lost_executors, result.left_events_per_s) == (4, 4, 0)
    assert result.lag_events == 100_000 * 90


def test_lost_state_is_read_again() -> None:
    stateful = FLEET.model_copy(update={"state_bytes": 4 * 85_000_000 * 12 * 5})
    assert loss(LOAD, stateful, 1).stall_s == pytest.approx(15)


def test_without_a_loss_there_is_no_lag() -> None:
    result = loss(LOAD, FLEET, 0)
    assert (result.lost_executors, result.lag_events, result.recovery_s) == (0, 0, 0)


def test_a_drain_is_bounded_by_the_grace_period_and_not_by_the_notice() -> None:
    assert drain(10).available_s == 0
    assert not drain(10).fits
    assert drain(10, decommission=True).fits
    long = drain(40, blocks_s=5, decommission=True)
    assert (long.fits, long.available_s, long.grace_s) == (False, 30, 45)
    assert drain(45, decommission=True, grace_s=45).fits
    assert drain(111, decommission=True, grace_s=600).grace_s is None


def test_the_checkpoint_interval_is_that_of_the_known_answer() -> None:
    asked, expected = case("Y1")
    result = checkpoint_interval(asked["p_month"], asked["nodes"], asked["ckpt_cost_s"])
    assert round(result.job_mtbf_h, 2) == expected["job_mtbf_h"]
    assert (round(result.young_s, 1), round(result.daly_s, 1)) == (expected["young_s"], expected["daly_s"])


@given(load=LOADS, tasks=st.integers(1, 10_000))
def test_more_tasks_never_sustain_less(load: Load, tasks: int) -> None:
    less, more = capability(load, Running(tasks=tasks)), capability(load, Running(tasks=tasks + 1))
    assert more.sustained_events_per_s >= less.sustained_events_per_s * (1 - 1e-9)
    assert less.catch_up_s is None or (more.catch_up_s is not None and more.catch_up_s <= less.catch_up_s * (1 + 1e-9))


@given(load=LOADS, nodes=st.integers(1, 50), lost=st.integers(0, 60), executors=st.integers(1, 200))
def test_losing_more_never_lags_less(load: Load, nodes: int, lost: int, executors: int) -> None:
    # After a partial loss the remaining slots read the lost state, after a total loss all the new ones do, which may be sooner.
    assume(lost + 1 < nodes or lost >= nodes)
    fleet = SpotFleet(executors=executors, slots_per_executor=2, parallelism=2 * executors, nodes=nodes, state_bytes=load.state_bytes)
    assert loss(load, fleet, lost + 1).lag_events >= loss(load, fleet, lost).lag_events * (1 - 1e-9)
