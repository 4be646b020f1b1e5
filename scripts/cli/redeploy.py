"""``penstock redeploy``: a job begins anew without its state: a rewind to where its spec says that it starts, or to another point."""

from __future__ import annotations

import argparse

from penstock.scripts.cli import rewind
from penstock.scripts.cli.environment_argument import chosen
from penstock.scripts.operations.deployed_job import DeployedJob
from penstock.scripts.process.interrupts import end_in_order


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    rewind.add_shared_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    rewind.add_by_argument(where)
    start = "where it begins to read: earliest, latest, or a time as of penstock rewind (default: startingOffsets of the spec)"
    where.add_argument("--from", dest="to", type=rewind.start_point, default="spec", metavar="START", help=start)


def run(arguments: argparse.Namespace) -> int:
    """Shows what that means, asks, and does it.

    Returns:
        0.

    Raises:
        PenstockError: what is wrong with the start, the job, the records in its folder or the cluster.
    """
    end_in_order()
    job = DeployedJob(chosen(arguments), arguments.job)
    return rewind.begin_anew(job, arguments, f"Run {job.name} of {job.environment.name} without its state?")
