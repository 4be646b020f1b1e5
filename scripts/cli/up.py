"""``penstock up``: runs jobs on this machine, from the plan to a verified result, with everything that they need."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import textwrap
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.environment_file import LOCAL_ENVIRONMENT
from penstock.infra.environment_file import load as load_environment
from penstock.infra.job_specs import spec_in
from penstock.jobs.errors import Contradiction, MissingField
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.requested_topics import asked_topics
from penstock.jobs.targets import targets
from penstock.scripts import layout
from penstock.scripts.background.detaching import run_detached
from penstock.scripts.background.readiness import awaited
from penstock.scripts.checking.checks import Asked
from penstock.scripts.cli.check import add_no_check_argument, check_first
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.port_argument import port
from penstock.scripts.errors import StacksDiffer, WrongUsage
from penstock.scripts.installation import app_packages
from penstock.scripts.local import input as local_input
from penstock.scripts.local import kafka_topics
from penstock.scripts.local import machine as local_machine
from penstock.scripts.local.checking import check, wrong
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.kept_up import stay, stay_after
from penstock.scripts.local.run import LocalRun
from penstock.scripts.local.servers.starting import LocalServers, without_server
from penstock.scripts.local.spark_cluster import refuse_used_port
from penstock.scripts.local.verdict import Outcome, Verdict
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.terraform import Applied
from penstock.scripts.render import plan_table, runs_table
from penstock.scripts.render.runs_table import CORRECT, NOT_COMPARED, WRONG, Counts, EndedRun
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.plan import plan
from penstock.sizing.violation import raise_violations

_WIDTH = 100
# Spark names an executor's log stderr.
_LOGS = ("*.log", "stderr")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "specs",
        nargs="*",
        type=Path,
        metavar="SPEC",
        help="job spec; several run one after another in the same environment (default: the jobs of the environment)",
    )
    add_app_path_argument(parser)
    add_no_check_argument(parser)
    parser.add_argument(
        "--executors",
        type=_executors,
        metavar="N",
        help="run N executors as processes of a Spark standalone cluster on this machine (default: the driver does their work, local[n])",
    )
    parser.add_argument("--keep", action="store_true", help="keep running after the check, also after a failure, until Ctrl-C")
    parser.add_argument("--detach", action="store_true", help="keep running in the background of this machine, and return after the check")
    parser.add_argument(
        "--all-stacks",
        action="store_true",
        help="apply every stack of the environment, not only the one that jobs need",
    )
    add_environment_option(parser, LOCAL_ENVIRONMENT)
    parser.add_argument("--aws-port", type=port, default=0, metavar="PORT", help="port of the emulated AWS (default: any free port)")
    parser.add_argument("--kafka-port", type=port, default=0, metavar="PORT", help="port of the Kafka broker (default: any free port)")
    parser.add_argument(
        "--master-port", type=port, default=0, metavar="PORT", help="port of the Spark master, with --executors (default: any free port)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the jobs.

    Returns:
        0; 1 for an app that fails its check; failures are raised, except those of jobs that have been kept up.

    Raises:
        PenstockError: whatever is wrong with a spec, this machine, the run or its result.
    """
    end_in_order()
    if arguments.master_port and not arguments.executors:
        raise WrongUsage(path="--master-port", given=str(arguments.master_port), need="--executors N", fix="leave out --master-port")
    environment = load_environment(arguments.environment)
    arguments.specs = arguments.specs or _of_the_environment(environment)
    if arguments.master_port and arguments.keep and len(arguments.specs) > 1:
        need = "a single spec with --keep: each job has a master of its own"
        raise WrongUsage(path="--master-port", given=str(arguments.master_port), need=need, fix="leave out --master-port")
    if arguments.detach:
        names = [spec_in(environment, path).job.metadata.name for path in arguments.specs]
        return run_detached(arguments, "up", environment, names, more=() if arguments.keep else ("--keep",))
    steps = Steps()
    app_path = folders_of_apps(arguments.app_path, environment)
    jobs = _jobs(arguments, environment, app_path, steps)
    asked = [Asked(job.spec.path, tuple(app_path)) for job in jobs]
    if failed := check_first(asked, "table", wanted=not arguments.no_check):
        return failed
    for job in jobs:
        sys.stdout.write(plan_table.render(job.plan, job.name, screen_of(sys.stdout, os.environ)) + "\n")
        sys.stdout.flush()
    # Checked before anything is started, so that a port in use and missing jars are reported at once.
    refuse_used_port(arguments.master_port)
    layout.kafka_classpath()
    layout.spark_jars()
    folder = Path(tempfile.mkdtemp(prefix="penstock-up-"))
    try:
        with ExitStack() as held:
            return _run_all(jobs, arguments, environment, folder, steps, held)
    except PenstockError:
        _keep_logs(folder, steps)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _of_the_environment(environment: Environment) -> list[Path]:
    if not environment.spec.jobs:
        need = "a SPEC, or an environment with jobs"
        raise WrongUsage(path="SPEC", given=f"none, and environment {environment.name} has no jobs", need=need, fix="name a spec")
    # As they are named from here.
    return [Path(os.path.relpath(path)) for path in environment.spec.job_paths]


