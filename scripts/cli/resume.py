"""``penstock resume``: runs a job or a session again that is stopped, or a job that has failed and is not started any more."""

from __future__ import annotations

import argparse

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.operations.deployed_session import add_job_or_session, chosen_driver
from penstock.scripts.progress import Steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_or_session(parser)
    parser.add_argument("--detach", action="store_true", help="do not wait until the job reads its sources")


def run(arguments: argparse.Namespace) -> int:
    """Starts the driver, and waits until its query reads.

    Returns:
        0, also if it runs already.
    """
    from penstock.scripts.operations.running_job import wait_until_it_reads  # the client of Kubernetes takes long to import

    job, steps = chosen_driver(chosen(arguments), arguments), Steps()
    with job.cluster() as api:
        running = job.running(api)
        running.refuse_missing()
        started = running.resume()
        if arguments.detach:
            steps.line("resume", f"{job.name} is started" if started else f"{job.name} runs already")
            return 0
        with steps.at("resume", f"waiting for {job.name} to read its sources") as step:
            wait_until_it_reads(job.name, lambda: running.reads, job.why_not)
            step.said = f"{job.name} runs" if started else f"{job.name} runs already"
    return 0
