"""``penstock status``: what the jobs of an environment do, read from the bucket of their checkpoints."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from penstock.infra.environment import Environment
from penstock.jobs.spec import SpecFile
from penstock.scripts.background.detached_run import DetachedRun, detached_runs
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.operations.deployed_job import jobs_of
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.operations.status_table import backlog_table, jobs_table, runs_table, state_facts
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import CheckFailed
from penstock.sizing.planned import SCHEMA_VERSION

# Of an environment with many jobs; each takes some ten requests, one after another.
_AT_A_TIME = 8
_BAD = ("restarting", "failed", "lost", "unreadable")
_DEAD = ("failed", "lost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    parser.add_argument(
        "--job",
        action="append",
        default=[],
        metavar="NAME",
        help="a job, with its backlog by partition and the runs of its drivers; repeatable",
    )
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows the status of the jobs.

    Returns:
        0, or 1 if a job has failed, restarts after a failure, or is lost.
    """
    environment = chosen(arguments)
    now = datetime.now(UTC)
    detached = _detached(environment, arguments.job)
    # What `penstock up` emulates is its own: nothing of it is in the buckets of the environment.
    local = any(run.verb == "up" for run in detached)
    jobs = [] if local else _statuses(environment, jobs_of(environment, arguments.job), now)
    if arguments.job:
        jobs = [_with_plan(environment, job) for job in jobs]
    if arguments.output == "table":
        _print_detached(detached)
        if not local:
            _print(environment, jobs, now, with_runs=bool(arguments.job))
    else:
        document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name, "at": now.isoformat(timespec="seconds")}
        listed = [job.model_dump(by_alias=True, mode="json") for job in jobs]
        sys.stdout.write(as_text({**document, "jobs": listed, "detached": [_as_document(run) for run in detached]}, arguments.output))
    failed = any(run.state in _DEAD for run in detached)
    return CheckFailed.exit_code if failed or any(job.state in _BAD for job in jobs) else 0


def _detached(environment: Environment, names: Sequence[str]) -> list[DetachedRun]:
    found = [run for name in names or (None,) for run in detached_runs(environment.name, name)]
    return list({run.folder: run for run in found}.values())


def _print_detached(detached: Sequence[DetachedRun]) -> None:
    for run in detached:
        process = "" if run.pid is None else f", process {run.pid}"
        state = f"{run.state}{process}, since {run.since:%Y-%m-%d %H:%M:%S} UTC; log {run.log}"
        sys.stdout.write(f"penstock {run.verb} of {', '.join(run.jobs)}, detached on this machine: {state}\n")
        if not run.alive:
            sys.stdout.write(textwrap.indent(run.why(), "  ") + "\n")
        sys.stdout.write("\n")


def _as_document(run: DetachedRun) -> dict[str, object]:
    started = {"verb": run.verb, "jobs": list(run.jobs), "since": run.since.isoformat(timespec="seconds"), "log": str(run.log)}
    return {**started, "state": run.state, "pid": run.pid, "cause": "" if run.alive else run.why()}


def _statuses(environment: Environment, specs: Sequence[SpecFile], now: datetime) -> list[JobStatus]:
    aws = AwsAccess(environment)
    aws.check_account()
    s3 = aws.client("s3")
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(lambda spec: status_of(spec, environment.spec.buckets.checkpoints, s3, now), specs))


def _with_plan(environment: Environment, job: JobStatus) -> JobStatus:
    # Planning takes longer than reading.
    from penstock.scripts.operations.planned_job import plan_of

    plan = plan_of(environment, job.job)
    return job if plan is None else job.model_copy(update={"planned_state_bytes": plan.state.state_bytes})


def _print(environment: Environment, jobs: Sequence[JobStatus], now: datetime, *, with_runs: bool) -> None:
    screen = screen_of(sys.stdout, os.environ)
    if not jobs:
        sys.stdout.write(f"environment {environment.name} has no jobs\n")
        return
    lines = [f"jobs of {environment.name}, with their drivers' starts and failures of the last hour", "", *jobs_table(jobs, now, screen)]
    for job in jobs if with_runs else ():
        lines += ["", f"backlog of {job.job}", "", *backlog_table(job, screen)] if job.queries else []
        lines += ["", f"state of {job.job}", "", *state_facts(job, screen)] if _has_state(job) else []
        lines += ["", f"runs of the drivers of {job.job}", "", *runs_table(job, screen)]
    sys.stdout.write("\n".join(lines) + "\n")


def _has_state(job: JobStatus) -> bool:
    return any(query.state_bytes is not None for query in job.queries)
