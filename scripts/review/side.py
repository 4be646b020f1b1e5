"""The jobs of an environment before a change, or after it: their plans, and what lint finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.infra.environment import Environment
from penstock.infra.sessions import session_plans
from penstock.scripts.linting.environment import LintedEnvironment
from penstock.scripts.linting.jobs import job_to_lint
from penstock.scripts.linting.subjects import subject_of
from penstock.scripts.planning.app_path import folders_of_apps
from penstock.scripts.planning.planned_jobs import PlannedJob, planned_job, where
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.cluster import Cluster
from penstock.sizing.errors import PenstockError
from penstock.sizing.lint.finding import Finding
from penstock.sizing.lint.lint import lint
from penstock.sizing.plan.together import plan_together
from penstock.sizing.violation import Violation


class Side(NamedTuple):
    """An environment with its jobs.

    Args:
        environment: None: there is none.
        jobs: by name, in its order.
        folders: where their apps are looked up, besides the folders of their specs.
        faults: of specs that can't be read or planned.
        findings: of lint, in the environment and its jobs.
        violations: of the plan of all jobs together, each of which is feasible by itself.
    """

    environment: Environment | None
    jobs: dict[str, PlannedJob]
    folders: tuple[Path, ...] = ()
    faults: tuple[PenstockError, ...] = ()
    findings: tuple[Finding, ...] = ()
    violations: tuple[Violation, ...] = ()


NOTHING = Side(None, {})


def side_of(file: Path, app_path: Sequence[Path], today: str) -> Side:
    """An environment as its file has it.

    Args:
        file: the environment's.
        app_path: folders of the apps besides those of the specs and of the environment.
        today: date against which ends of support are checked, ``YYYY-MM-DD``.

    Raises:
        PenstockError: what is wrong with the environment; faults of its jobs are in the answer.
    """
    location = where(str(file), partial=True)
    jobs: dict[str, PlannedJob] = {}
    faults: list[PenstockError] = []
    for entry in location.environment.spec.jobs:
        try:
            job = planned_job(Path(entry.spec), location, app_path)
            jobs[job.name] = job
        except PenstockError as error:
            faults += error.errors
    folders = tuple(folders_of_apps(app_path, location.environment))
    findings = tuple(_findings(file, jobs, app_path, today))
    return Side(location.environment, jobs, folders, tuple(faults), findings, _together(location.environment, jobs, location.cluster))


def _together(environment: Environment, jobs: dict[str, PlannedJob], cluster: Cluster | None) -> tuple[Violation, ...]:
    """What does not fit where each job by itself does."""
    if cluster is None or not jobs or not all(job.plan.feasible for job in jobs.values()):
        return ()
    own = {name: job.plan for name, job in jobs.items()}
    sessions = session_plans(environment, own, cluster)
    of_sessions = [violation for session in sessions.values() for violation in session.violations]
    return (*of_sessions, *plan_together(own, cluster, sessions).violations)


def _findings(file: Path, jobs: dict[str, PlannedJob], app_path: Sequence[Path], today: str) -> Iterator[Finding]:
    try:
        environment = LintedEnvironment(str(file))
    except PenstockError:
        # In a region whose instance types are not known.
        return
    linted = []
    for job in jobs.values():
        try:
            linted.append(job_to_lint(job.spec.path, app_path, environment))
        except PenstockError:
            # An app that is not found can be planned, and not be linted.
            continue
    catalog = environment.cluster.catalog if environment.cluster is not None else shipped()
    yield from lint(subject_of(environment, linted, catalog, today), frozenset())