def _jobs(arguments: argparse.Namespace, environment: Environment, app_path: list[Path], steps: Steps) -> list[Job]:
    """The jobs with their plans; all their faults are found here."""
    jobs: list[Job] = []
    faults: list[PenstockError] = []
    for path in arguments.specs:
        try:
            jobs.append(_job(spec_in(environment, path), app_path, steps))
        except PenstockError as error:
            faults.extend(error.errors)
    # Jobs that are kept up run at the same time.
    at_once = len(arguments.specs) if arguments.keep else 1
    too_many = local_machine.too_many((arguments.executors or 0) * at_once)
    raise_all([*too_many, *faults, *_namesakes(jobs), *_fed_twice(jobs), *([] if arguments.keep else _without_input(jobs))])
    return jobs


def _namesakes(jobs: list[Job]) -> list[PenstockError]:
    """Jobs with the name of an earlier one: topics, checkpoint and output would be the same."""
    first: dict[str, Job] = {}
    faults: list[PenstockError] = []
    for job in jobs:
        before = first.setdefault(job.name, job)
        if before is not job:
            fault = Contradiction(
                need=f"a unique name; {before.spec.path} already uses this one", fix="rename one of them, or run the jobs one by one"
            )
            faults.append(job.spec.document.locate(fault, ("metadata", "name")))
    return faults


def _fed_twice(jobs: list[Job]) -> list[PenstockError]:
    """Jobs whose input goes to a topic that an earlier one also fills: each would read the other's records as well."""
    first: dict[str, Job] = {}
    faults: list[PenstockError] = []
    for job in jobs:
        for topic in job.generators:
            before = first.setdefault(topic, job)
            if before.name != job.name:
                fault = Contradiction(
                    need=f"topics without input of another job; {before.name} has input for them", fix="run them one by one"
                )
                faults.append(job.spec.document.locate(fault, ("spec", "local", "input", topic)))
    return faults


def _without_input(jobs: list[Job]) -> list[PenstockError]:
    """Jobs without input: there would be nothing to check."""
    fault = "input for at least one topic"
    fix = "add spec.local.input, or produce to the topics yourself with --keep"
    return [
        job.spec.document.locate(MissingField(path="spec.local.input", need=fault, fix=fix), ("spec", "local", "input"))
        for job in jobs
        if not job.generators and not job.spec.job.spec.local.connections
    ]


def _job(spec: SpecFile, app_path: list[Path], steps: Steps) -> Job:
    raise_all(without_server(spec))
    planned = plan(targets(spec, app_path))
    own = app_packages.checked(spec)
    raise_violations(planned.violations)
    folders = (spec.path.parent.resolve(), *(folder.resolve() for folder in app_path))
    installed = app_packages.install(own, steps)
    # Last: this process has packages that the image does not have, and they must be its own versions.
    sys.path.extend(str(folder) for folder in installed.path if str(folder) not in sys.path)
    return Job(spec, planned, folders, local_input.generators(spec, folders), local_input.expectation(spec, folders), installed)


def _run_all(jobs: list[Job], arguments: argparse.Namespace, environment: Environment, folder: Path, steps: Steps, held: ExitStack) -> int:
    steps.title(f"environment {environment.name}")
    ports = {"aws_port": arguments.aws_port, "kafka_port": arguments.kafka_port}
    local = LocalEnvironment(environment, folder=folder, all_stacks=arguments.all_stacks, **ports)
    with steps.at("start", "starting an emulated AWS (moto) and Apache Kafka in KRaft mode") as step:
        held.enter_context(local)
        step.said = f"emulated AWS at {local.aws.endpoint}, Kafka at {local.kafka.address}"
    for job in jobs:
        settings = {name: asked.config for name, asked in asked_topics([job.spec]).items()}
        kafka_topics.create(local.kafka.address, job.plan.kafka.topics, settings)
    steps.line("topics", "\n".join(", ".join(f"{topic} ({count})" for topic, count in job.plan.kafka.topics.items()) for job in jobs))
    runs = [_local_run(job, arguments, local, folder, steps) for job in jobs]
    with steps.at("buckets", "synthesizing the stack with cdktf and applying it with Terraform") as step:
        local.wait_for_buckets()
        step.said = f"{environment.spec.buckets.checkpoints}, {environment.spec.buckets.output}"
    try:
        _run_each(runs, local, steps, held if arguments.keep else None)
    except PenstockError as error:
        # Nobody looks at what has failed in the background: its error is told by who waits for it.
        if not arguments.keep or awaited():
            raise
        return stay_after(error, runs, local, steps)
    with steps.at("apply", "applying the remaining resources with Terraform") as step:
        step.said = "\n".join(_applied(name, applied) for name, applied in local.applied().items())
    if arguments.all_stacks:
        _plan_again(local, steps)
    if arguments.keep:
        stay(runs, local, steps)
    return 0


