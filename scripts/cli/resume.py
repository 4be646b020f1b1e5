"""``penstock resume``: runs a job again that is stopped, or that has failed and is not started any more."""

from __future__ import annotations

import argparse

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.progress import Steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_argument(parser)
    parser.add_argument("--detach", action="store_true", help="do not wait until the job reads its sources")


def run(arguments: argparse.Namespace) -> int:
    """Starts the driver, and waits until its query reads.

    Returns:
        0, also if it runs already.
    """
    from penstock.scripts.operations import resuming  # the client of Kubernetes takes long to import

    job, steps = DeployedJob(chosen(arguments), arguments.job), Steps()
    with job.cluster() as api:
        started = resuming.resume(api, job.name, job.runs)
        if arguments.detach:
            steps.line("resume", f"{job.name} is started" if started else f"{job.name} runs already")
            return 0
        with steps.at("resume", f"waiting for {job.name} to read its sources") as step:
            resuming.wait_until_ready(api, job.name, lambda: job.status().cause or "no failure is recorded")
            step.said = f"{job.name} runs" if started else f"{job.name} runs already"
    return 0
