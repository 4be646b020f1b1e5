"""``penstock logs``: the log of a job's driver or executors, by the Kubernetes API; of one that runs detached here, from its file."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from penstock.jobs.configuration.session import is_of_job
from penstock.scripts.background.detached_run import detached_runs, lines_of
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.deployed_session import add_job_or_session, chosen_driver


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_or_session(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more lines, until the pods end or Ctrl-C")
    parser.add_argument("--previous", action="store_true", help="of the containers before those that run: why they ended")
    parser.add_argument("--executors", action="store_true", help="of the executors instead of the driver; each line begins with the pod")


def run(arguments: argparse.Namespace) -> int:
    """Writes the logs to standard output.

    Returns:
        0.
    """
    if arguments.follow and arguments.previous:
        raise WrongUsage(given="--follow and --previous", need="one of them: what has ended writes no more", fix="leave one out")
    environment = chosen(arguments)
    if arguments.job and (detached := detached_runs(environment.name, arguments.job)):
        _refuse_pods(arguments)
        for line in lines_of(detached[0], follow=arguments.follow):
            _write(line)
        return 0
    from penstock.scripts.operations.pod_logs import pods_of, write_logs  # the client of Kubernetes takes long to import

    job = chosen_driver(environment, arguments)
    # The executors' tasks are of any job.
    apart = job.owner != job.name and not arguments.executors
    write = partial(_write_of, job.name) if apart else _write
    with job.cluster() as api:
        pods = pods_of(api, job.owner, "executor" if arguments.executors else "driver")
        write_logs(api, pods, write, follow=arguments.follow, previous=arguments.previous)
    return 0


def _refuse_pods(arguments: argparse.Namespace) -> None:
    given = [option for option, value in {"--previous": arguments.previous, "--executors": arguments.executors}.items() if value]
    if given:
        need = f"neither of them: {arguments.job} runs detached on this machine, with one log"
        raise WrongUsage(given=" ".join(given), need=need, fix=f"leave out {' '.join(given)}, or penstock stop first")


def _write_of(job: str, line: str) -> None:
    """Writes a line of a session's driver if it is of a job."""
    if is_of_job(job, line):
        _write(line)


def _write(line: str) -> None:
    # In one call: threads write their own lines.
    sys.stdout.write(line if line.endswith("\n") else f"{line}\n")
    sys.stdout.flush()
