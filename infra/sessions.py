"""The sessions of an environment: whether their jobs can share a driver, and their plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.infra.environment import Environment
from penstock.infra.errors import (
    BoundedJobInSession,
    JobInTwoSessions,
    MetricsOfSessionCollide,
    SessionNameTaken,
    SessionWithOperator,
    UnknownJobOfSession,
)
from penstock.infra.parts.sessions import Session
from penstock.jobs.spec import SpecFile
from penstock.sizing.cluster import Cluster
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan.session import SessionPlan, plan_session
from penstock.sizing.plan.session.planned import DriverSize
from penstock.sizing.planned import Plan


def session_of(environment: Environment, job: str) -> str | None:
    """The session of an environment that a job runs in; None: it has a driver of its own.

    Args:
        environment: of the job.
        job: its name.
    """
    return next((session.name for session in environment.spec.sessions if job in session.jobs), None)


def session_faults(environment: Environment, specs: Sequence[SpecFile]) -> Iterator[PenstockError]:
    """What is wrong with the sessions of an environment: INF-080 to INF-084, each with its line.

    Args:
        environment: the environment.
        specs: of its jobs.
    """
    sessions, eks = environment.spec.sessions, environment.spec.eks
    if sessions and eks is not None and eks.spark_operator:
        fix = "remove sparkOperator, or the sessions"
        fault = SessionWithOperator(need="no sessions with eks.sparkOperator, which starts a driver for one application", fix=fix)
        yield environment.locate(fault, "spec", "sessions")
    jobs = {spec.job.metadata.name: spec for spec in specs}
    owners: dict[str, str] = {}
    names: set[str] = set()
    for number, session in enumerate(sessions):
        yield from _name_taken(environment, number, session.name, jobs, names)
        names.add(session.name)
        for place, job in enumerate(session.jobs):
            fault_of_job = _fault_of_job(job, jobs, owners, session)
            owners.setdefault(job, session.name)
            if fault_of_job is not None:
                yield environment.locate(fault_of_job, "spec", "sessions", number, "jobs", place)


def _name_taken(
    environment: Environment, number: int, name: str, jobs: Mapping[str, SpecFile], sessions: set[str]
) -> Iterator[PenstockError]:
    owner = "job" if name in jobs else "session" if name in sessions else None
    if owner is not None:
        need = f"a unique name; a {owner} of the environment has this one, and the namespace that goes by it"
        yield environment.locate(SessionNameTaken(given=name, need=need, fix="rename the session"), "spec", "sessions", number, "name")


def _fault_of_job(job: str, jobs: Mapping[str, SpecFile], owners: Mapping[str, str], session: Session) -> PenstockError | None:
    if job not in jobs:
        need = f"the name of a job of the environment: {', '.join(sorted(jobs)) or 'it has none'}"
        return UnknownJobOfSession(given=job, need=need, fix="use the name of its spec's metadata, or add the job to spec.jobs")
    if job in owners:
        need = f"a job that is in no other session; {owners[job]} has it already"
        return JobInTwoSessions(given=job, need=need, fix=f"remove it from {owners[job]} or from {session.name}")
    if jobs[job].job.spec.trigger == "availableNow":
        need = "a job that runs until it is stopped; one with trigger: availableNow ends"
        return BoundedJobInSession(given=job, need=need, fix="take it out of the session: it then has a driver of its own")
    return None


def further_queries(spec: SpecFile, queries: int) -> frozenset[str]:
    """The names that the further queries of a job may have: each has that of its first sink, which the app alone knows.

    Args:
        spec: of the job.
        queries: of its app; the first one has the name of the job.
    """
    return frozenset(spec.job.spec.sinks) if queries > 1 else frozenset()


def metric_faults(environment: Environment, further: Mapping[str, frozenset[str]]) -> Iterator[PenstockError]:
    """The jobs of sessions whose metrics would be taken for another one's: INF-088, at the line of the job in its session.

    Spark's metrics of a query are named ``<job>_<sink>``, with underscores for hyphens, and of all jobs that such a name begins with it is
    taken for that of the longest name (`penstock.infra.manifests.prometheus`).

    Args:
        environment: whose sessions have no `session_faults`.
        further: job -> what its further queries may be called, as of `further_queries`.
    """
    for number, session in enumerate(environment.spec.sessions):
        for place, job in enumerate(session.jobs):
            for query in sorted(further.get(job, ())):
                fault = _fault_of_query(job, query, session)
                if fault is not None:
                    yield environment.locate(fault, "spec", "sessions", number, "jobs", place)


def _fault_of_query(job: str, query: str, session: Session) -> PenstockError | None:
    taken = [other for other in session.jobs if len(other) > len(job) and f"{job}-{query}-".startswith(f"{other}-")]
    if not taken:
        return None
    return MetricsOfSessionCollide(
        given=f"{job} with the sink {query}, and {taken[0]}",
        need=f"metrics that differ: those of a query of {job} that writes to {query} are named as those of {taken[0]}",
        fix=f"rename the sink {query}, or take {job} or {taken[0]} out of {session.name}",
    )


def session_plans(environment: Environment, jobs: Mapping[str, Plan], cluster: Cluster | None) -> dict[str, SessionPlan]:
    """The plans of the sessions of an environment.

    Args:
        environment: whose sessions have no `session_faults`.
        jobs: name -> plan; a session of which jobs are missing, as where a command plans some of an environment, is left out.
        cluster: of the environment; None: nodes and cost are not planned.
    """
    return {
        session.name: plan_session({job: jobs[job] for job in session.jobs}, cluster, driver_size(session))
        for session in environment.spec.sessions
        if all(job in jobs for job in session.jobs)
    }


def driver_size(session: Session) -> DriverSize | None:
    """The driver that the environment gives a session; None: the sum of its jobs' drivers."""
    given = session.driver
    return None if given is None else DriverSize(cpu_millicores=given.cores, memory_mib=given.memory)


def session_violations(environment: Environment, name: str, planned: SessionPlan) -> Iterator[PenstockError]:
    """The violations of a session's plan as errors, at the line of the session.

    Args:
        environment: the environment.
        name: of the session.
        planned: its plan.
    """
    number = next(number for number, session in enumerate(environment.spec.sessions) if session.name == name)
    for violation in planned.violations:
        error = violation.error()
        error.path = f"session {name}: {error.path}"
        yield environment.locate(error, "spec", "sessions", number)
