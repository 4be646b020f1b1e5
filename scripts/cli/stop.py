"""``penstock stop``: stops a job, or a session, at the end of its micro-batch; its checkpoint stays, and its nodes are freed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from penstock.scripts.background.detached_run import DetachedRun, detached_runs
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.operations.deployed_session import add_job_or_session, chosen_driver
from penstock.scripts.progress import Steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_or_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stops the job, and waits until its pods are gone; of one that runs detached on this machine, until its processes are.

    Returns:
        0, also if it is stopped already.
    """
    environment = chosen(arguments)
    if arguments.job and (detached := detached_runs(environment.name, arguments.job)):
        return _stop_detached(detached, Steps())
    job, steps = chosen_driver(environment, arguments), Steps()
    alone = job.owner != job.name
    until = f"{job.name} to finish its micro-batch{'' if alone else ', and for its pods to end'}"
    with job.cluster() as api, steps.at("stop", f"waiting for {until}") as step:
        running = job.running(api)
        running.refuse_missing()
        step.said = f"{job.name} is stopped" if running.stop() else f"{job.name} was stopped already"
    deploy = f"a deploy does not, and the other jobs of {job.owner} run on" if alone else "so does the next deploy of jobs-charts"
    steps.line("then", f"penstock resume runs it again from its checkpoint; {deploy}")
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