def _local_run(job: Job, arguments: argparse.Namespace, local: LocalEnvironment, folder: Path, steps: Steps) -> LocalRun:
    """A run of a job, with the servers for its connections."""
    servers = LocalServers(job.spec, (*job.app_path, *job.packages.path), folder / f"{job.name}-servers")
    asked = job.spec.job.spec.local.connections
    if asked:
        with steps.at("servers", f"starting {', '.join(f'{one.kind} for {name}' for name, one in asked.items())}") as step:
            step.said = local.serve(servers).said()
    lines = {name: len(some) for name, some in servers.lines.items()}
    executors = arguments.executors
    machine = local_machine.cut_to_executors(job.plan, executors) if executors else local_machine.cut(job.plan)
    given = {"lines": lines, "connections": servers.urls, "master_port": arguments.master_port}
    return LocalRun(job, local, machine, folder / job.name, steps, **given)


def _plan_again(local: LocalEnvironment, steps: Steps) -> None:
    """Checks that a second plan is empty.

    Raises:
        StacksDiffer: RUN-018.
    """
    with steps.at("plan", "planning every stack again with Terraform") as step:
        differing = local.differing()
        if differing:
            fix = "see terraform-plan.log of the stack: the emulated AWS returns other values than were applied"
            raise StacksDiffer(path=", ".join(differing), given="a plan with changes", need="no changes right after an apply", fix=fix)
        step.said = "no changes"


def _applied(stack: str, applied: Applied) -> str:
    kinds = Counter(change.address.split(".")[0] for change in applied.changes if change.action == "create")
    listed = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items()))
    return f"stack {stack}: {applied}\n{textwrap.fill(listed, _WIDTH, break_on_hyphens=False)}"


def _run_each(runs: list[LocalRun], local: LocalEnvironment, steps: Steps, keep: ExitStack | None) -> None:
    """Runs the jobs one after another; the failure of one does not keep the others from running. Several end with a table of all.

    Raises:
        PenstockError: the failures of all jobs, or that of what all of them need.
    """
    failed: list[PenstockError] = []
    ended: list[EndedRun] = []
    try:
        for one in runs:
            before = len(failed)
            ended.append(_ended(one, steps, keep, failed))
            local.check()
            if len(failed) > before and one is not runs[-1]:
                steps.line("failed", f"{one.job.name}: {failed[before].code}; the errors follow after the other jobs")
    finally:
        if len(runs) > 1:
            ended += [EndedRun(one.job.name, "not finished") for one in runs[len(ended) :]]
            sys.stdout.write(runs_table.render(ended, screen_of(sys.stdout, os.environ)))
            sys.stdout.flush()
    raise_all(failed)


def _ended(one: LocalRun, steps: Steps, keep: ExitStack | None, failed: list[PenstockError]) -> EndedRun:
    """Runs a job and checks it; its failures go to `failed`."""
    name = one.job.name
    try:
        outcome, judged = _run_one(one, steps, keep)
    except PenstockError as error:
        failed.extend(error.errors)
        return EndedRun(name, f"failed: {error.errors[0].code}, {error.errors[0].title}")
    counts = Counts(outcome.rows_in, outcome.rows, outcome.quarantined, outcome.late)
    if judged.differences:
        failed.append(wrong(name, judged))
        return EndedRun(name, WRONG, counts)
    return EndedRun(name, CORRECT if judged.compared else NOT_COMPARED, counts)


def _run_one(one: LocalRun, steps: Steps, keep: ExitStack | None) -> tuple[Outcome, Verdict]:
    """Runs a job until its input is processed, and checks it; its driver ends with that, or with `keep`."""
    steps.title(f"job {one.job.name}")
    for cut in one.machine.cuts:
        steps.line("scaled down", cut)
    with ExitStack() as own:
        if one.bounded:
            _feed(one, steps)
        driver = (keep or own).enter_context(one.driver())
        if not one.bounded:
            _feed(one, steps)
        one.process(driver)
        return check(one, steps)


def _feed(one: LocalRun, steps: Steps) -> None:
    if not one.job.generators:
        # A server sends its lines on its own.
        return
    with steps.at("input", "generating input records") as step:
        records = one.records()
        step.said = f"{sum(len(some) for some in records.values()):,} records generated"
    one.feed(records)


def _keep_logs(folder: Path, steps: Steps) -> None:
    """After a failure the logs are kept, in a folder of their own, and named; everything else is removed."""
    logs = [log for pattern in _LOGS for log in folder.rglob(pattern) if log.stat().st_size]
    if logs:
        kept = Path(tempfile.mkdtemp(prefix="penstock-logs-"))
        for log in logs:
            shutil.copy(log, kept / "-".join(log.relative_to(folder).parts))
        steps.line("logs", str(kept))


def _executors(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of executors: use 1 or more")
    return int(text)
