"""``penstock size``: from job specs to plans, without Spark, cdktf or AWS."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.infra.sessions import session_plans
from penstock.scripts.checking.checks import Asked
from penstock.scripts.cli.check import add_no_check_argument, check_first
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.app_path import folders_of_apps
from penstock.scripts.planning.files_input import add_files_argument
from penstock.scripts.planning.planned_jobs import (
    PlannedJob,
    Where,
    add_planning_arguments,
    add_prices_argument,
    planned_job,
    where,
)
from penstock.scripts.render import alternatives_table, node_picture, plan_table, session_table, together_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import Infeasible
from penstock.sizing.plan.alternatives import Alternative, alternatives
from penstock.sizing.plan.session import SessionPlan
from penstock.sizing.plan.together import Together, plan_together
from penstock.sizing.planned import SCHEMA_VERSION, Plan
from penstock.sizing.violation import Violation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC", help="job spec (YAML); several are planned on shared nodes")
    add_environment_option(parser)
    add_planning_arguments(parser)
    add_prices_argument(parser)
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="file of `penstock profile`, in place of the throughput in the spec's load"
    )
    add_files_argument(parser)
    add_no_check_argument(parser)
    add_output_argument(parser)
    parser.add_argument("--explain", action="store_true", help="show the rule and inputs behind each number, and executors of other sizes")
    parser.add_argument(
        "--from-flink",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="convert a FlinkDeployment to a job spec, or a session cluster and its FlinkSessionJobs to the specs of a session",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="SPEC.yaml",
        help="with --from-flink: also write the spec to this file, or those of a session to this folder",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the plan, or all the plans and their combined requirements.

    Returns:
        0; 3 for an infeasible plan, which is printed anyway; 1 for an app that fails its check.
    """
    _check(arguments)
    if arguments.from_flink is not None:
        from penstock.scripts.cli import from_flink  # only here: a plan needs nothing of Flink

        return from_flink.run(arguments.from_flink, arguments.output, arguments.out)
    location = where(arguments.environment, arguments.catalog, arguments.prices, partial=True)
    asked = {"profile": arguments.profile, "files": arguments.files}
    jobs = [planned_job(spec, location, arguments.app_path, **asked) for spec in arguments.specs]
    _check_names(jobs)
    checked = [Asked(job.spec.path, tuple(folders_of_apps(arguments.app_path, location.environment))) for job in jobs if job.has_app]
    if failed := check_first(checked, arguments.output, wanted=not arguments.no_check):
        return failed
    return _one(jobs[0], arguments) if len(jobs) == 1 else _several(jobs, location, arguments)


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.specs) == (arguments.from_flink is not None):
        given = "both a SPEC and --from-flink" if arguments.specs else "no SPEC"
        raise WrongUsage(given=given, need="job specs, or --from-flink with its files", fix="penstock size --help")
    if arguments.out is not None and arguments.from_flink is None:
        raise WrongUsage(given=f"--out {arguments.out}", need="--out only together with --from-flink", fix="remove it")
    if arguments.profile is not None and len(arguments.specs) != 1:
        given = f"--profile {arguments.profile} with {len(arguments.specs)} specs"
        raise WrongUsage(given=given, need="one SPEC: a profile is of one job", fix="name profiles in the specs: load.profile")
    if arguments.files and len(arguments.specs) != 1:
        given = f"--files with {len(arguments.specs)} specs"
        raise WrongUsage(given=given, need="one SPEC: a source is of one job", fix="state the files in the specs: files.input")


def _check_names(jobs: Sequence[PlannedJob]) -> None:
    names = [job.name for job in jobs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        files = ", ".join(str(job.spec.path) for job in jobs if job.name == twice)
        raise WrongUsage(given=f"the job {twice} in {files}", need="unique job names", fix="specify each spec once")


def _one(job: PlannedJob, arguments: argparse.Namespace) -> int:
    if arguments.output == "table":
        screen = screen_of(sys.stdout, os.environ)
        sys.stdout.write(plan_table.render(job.plan, job.name, screen))
        _draw(job.plan)
        if arguments.explain:
            sys.stdout.write(alternatives_table.render(_alternatives(job), screen))
            sys.stdout.write(plan_table.render_explanations(job.plan, screen))
        _print_violations(job.plan.violations)
    else:
        sys.stdout.write(as_text(_document(job, explain=arguments.explain), arguments.output))
    return 0 if job.plan.feasible else Infeasible.exit_code


def _several(jobs: Sequence[PlannedJob], location: Where, arguments: argparse.Namespace) -> int:
    if location.cluster is None:
        need = "an environment with a cluster, for jobs to share"
        raise WrongUsage(
            given=f"the environment {location.environment.name}", need=need, fix="size them one by one, or use another environment"
        )
    own = {job.name: job.plan for job in jobs}
    # Of which all jobs are here.
    sessions = session_plans(location.environment, own, location.cluster)
    # They share nodes, of which nothing is known without instance types.
    shared = None if location.cluster.catalog.is_unknown else plan_together(own, location.cluster, sessions)
    if arguments.output == "table":
        _print_several(jobs, sessions, shared, explain=arguments.explain)
    else:
        plans = {job.name: _document(job, explain=arguments.explain) for job in jobs}
        together = None if shared is None else shared.model_dump(mode="json", by_alias=True)
        of_sessions = {name: session.model_dump(mode="json", by_alias=True) for name, session in sessions.items()}
        document = {"schemaVersion": SCHEMA_VERSION, "jobs": plans, "sessions": of_sessions, "together": together}
        sys.stdout.write(as_text(document, arguments.output))
    apart = all(plan.feasible for plan in own.values()) and all(session.feasible for session in sessions.values())
    feasible = apart if shared is None else shared.feasible
    return 0 if feasible else Infeasible.exit_code


def _print_several(jobs: Sequence[PlannedJob], sessions: Mapping[str, SessionPlan], shared: Together | None, *, explain: bool) -> None:
    screen = screen_of(sys.stdout, os.environ)
    for job in jobs:
        sys.stdout.write(plan_table.render(job.plan, job.name, screen) + "\n")
        if explain:
            sys.stdout.write(alternatives_table.render(_alternatives(job), screen))
            sys.stdout.write(plan_table.render_explanations(job.plan, screen) + "\n")
    for name, session in sessions.items():
        sys.stdout.write(session_table.render(name, session, screen) + "\n")
    if shared is not None:
        sys.stdout.write(together_table.render(shared, [job.name for job in jobs], screen))
        sys.stdout.write("\n" + node_picture.for_stream(shared.nodes, sys.stdout, os.environ))
    for job in jobs:
        _print_violations(job.plan.violations)
    for session in sessions.values():
        _print_violations(session.violations)
    _print_violations(() if shared is None else shared.violations)


def _draw(plan: Plan) -> None:
    if plan.nodes is not None:
        sys.stdout.write("\n" + node_picture.for_stream(plan.nodes, sys.stdout, os.environ))


def _print_violations(violations: Sequence[Violation]) -> None:
    sys.stdout.flush()
    for violation in violations:
        print(violation.render(), file=sys.stderr)


def _document(job: PlannedJob, *, explain: bool) -> dict[str, Any]:
    document = job.plan.model_dump(mode="json", by_alias=True, exclude=None if explain else {"explain"})
    if explain:
        document["alternatives"] = [one.model_dump(mode="json", by_alias=True) for one in _alternatives(job)]
    return document


def _alternatives(job: PlannedJob) -> tuple[Alternative, ...]:
    return alternatives(job.targets, job.plan, job.where.cluster)
