"""What a change of a job means for the session that it runs in: the job alone is started again, or the driver with all its jobs."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans, SessionOfJobs
from penstock.infra.sessions import driver_size
from penstock.sizing.plan.session import SessionPlan, plan_session
from penstock.sizing.plan.session.settings import EXECUTORS
from penstock.sizing.planned import Plan


def said(planned: EnvironmentPlans, environment: Environment, job: str, before: Plan | None, *, new_image: bool) -> tuple[str, ...]:
    """The sentence about the session of a job that changes; empty if it has a driver of its own.

    Args:
        planned: the jobs as they are wanted.
        environment: of them.
        job: its name.
        before: the plan of the job as it runs; None: not known.
        new_image: whether the image changes.
    """
    session = planned.session_of(job)
    if session is None:
        return ()
    reasons = [*(["another image"] if new_image else []), *_reasons(planned, environment, session, job, before)]
    others = f"with all its jobs ({', '.join(session.plan.jobs)})"
    if reasons:
        return (f"the driver of session {session.name} restarts, {others}: {'; '.join(reasons)}",)
    return (f"in session {session.name} this job alone restarts",)


def _reasons(planned: EnvironmentPlans, environment: Environment, session: SessionOfJobs, job: str, before: Plan | None) -> Iterator[str]:
    if before is None:
        return
    own = {one.name: one.plan for one in planned.jobs_of(session)}
    given = next(driver_size(one) for one in environment.spec.sessions if one.name == session.name)
    yield from reasons(plan_session({**own, job: before}, driver=given), session.plan)


def reasons(before: SessionPlan, now: SessionPlan) -> Iterator[str]:
    """Why a session's driver restarts between two plans; nothing if it does not."""
    if before.pods.driver != now.pods.driver:
        yield "another size of the driver"
    if before.pods.executor.model_copy(update={"count": now.pods.executor.count}) != now.pods.executor:
        yield "other executors"
    differing = sorted(
        key for key in {*before.spark_conf, *now.spark_conf} - {EXECUTORS} if before.spark_conf.get(key) != now.spark_conf.get(key)
    )
    # Those of the pods' sizes are said in terms of pods.
    settings = [key for key in differing if not key.startswith(("spark.driver.", "spark.executor.", "spark.kubernetes."))]
    if settings:
        yield f"settings that its jobs share: {', '.join(settings)}"
