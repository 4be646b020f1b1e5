"""From a job's spec and its plan to how long it may show no progress."""

from __future__ import annotations

from penstock.jobs.spec import JobSpec
from penstock.sizing.load import progress_timeout
from penstock.sizing.planned import Plan


def progress_timeout_s(spec: JobSpec, plan: Plan) -> float:
    """The limit of a job in seconds; see `penstock.sizing.load.progress_timeout`."""
    return progress_timeout.progress_timeout_s(
        None if spec.progress_timeout is None else spec.progress_timeout / 1000,
        trigger_s=None if spec.trigger == "availableNow" else spec.trigger / 1000,
        restart_s=0.0 if spec.load is None else spec.load.restart / 1000,
        state_bytes=plan.state.state_bytes or 0,
        tasks_at_a_time=plan.tasks_at_a_time,
    )
