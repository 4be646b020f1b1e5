"""A profile as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.jobs.spec.job_profile import JobProfile, ProfiledRun
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, facts, table
from penstock.sizing.load.measured_job import CalibratedMachine
from penstock.sizing.load.spread import Spread

_COLUMNS = [
    Column("slots", right=True),
    Column("events/s", right=True),
    Column("from - to", right=True),
    Column("micro-batches", right=True),
    Column("busy cores", right=True),
    Column("of the broker and S3", right=True),
]


def render(profile: JobProfile, path: Path, screen: Screen) -> str:
    """The profile as text.

    Args:
        profile: the profile.
        path: of its file.
        screen: where it is printed.
    """
    rows = [_row(run) for run in profile.runs]
    lines = [f"{profile.job}: {profile.measured.machines_text}", "", *table(_COLUMNS, rows, screen), ""]
    return "\n".join([*lines, *facts([*_facts(profile), ("file", str(path))], screen)]) + "\n"


def machine_text(machine: CalibratedMachine) -> str:
    """A calibrated machine in a line."""
    return f"{machine.name}, {machine.cores} cores: {_spread(machine.events_per_cpu_s)} records of the calibration per CPU second"


def _facts(profile: JobProfile) -> Iterator[tuple[str, str]]:
    measured = profile.measured
    yield "slot", f"{_spread(measured.events_per_slot_per_s)} events/s"
    if measured.events_per_cpu_s is not None:
        yield "CPU", f"{_spread(measured.events_per_cpu_s)} events per CPU second"
    if measured.batch_overhead_s is not None:
        yield "batch", f"{_spread(measured.batch_overhead_s, 2)} s without rows"
    if measured.restart_s is not None:
        yield "restart", f"{_spread(measured.restart_s, 1)} s from the end of a driver to the first commit of the next"
    if measured.bytes_per_key is not None:
        rows = "" if profile.state_rows is None else f", {profile.state_rows:,} rows at the end"
        yield "state", f"{_spread(measured.bytes_per_key)} bytes a row with its key{rows}"
    for machine in ([measured.machine] if measured.machine else []) + list(measured.calibrated):
        yield "machine", machine_text(machine)


def _row(run: ProfiledRun) -> list[str]:
    rate = run.events_per_s
    return [
        f"{run.slots}",
        f"{rate.typical:,.0f}",
        f"{rate.low:,.0f} - {rate.high:,.0f}",
        f"{run.micro_batches}",
        _cores(run.busy_cores),
        _cores(run.others_busy_cores),
    ]


def _cores(busy: float | None) -> str:
    return "-" if busy is None else f"{busy:.2f}"


def _spread(spread: Spread, digits: int = 0) -> str:
    if spread.low == spread.high:
        return f"{spread.typical:,.{digits}f}"
    return f"{spread.typical:,.{digits}f} ({spread.low:,.{digits}f} to {spread.high:,.{digits}f})"
