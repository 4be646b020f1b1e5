"""``penstock run``: runs a job of an environment on this machine until it is stopped, and restarts its driver after failures."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.plans import JobPlan, plans
from penstock.scripts import layout
from penstock.scripts.background.detaching import run_detached
from penstock.scripts.checking.checks import Asked
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments
from penstock.scripts.cli.check import add_no_check_argument, check_first
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.installation import app_packages
from penstock.scripts.local.supervisor import Supervisor
from penstock.scripts.operations.deployed_job import add_job_argument, jobs_of
from penstock.scripts.operations.supervised_job import LOG, SupervisedJob
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import workplace

DEFAULT_FOLDER = Path(".penstock/run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_argument(parser)
    add_app_path_argument(parser)
    add_no_check_argument(parser)
    add_brokers_arguments(parser)
    parser.add_argument(
        "--resume", action="store_true", help="start a job that has failed for good (JOB-092) as it is: forgive its failures"
    )
    parser.add_argument(
        "--detach", action="store_true", help="run it in the background of this machine, and return once the job reads its sources"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for the driver's log and files (default: {DEFAULT_FOLDER}/ENV/JOB)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the job until Ctrl-C or SIGTERM, or until it has finished.

    Returns:
        0; 1 for an app that fails its check.

    Raises:
        PenstockError: whatever is wrong with the environment or this machine, and the failure after which the job is not started again.
        KeyboardInterrupt: the driver was killed by a second Ctrl-C or SIGTERM.
    """
    environment = chosen(arguments)
    planned = _planned(environment, arguments.job)
    if arguments.detach:
        return run_detached(arguments, "run", environment, [planned.name])
    asked = Asked(planned.spec.path, tuple(map(Path, environment.spec.app_path)))
    if failed := check_first([asked], "table", wanted=not arguments.no_check):
        return failed
    layout.spark_jars()
    folder = (arguments.out or DEFAULT_FOLDER / environment.name / planned.name).absolute()
    with workplace.held(folder, "run"):
        _supervise(environment, planned, arguments, folder)
    return 0


def _planned(environment: Environment, name: str) -> JobPlan:
    """The job with its plan. The other jobs of the environment need not have one."""
    (spec,) = jobs_of(environment, [name])
    alone = [job for job in environment.spec.jobs if Path(job.spec) == spec.path]
    (job,) = plans(environment.with_spec(jobs=alone, sessions=[])).jobs
    return job


def _supervise(environment: Environment, planned: JobPlan, arguments: argparse.Namespace, folder: Path) -> None:
    steps = Steps()
    steps.title(f"job {planned.name} of environment {environment.name}, on this machine")
    packages = app_packages.install(app_packages.checked(planned.spec), steps)
    brokers = access_of(environment, arguments)
    job = SupervisedJob(environment, planned, brokers, packages, folder)
    for scaled_down in job.machine.cuts:
        steps.line("scaled down", scaled_down)
    steps.line("brokers", brokers.address)
    steps.line("log", str(folder / LOG))
    if arguments.resume:
        job.forgive()
    supervisor = Supervisor(planned.name, job.driver, job.why_over, steps)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.interrupt())
    steps.line("stop", "Ctrl-C or SIGTERM, at the end of the micro-batch; a second one kills the driver")
    supervisor.run()
