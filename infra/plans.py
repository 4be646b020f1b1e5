"""The plans of all jobs of an environment, for which its stacks are sized."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from penstock.infra.app_packages import app_packages
from penstock.infra.cluster import cluster
from penstock.infra.environment import Environment
from penstock.infra.errors import JobNamedTwice
from penstock.infra.job_specs import spec_in
from penstock.infra.sessions import further_queries, metric_faults, session_faults, session_plans, session_violations
from penstock.jobs.errors import UnreadableDocument
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.requested_topics import asked_topics
from penstock.jobs.targets import targets
from penstock.sizing.cluster import Cluster
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.kafka.partitions import most_partitions
from penstock.sizing.plan import plan
from penstock.sizing.plan.session import SessionPlan
from penstock.sizing.plan.together import Together, plan_together
from penstock.sizing.plan.workload import Workload, workloads
from penstock.sizing.planned import Plan
from penstock.sizing.targets import Targets
from penstock.sizing.violation import raise_violations


class JobPlan(BaseModel):
    """A job of the environment.

    Args:
        spec: with its document.
        targets: the spec as sizing's input.
        plan: of the job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: SpecFile
    targets: Targets
    plan: Plan

    @property
    def name(self) -> str:
        """The job's name."""
        return self.spec.job.metadata.name


class SessionOfJobs(BaseModel):
    """A session of the environment.

    Args:
        name: of the session.
        plan: of its driver and executors, with the names of its jobs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    plan: SessionPlan


class EnvironmentPlans(BaseModel):
    """The jobs of an environment, and the sessions that some of them run in.

    Args:
        jobs: in the environment's order.
        sessions: in the environment's order.
        together: their combined plan; None: there are no jobs, or the environment has no cluster.
        cluster: the environment as sizing models it; None: it has no cluster.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: tuple[JobPlan, ...]
    sessions: tuple[SessionOfJobs, ...] = ()
    together: Together | None
    cluster: Cluster | None

    @property
    def workloads(self) -> dict[str, Workload]:
        """Name -> plan of what runs in a driver of its own: jobs that are in no session, then sessions."""
        return workloads({job.name: job.plan for job in self.jobs}, {session.name: session.plan for session in self.sessions})

    @property
    def apart(self) -> tuple[JobPlan, ...]:
        """The jobs that have a driver of their own."""
        return tuple(job for job in self.jobs if self.session_of(job.name) is None)

    def session_of(self, job: str) -> SessionOfJobs | None:
        """The session of a job; None if it has a driver of its own."""
        return next((session for session in self.sessions if job in session.plan.jobs), None)

    def jobs_of(self, session: SessionOfJobs) -> tuple[JobPlan, ...]:
        """The jobs of a session, in its order."""
        named = {job.name: job for job in self.jobs}
        return tuple(named[job] for job in session.plan.jobs)


def plans(environment: Environment) -> EnvironmentPlans:
    """The plans of an environment's jobs, separate and combined.

    Args:
        environment: the environment of the jobs.

    Raises:
        PenstockError: SPEC-001 for a spec that does not exist, INF-006 for a duplicate name, INF-080 to INF-084 and INF-088 for a session,
            SPEC-013 for a topic with different settings in two jobs, any fault of a spec, and sizing's own errors for an infeasible plan;
            all faults are raised as `Faults`.
    """
    specs = specs_of(environment)
    environment_cluster = cluster(environment)
    app_path = [Path(folder) for folder in environment.spec.app_path]
    jobs = tuple(_planned(spec, app_path, environment_cluster) for spec in specs)
    raise_violations(violation for job in jobs for violation in job.plan.violations)
    raise_all(metric_faults(environment, {job.name: further_queries(job.spec, job.targets.queries) for job in jobs}))
    own = {job.name: job.plan for job in jobs}
    sessions = session_plans(environment, own, environment_cluster)
    raise_all(fault for name, session in sessions.items() for fault in session_violations(environment, name, session))
    planned = tuple(SessionOfJobs(name=name, plan=session) for name, session in sessions.items())
    if environment_cluster is None or not jobs:
        return EnvironmentPlans(jobs=jobs, sessions=planned, together=None, cluster=environment_cluster)
    together = plan_together(own, environment_cluster, sessions)
    raise_violations(together.violations)
    return EnvironmentPlans(jobs=jobs, sessions=planned, together=together, cluster=environment_cluster)


def specs_of(environment: Environment) -> list[SpecFile]:
    """The specs of an environment's jobs, which fit together.

    Args:
        environment: the environment of the jobs.

    Raises:
        PenstockError: SPEC-001 for a spec that does not exist, INF-006 for a duplicate name, SPEC-013 for a topic with different settings
            in two jobs, SPEC-014 for a parallelism that can't be set here, INF-080 to INF-084 for a session, any fault of a spec.
    """
    raise_all(_missing(environment))
    specs = [spec_in(environment, Path(job.spec)) for job in environment.spec.jobs]
    raise_all(_named_twice(specs))
    raise_all(session_faults(environment, specs))
    # Jobs with different settings for one topic are reported here, before anything is sized with it.
    asked_topics(specs)
    return specs


def _planned(spec: SpecFile, app_path: Sequence[Path], environment_cluster: Cluster | None) -> JobPlan:
    job_targets = targets(spec, app_path)
    # Reported here, before anything is synthesized.
    app_packages(spec)
    return JobPlan(spec=spec, targets=job_targets, plan=plan(job_targets, environment_cluster))


def _missing(environment: Environment) -> Iterator[PenstockError]:
    """An error for each spec that the environment names and that does not exist, with its line there."""
    for number, job in enumerate(environment.spec.jobs):
        if not Path(job.spec).exists():
            need = f"the path of a job's spec, relative to the environment's file; {job.spec} does not exist"
            yield environment.locate(UnreadableDocument(need=need, fix="correct the path"), "spec", "jobs", number)


def _named_twice(specs: list[SpecFile]) -> list[PenstockError]:
    first: dict[str, SpecFile] = {}
    faults: list[PenstockError] = []
    for spec in specs:
        before = first.setdefault(spec.job.metadata.name, spec)
        if before is not spec:
            need = f"a unique name; {before.path} already uses this one"
            fault = JobNamedTwice(given=spec.job.metadata.name, need=need, fix="rename one of them")
            faults.append(spec.document.locate(fault, ("metadata", "name")))
    return faults


def partitions(planned: EnvironmentPlans) -> dict[str, int]:
    """The topics of the jobs, by name, with their partitions.

    Args:
        planned: the jobs.
    """
    return dict(sorted(most_partitions(job.plan.kafka.topics for job in planned.jobs).items()))
