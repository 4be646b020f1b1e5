"""What a change of a job means for the session that it runs in: the job alone is started again, or the driver with all its jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.infra.sessions import driver_size
from penstock.sizing.plan.session import SessionPlan, plan_session
from penstock.sizing.plan.session.settings import EXECUTORS
from penstock.sizing.planned import Plan


def said(planned: EnvironmentPlans, environment: Environment, job: str, running: Mapping[str, Plan], *, new_image: bool) -> tuple[str, ...]:
    """The sentence about the session of a job that changes; empty if it has a driver of its own, or if its session does not run yet.

    Args:
        planned: the jobs as they are wanted.
        environment: of them.
        job: its name.
        running: the jobs that run in its session, each with its plan as it runs, as far as that is known.
        new_image: whether the image changes.
    """
    session = planned.session_of(job)
    if session is None or not running:
        return ()
    given = next(driver_size(one) for one in environment.spec.sessions if one.name == session.name)
    before = plan_session(dict(running), driver=given)
    why = [*(["another image"] if new_image else []), *reasons(before, session.plan)]
    others = f"with all its jobs ({', '.join(session.plan.jobs)})"
    if why:
        return (f"the driver of session {session.name} restarts, {others}: {'; '.join(why)}",)
    return (f"in session {session.name} this job alone restarts",)


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
