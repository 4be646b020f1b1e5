"""Whether a profile predicts a job: ``python -m benchmarks.profile_check [SPEC...] [--rounds N] [--seconds N] [--warm-up N]``.

Each job is measured at one slot and at as many as the machine has cores, as `penstock profile` does by default. What that predicts for 1, 2
and 4 slots is compared with a second measurement, of drivers, topics and checkpoints of its own. The two take turns, so that a machine
that becomes slower does so for both.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.spec import SpecFile, load
from penstock.scripts import layout
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.profiling import machine
from penstock.scripts.profiling.local_profile import Effort, LocalProfile, Measurement
from penstock.scripts.progress import Steps
from penstock.sizing.load.observation import SlotsRun, cores_for_job, predicted_events_per_s, rates_of

_SPECS = ("jobs/specs/sensor_average.yaml", "jobs/specs/error_logs.yaml")
_CHECKED = (1, 2, 4)


def main() -> None:
    """Prints a table for each job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="*", type=Path, default=[layout.ROOT / spec for spec in _SPECS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--warm-up", type=float, default=15.0)
    options = parser.parse_args()
    for path in options.specs:
        spec = load(path)
        profiled: list[SlotsRun] = []
        again: list[SlotsRun] = []
        for _ in range(options.rounds):
            profiled += _measured(spec, sorted({1, machine.cores()}), options.seconds, options.warm_up).runs
            again += _measured(spec, _CHECKED, options.seconds, options.warm_up).runs
        print("\n".join(_table(spec, _together(profiled), _together(again))), flush=True)


def _measured(spec: SpecFile, slots: Sequence[int], seconds: float, warm_up_s: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="penstock-profile-check-") as folder:
        effort = Effort(tuple(slots), seconds, warm_up_s)
        return LocalProfile(spec, (layout.ROOT,), InstalledPackages(), {}, effort, Path(folder), Steps()).measure()


def _together(runs: Sequence[SlotsRun]) -> list[SlotsRun]:
    """Number of slots, ascending, with the micro-batches of all rounds."""
    numbers = sorted({run.slots for run in runs})
    return [SlotsRun(slots, [batch for run in runs if run.slots == slots for batch in run.batches]) for slots in numbers]


def _table(spec: SpecFile, profiled: Sequence[SlotsRun], again: Sequence[SlotsRun]) -> list[str]:
    rates = rates_of(profiled)
    cores = cores_for_job(profiled[-1], machine.cores())
    cpu = "not measured" if rates.events_per_cpu_s is None else f"{rates.events_per_cpu_s.typical:,.0f}"
    lines = [
        f"{spec.job.metadata.name} on {machine.name()}, {machine.cores()} cores: {rates.events_per_slot_per_s.typical:,.0f} events/s "
        f"a slot, {cpu} a CPU second, {rates.batch_overhead_s.typical:.2f} s without rows; {cores:.2f} cores for the job",
        f"{'slots':>5} {'predicted':>10} {'measured':>10} {'quartiles':>20} {'difference':>10} {'busy cores':>10}",
    ]
    for run in again:
        predicted = predicted_events_per_s(rates, run.slots, cores)
        measured = run.events_per_s(rates.batch_overhead_s.typical)
        quartiles = f"{measured.low:,.0f} - {measured.high:,.0f}"
        busy = "-" if run.busy_cores is None else f"{run.busy_cores:.2f}"
        difference = predicted / measured.typical - 1
        lines.append(f"{run.slots:>5} {predicted:>10,.0f} {measured.typical:>10,.0f} {quartiles:>20} {difference:>+10.1%} {busy:>10}")
    return lines


if __name__ == "__main__":
    main()
