"""Loads of any size, for properties that must hold for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.sizing.load.load import Load
from penstock.sizing.load.measured_job import CalibratedMachine, MeasuredJob
from penstock.sizing.load.profile import Profile, ProfilePoint
from penstock.sizing.load.spread import Spread


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Measured points, including disturbed ones."""
    slots = sorted(draw(st.sets(st.integers(1, 2000), min_size=1, max_size=6)))
    rate = st.floats(1, 1e6)
    return Profile(points=tuple(ProfilePoint(slots=count, events_per_second=draw(rate)) for count in slots))


@st.composite
def measured_jobs(draw: st.DrawFn) -> MeasuredJob:
    """What `penstock profile` may have measured, on one machine or scaled to others."""
    rates = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8).map(Spread.of)
    machines = rates.map(lambda rate: CalibratedMachine(name="m7g.large", cores=2, events_per_cpu_s=rate))
    machine = draw(st.none() | machines)
    return MeasuredJob(
        events_per_slot_per_s=draw(rates),
        events_per_cpu_s=draw(st.none() | rates),
        machine=machine,
        calibrated=() if machine is None else tuple(draw(st.lists(machines, max_size=3))),
    )


@st.composite
def loads(draw: st.DrawFn, most_events_per_s: float = 1e8) -> Load:
    """Loads with a given or a measured throughput."""
    given = draw(st.sampled_from(["assumed", "points", "measured"]))
    return Load(
        events_per_s=draw(st.floats(0.1, most_events_per_s)),
        event_bytes=draw(st.integers(1, 1_000_000)),
        events_per_slot_per_s=draw(st.floats(0.1, 1e6)) if given == "assumed" else None,
        profile=draw(profiles()) if given == "points" else None,
        measured=draw(measured_jobs()) if given == "measured" else None,
        cores_per_slot=draw(st.floats(0.1, 4)),
        peak_factor=draw(st.floats(1, 10)),
        utilisation=draw(st.floats(0.05, 1)),
        restart_s=draw(st.floats(0, 3600)),
        catch_up_s=draw(st.floats(1, 86_400)),
        backlog_events=draw(st.integers(0, 10**10)),
        retention_h=draw(st.floats(0.1, 1000)),
        fan_out=draw(st.floats(1, 5)),
        replication=draw(st.integers(1, 3)),
        state_keys=draw(st.integers(0, 10**10)),
        bytes_per_key=draw(st.integers(0, 10_000)),
        stateful_operators=tuple(draw(st.lists(st.sampled_from(["join", "other"]), max_size=3))),
        batch_overhead_s=draw(st.floats(0, 2)),
    )


LOADS = loads()
