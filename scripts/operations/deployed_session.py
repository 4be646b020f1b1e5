"""A session of an environment, for verbs that act on its driver, and so on all of its jobs."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.infra.environment import Environment
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.deployed_job import DeployedJob, cluster_of
from penstock.scripts.provisioning.aws_access import AwsAccess

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

    from penstock.scripts.operations.running_job import RunningJob


def add_job_or_session(parser: argparse.ArgumentParser) -> None:
    """``--job NAME`` or ``--session NAME``, one of which is required."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--job", metavar="NAME", help="a job of the environment; one of a session alone")
    which.add_argument("--session", metavar="NAME", help="a session of the environment, with all its jobs")


def chosen_driver(environment: Environment, arguments: argparse.Namespace) -> DeployedJob | DeployedSession:
    """The job or the session of arguments by `add_job_or_session`.

    Raises:
        PenstockError: USE-001, DEP-002, TOOL-030, and what is wrong with a spec.
    """
    if arguments.session is not None:
        return DeployedSession(environment, arguments.session)
    return DeployedJob(environment, arguments.job)


class DeployedSession:
    """A session of an environment.

    Args:
        environment: of the session.
        name: of the session.

    Raises:
        PenstockError: USE-001, DEP-002, TOOL-030, and what is wrong with a spec.
    """

    def __init__(self, environment: Environment, name: str) -> None:
        sessions = {session.name: session for session in environment.spec.sessions}
        if name not in sessions:
            close = difflib.get_close_matches(name, sessions, n=1)
            need = f"a session of environment {environment.name}: {', '.join(sessions) or 'it has none'}"
            fix = f"did you mean {close[0]}?" if close else "correct the name, or use --job"
            raise WrongUsage(given=f"--session {name}", need=need, fix=fix)
        self.name = name
        self.environment = environment
        self._aws = AwsAccess(environment)
        self._aws.check_account()
        self._jobs = tuple(DeployedJob(environment, job) for job in sessions[name].jobs)

    @property
    def owner(self) -> str:
        """What the namespace of its pods goes by."""
        return self.name

    def running(self, api: ApiClient) -> RunningJob:
        """Its driver, in its cluster.

        Args:
            api: client of the cluster's API.
        """
        from penstock.scripts.operations.running_job import OwnDriver  # the client of Kubernetes takes long to import

        # Each job's failures count: one that is not started again as it is stays so, and is resumed by its name.
        return OwnDriver(api, self.name, lambda: None)

    def why_not(self) -> str:
        """Why it does not read, as far as that is known."""
        causes = {job.name: job.status().cause for job in self._jobs}
        return "; ".join(f"{name}: {cause}" for name, cause in causes.items() if cause) or "no failure is recorded"

    @contextmanager
    def cluster(self) -> Iterator[ApiClient]:
        """A client of its cluster's API.

        Raises:
            JobNotDeployed: DEP-017, there is no cluster.
            ApiServerNotReached: DEP-007.
        """
        with cluster_of(self._aws, self.environment, f"session {self.name}") as api:
            yield api
