"""``penstock move``: moves the driver of a job or a session, or all drivers on a node, to another node at the end of a micro-batch."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.infra.environment import Environment
from penstock.infra.sessions import session_of
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.deployed_job import DeployedJob, cluster_of
from penstock.scripts.operations.deployed_session import DeployedSession, chosen_driver
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render.screen import screen_of

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--job", metavar="NAME", help="a job of the environment, with a driver of its own")
    which.add_argument("--session", metavar="NAME", help="a session of the environment, with all its jobs")
    which.add_argument("--node", metavar="NODE", help="a node, which all its drivers leave, one after another")
    parser.add_argument("--detach", action="store_true", help="wait for the driver's node only, and not until the job reads its sources")
    parser.add_argument("--plan-only", action="store_true", help="show the node, its age and its pods, and exit")


def run(arguments: argparse.Namespace) -> int:
    """Moves the drivers.

    Returns:
        0.
    """
    environment = chosen(arguments)
    named = _named(environment, arguments)
    aws = AwsAccess(environment)
    aws.check_account()
    with cluster_of(aws, environment, f"{named.name}" if named else f"node {arguments.node}") as api:
        from penstock.scripts.operations import moving  # the client of Kubernetes takes long to import

        node = arguments.node if named is None else moving.node_left(api, named.name)
        names = moving.drivers_on(api, node).movable if named is None else [named.name]
        if arguments.plan_only:
            _show(api, node, names)
            return 0
        jobs = [named] if named is not None else [_driver(environment, name) for name in names]
        moves = [moving.Moving(api, job.name, Steps(), job.why_not) for job in jobs]
        moving.move_all(moves, node, detach=arguments.detach)
    return 0


def _named(environment: Environment, arguments: argparse.Namespace) -> DeployedJob | DeployedSession | None:
    """The job or the session that is to move; None: those on a node."""
    if arguments.node is not None:
        return None
    session = session_of(environment, arguments.job)
    if session is not None:
        need = f"a job with a driver of its own; that of session {session} moves with all its jobs"
        raise WrongUsage(given=f"--job {arguments.job}", need=need, fix=f"--session {session}")
    return chosen_driver(environment, arguments)


def _driver(environment: Environment, name: str) -> DeployedJob | DeployedSession:
    """The job or the session that a driver's pod is of."""
    is_session = any(session.name == name for session in environment.spec.sessions)
    return DeployedSession(environment, name) if is_session else DeployedJob(environment, name)


def _show(api: ApiClient, name: str, jobs: list[str]) -> None:
    from penstock.scripts.operations import moving
    from penstock.scripts.operations.node_table import node_lines

    node = moving.node_in_use(api, name)
    if node is None:
        sys.stdout.write(f"node {name} is gone, and the driver is placed on another one\n")
        return
    sys.stdout.write("\n".join(node_lines(node, jobs, datetime.now(UTC), screen_of(sys.stdout, os.environ))) + "\n")
