"""What lint looks at in an environment and its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scripts.linting.environment import LintedEnvironment
from penstock.scripts.linting.jobs import JobToLint
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.lint.subject import Subject


def subject_of(environment: LintedEnvironment, jobs: Sequence[JobToLint], catalog: Catalog, today: str) -> Subject:
    """An environment with some of its jobs.

    Args:
        environment: the environment.
        jobs: those that are linted.
        catalog: instance types.
        today: date against which ends of support are checked, ``YYYY-MM-DD``.
    """
    cluster = environment.cluster
    return Subject(
        today=today,
        catalog=catalog,
        zones=cluster.zones if cluster else (),
        pools=environment.pools,
        pods=(environment.driver, environment.executor, *(pods for job in jobs for pods in job.pods)) if cluster else (),
        confs=tuple(job.conf for job in jobs),
        jobs=tuple(job.job for job in jobs),
        versions=environment.versions,
        **({"node_settings": cluster.node_settings, "spot_ratio": cluster.spot_ratio} if cluster else {}),
    )
