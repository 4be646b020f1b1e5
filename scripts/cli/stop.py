"""``penstock stop``: stops a job at the end of its micro-batch; its checkpoint stays, and its nodes are freed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from penstock.scripts.background.detached_run import DetachedRun, detached_runs
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.progress import Steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stops the job, and waits until its pods are gone; of one that runs detached on this machine, until its processes are.

    Returns:
        0, also if it is stopped already.
    """
    environment = chosen(arguments)
    if detached := detached_runs(environment.name, arguments.job):
        return _stop_detached(detached, Steps())
    from penstock.scripts.operations.resuming import driver_of  # the client of Kubernetes takes long to import
    from penstock.scripts.provisioning.draining import stop_job

    job, steps = DeployedJob(environment, arguments.job), Steps()
    with job.cluster() as api, steps.at("stop", f"waiting for {job.name} to finish its micro-batch, and for its pods to end") as step:
        driver_of(api, job.name)
        ran = stop_job(api, job.name)
        step.said = f"{job.name} is stopped" if ran else f"{job.name} was stopped already"
    steps.line("then", "penstock resume runs it again from its checkpoint; so does the next deploy of jobs-charts")
    return 0


def _stop_detached(detached: Sequence[DetachedRun], steps: Steps) -> int:
    for run in detached:
        jobs = ", ".join(run.jobs)
        if not run.alive:
            steps.line("stop", f"{jobs} does not run any more: it {run.why()}")
            run.stop()
            continue
        with steps.at("stop", f"waiting for penstock {run.verb} of {jobs} to end") as step:
            run.stop()
            step.said = f"{jobs} is stopped, and nothing of its detached run is left"
    return 0
