"""Profiles of `penstock profile` for jobs of tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.spec import load
from penstock.jobs.spec.job_profile import Digest, JobProfile, ProfiledRun
from penstock.sizing.load.measured_job import CalibratedMachine, MeasuredJob
from penstock.sizing.load.spread import Spread

HERE = CalibratedMachine(name="a laptop", cores=2, events_per_cpu_s=Spread(low=49_000, typical=50_000, high=51_000))


def profile_of(spec: Path, app_path: Sequence[Path] = (), **measured: object) -> JobProfile:
    """A profile of a job as it is."""
    spec_file = load(spec)
    given: dict[str, object] = {
        "events_per_slot_per_s": Spread(low=10_000, typical=12_500, high=15_000),
        "events_per_cpu_s": Spread(low=8_000, typical=10_000, high=12_000),
        "batch_overhead_s": Spread.exactly(0.4),
        "restart_s": Spread(low=18, typical=20, high=25),
        "bytes_per_key": Spread.exactly(120.5),
        "machine": HERE,
        "date": "2026-11-27",
        "source": "local run of 2026-11-27 at 1, 2 slots",
    }
    return JobProfile(
        job=spec_file.job.metadata.name,
        digest=Digest.of(spec_file, app_path),
        measured=MeasuredJob.model_validate({**given, **measured}),
        state_rows=1_000,
        runs=(ProfiledRun(slots=1, micro_batches=12, events=100_000, events_per_s=Spread.exactly(12_500), busy_cores=1.2),),
    )


def written(profile: JobProfile, path: Path) -> Path:
    """A profile in its file."""
    path.write_text(profile.model_dump_json(by_alias=True, indent=1), encoding="utf-8")
    return path
