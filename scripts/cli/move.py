"""``penstock move``: moves the driver of a job, or all drivers on a node, to another node, each at the end of its micro-batch."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.operations.deployed_job import DeployedJob, cluster_of
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render.screen import screen_of

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--job", metavar="NAME", help="a job of the environment")
    which.add_argument("--node", metavar="NODE", help="a node, which all its drivers leave, one after another")
    parser.add_argument("--detach", action="store_true", help="wait for the driver's node only, and not until the job reads its sources")
    parser.add_argument("--plan-only", action="store_true", help="show the node, its age and its pods, and exit")


def run(arguments: argparse.Namespace) -> int:
    """Moves the drivers.

    Returns:
        0.
    """
    environment = chosen(arguments)
    named = DeployedJob(environment, arguments.job) if arguments.job else None
    aws = AwsAccess(environment)
    aws.check_account()
    with cluster_of(aws, environment, f"job {arguments.job}" if named else f"node {arguments.node}") as api:
        from penstock.scripts.operations import moving  # the client of Kubernetes takes long to import

        node = arguments.node if named is None else moving.node_left(api, named.name)
        names = moving.drivers_on(api, node).movable if named is None else [named.name]
        if arguments.plan_only:
            _show(api, node, names)
            return 0
        jobs = [named] if named is not None else [DeployedJob(environment, name) for name in names]
        moves = [moving.Moving(api, job.name, Steps(), _cause(job)) for job in jobs]
        moving.move_all(moves, node, detach=arguments.detach)
    return 0


def _cause(job: DeployedJob) -> Callable[[], str]:
    return lambda: job.status().cause or "no failure is recorded"


def _show(api: ApiClient, name: str, jobs: list[str]) -> None:
    from penstock.scripts.operations import moving
    from penstock.scripts.operations.node_table import node_lines

    node = moving.node_in_use(api, name)
    if node is None:
        sys.stdout.write(f"node {name} is gone, and the driver is placed on another one\n")
        return
    sys.stdout.write("\n".join(node_lines(node, jobs, datetime.now(UTC), screen_of(sys.stdout, os.environ))) + "\n")
