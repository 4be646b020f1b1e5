"""A measured profile of a job, and what it is on other machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.sizing.load.load import Load
from penstock.sizing.load.measured_job import POD_START_S, CalibratedMachine, MeasuredJob
from penstock.sizing.load.spread import Spread

SPREADS = st.lists(st.floats(1, 1e6), min_size=3, max_size=3).map(Spread.of)


def machine(name: str, rate: float) -> CalibratedMachine:
    return CalibratedMachine(name=name, cores=4, events_per_cpu_s=Spread.exactly(rate))


def job(**more: object) -> MeasuredJob:
    return MeasuredJob.model_validate({"events_per_slot_per_s": Spread(low=900, typical=1_000, high=1_100), **more})


def test_a_slot_gets_no_more_than_its_cores_compute() -> None:
    measured = job(events_per_cpu_s=Spread(low=700, typical=800, high=900))
    assert measured.slot_rate(1.0) == Spread(low=700, typical=800, high=900)
    assert measured.slot_rate(0.5).typical == 400
    assert measured.slot_rate(2.0) == measured.events_per_slot_per_s
    assert job().slot_rate(0.5) == measured.events_per_slot_per_s


def test_calibrated_machines_scale_it_from_the_slowest_to_the_fastest() -> None:
    here = machine("here", 50_000)
    assert job(machine=here).speed == Spread.exactly(1.0)
    scaled = job(machine=here, calibrated=(machine("m7g.xlarge", 75_000), machine("m6a.large", 50_000), machine("t3.large", 25_000)))
    assert scaled.speed == Spread(low=0.5, typical=1.0, high=1.5)
    assert scaled.slot_rate(1.0) == Spread(low=450, typical=1_000, high=1_650)
    assert "scaled to m7g.xlarge, m6a.large, t3.large by calibration" in scaled.machines_text


def test_a_restart_that_was_measured_here_has_pods_to_wait_for_in_a_deployment() -> None:
    assert job().planned_restart_s is None
    assert job(restart_s=Spread.exactly(20)).planned_restart_s == 20 + POD_START_S
    assert job(restart_s=Spread.exactly(120), restart_of_deployment=True).planned_restart_s == 120


@pytest.mark.parametrize(
    "given",
    [
        {"events_per_slot_per_s": Spread.exactly(0)},
        {"events_per_cpu_s": Spread.exactly(0)},
        {"calibrated": (machine("m7g.xlarge", 1),)},
    ],
)
def test_rates_of_zero_and_a_scale_without_a_base_are_rejected(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        job(**given)


@given(slot=SPREADS, cpu=SPREADS, cores=st.floats(0.1, 8), ratio=st.floats(0.2, 5))
def test_a_machine_twice_as_fast_plans_half_of_the_slots(slot: Spread, cpu: Spread, cores: float, ratio: float) -> None:
    here = MeasuredJob(events_per_slot_per_s=slot, events_per_cpu_s=cpu, machine=machine("here", 1_000))
    there = here.model_copy(update={"calibrated": (machine("there", 1_000 * ratio),)})
    assert [one.typical_slot_rate(cores) for one in (here, there)] == [one.slot_rate(cores).typical for one in (here, there)]
    assert there.slot_rate(cores).typical == pytest.approx(here.slot_rate(cores).typical * ratio)


@given(slot=SPREADS, cpu=SPREADS, cores=st.floats(0.1, 8), slots=st.integers(1, 1_000))
def test_a_load_with_a_profile_is_one_with_its_typical_slot_rate(slot: Spread, cpu: Spread, cores: float, slots: int) -> None:
    measured = MeasuredJob(events_per_slot_per_s=slot, events_per_cpu_s=cpu)
    load = Load(events_per_s=1_000.0, event_bytes=100, measured=measured, cores_per_slot=cores)
    rate = load.slot_rate
    assert rate is not None
    assert load.throughput(slots) == pytest.approx(load.assuming(rate.typical).throughput(slots))
    fast, slow = load.assuming(rate.high), load.assuming(rate.low)
    assert (fast.slots_for(5_000.0) or 0) <= (load.slots_for(5_000.0) or 10**9) <= (slow.slots_for(5_000.0) or 10**9)


def test_a_load_has_one_throughput() -> None:
    with pytest.raises(ValidationError, match="exactly one of"):
        Load(events_per_s=1.0, event_bytes=1, measured=job(), events_per_slot_per_s=1.0)
