"""Rates of a job from its micro-batches."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.load.observation import MicroBatch, Rates, SlotsRun, cores_for_job, predicted_events_per_s, rates_of
from penstock.sizing.load.spread import Spread


def run(
    slots: int,
    rate: float,
    cpu_rate: float,
    *,
    cores: float = 100.0,
    fixed_s: float = 0.4,
    fixed_cpu_s: float = 0.0,
    seed: int = 0,
    noise: float = 0.0,
) -> SlotsRun:
    """Micro-batches of a job whose slots and CPU seconds process so much, on a machine with so many cores."""
    drawn = random.Random(seed)
    whole = min(slots * rate, cores * cpu_rate)
    batches = []
    for rows in (100_000, 90_000, 8_000, 110_000, 95_000, 12_000, 105_000, 100_000, 5_000, 98_000):
        by = drawn.uniform(1 - noise, 1 + noise)
        batches.append(MicroBatch(rows, (fixed_s + rows / whole) * by, (fixed_cpu_s + rows / cpu_rate) * by, 0.0))
    return SlotsRun(slots, batches)


@given(
    rate=st.floats(100, 100_000), cpu=st.floats(0.4, 1.5), fixed_s=st.floats(0.05, 1), seed=st.integers(0, 100), noise=st.floats(0, 0.04)
)
def test_the_rates_of_a_job_are_found_again_from_noisy_micro_batches(
    rate: float, cpu: float, fixed_s: float, seed: int, noise: float
) -> None:
    # A slot is busy for as much CPU as it has, or less.
    runs = [run(slots, rate, rate / cpu, fixed_s=fixed_s, seed=seed + slots, noise=noise) for slots in (1, 2, 4)]
    found = rates_of(runs)
    assert found.events_per_cpu_s is not None
    assert found.events_per_cpu_s.typical == pytest.approx(rate / cpu, rel=0.06)
    for one in runs:
        most = max(one.batches)
        predicted_s = found.batch_overhead_s.typical + most.rows / predicted_events_per_s(found, one.slots, 100)
        assert predicted_s == pytest.approx(fixed_s + most.rows / (one.slots * rate), rel=0.15)


def test_slots_beyond_the_cores_bring_no_more_than_the_cores_compute() -> None:
    runs = [run(slots, 1_000, 800, cores=2) for slots in (1, 2, 4)]
    found = rates_of(runs)
    assert found.events_per_slot_per_s.typical == pytest.approx(1_000, rel=0.01)
    assert [predicted_events_per_s(found, slots, 2) for slots in (1, 2, 4)] == pytest.approx([1_000, 1_600, 1_600], rel=0.01)


def test_cpu_time_that_a_micro_batch_takes_without_rows_is_not_that_of_its_rows() -> None:
    runs = [run(slots, 48_000, 50_000, cores=1.7, fixed_s=1.0, fixed_cpu_s=1.2) for slots in (1, 2)]
    found = rates_of(runs)
    assert found.events_per_cpu_s is not None
    assert found.events_per_cpu_s.typical == pytest.approx(50_000, rel=0.01)
    measured = runs[1].events_per_s(found.batch_overhead_s.typical).typical
    assert predicted_events_per_s(found, 2, 1.7) == pytest.approx(measured, rel=0.01)


def test_without_cpu_times_slots_alone_are_counted() -> None:
    rates = Rates(Spread.exactly(100), None, Spread.exactly(0))
    assert predicted_events_per_s(rates, 8, 1) == 800
    batches = [MicroBatch(10, 1.0), MicroBatch(20, 2.0)]
    assert rates_of([SlotsRun(2, batches)]).events_per_cpu_s is None
    assert SlotsRun(2, batches).busy_cores is None


def test_what_else_is_busy_for_the_job_takes_its_share_of_the_cores() -> None:
    one = SlotsRun(1, [MicroBatch(100, 1.0, cpu_s=0.9, others_cpu_s=0.3)])
    assert cores_for_job(one, 2) == pytest.approx(0.85 * 2 * 0.75)
    assert cores_for_job(SlotsRun(1, [MicroBatch(100, 1.0)]), 2) == 2
    # It has been given more than that.
    assert cores_for_job(SlotsRun(4, [MicroBatch(100, 1.0, cpu_s=1.9, others_cpu_s=0.1)]), 2) == pytest.approx(1.9)


@given(slots=st.integers(1, 500), cores=st.floats(0.5, 500), rate=st.floats(1, 1e6), cpu_rate=st.floats(1, 1e6))
def test_more_slots_and_more_cores_never_predict_less(slots: int, cores: float, rate: float, cpu_rate: float) -> None:
    rates = Rates(Spread.exactly(rate), Spread.exactly(cpu_rate), Spread.exactly(0))
    predicted = predicted_events_per_s(rates, slots, cores)
    assert 0 < predicted <= predicted_events_per_s(rates, slots + 1, cores)
    assert predicted <= predicted_events_per_s(rates, slots, cores + 1)


def test_micro_batches_that_took_no_longer_than_the_fixed_part_have_a_finite_rate() -> None:
    one = SlotsRun(1, [MicroBatch(100, 0.1), MicroBatch(100, 0.1)])
    assert one.events_per_s(5.0).typical == pytest.approx(2_000)
