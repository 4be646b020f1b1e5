"""What runs in a driver and executors of its own: a job, or a session of several jobs."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sizing.plan.session.planned import SessionPlan
from penstock.sizing.planned import Plan

Workload = Plan | SessionPlan


def workloads(jobs: Mapping[str, Plan], sessions: Mapping[str, SessionPlan]) -> dict[str, Workload]:
    """What runs: the jobs that are in no session, then the sessions.

    Args:
        jobs: name -> plan, of all jobs.
        sessions: name -> plan.
    """
    inside = {job for session in sessions.values() for job in session.jobs}
    return {**{name: plan for name, plan in jobs.items() if name not in inside}, **sessions}
