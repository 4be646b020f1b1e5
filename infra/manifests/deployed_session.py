"""A session of jobs as it is deployed to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.infra.manifests.deployed_job import DeployedJob, DeployedWorkload
from penstock.infra.session_packages import shared_jars
from penstock.jobs.configuration.session import AppArchive
from penstock.sizing.plan.session import SessionPlan


@dataclass(frozen=True, kw_only=True)
class DeployedSession(DeployedWorkload):
    """A session, its plan, and where it runs.

    Args:
        plan: of the session.
        jobs: of the session, each with `DeployedJob.in_session`.
        archives: job -> its app; without those whose app is part of the image.
    """

    plan: SessionPlan
    jobs: tuple[DeployedJob, ...]
    archives: Mapping[str, AppArchive] = field(default_factory=dict)

    @property
    def session(self) -> str | None:
        """The session that the namespace is of: itself."""
        return self.name

    @property
    def jars(self) -> Mapping[str, str]:
        """Spark's setting for the jars of all its apps."""
        return shared_jars([job.packages for job in self.jobs])
