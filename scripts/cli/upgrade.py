"""``penstock upgrade``: whether changed jobs can go on with the state that they have, what their changes mean, and which rows differ then.
Nothing outside is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.query_record import QueryRecord
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.cli.upgrade_preview import add_preview_arguments, preview
from penstock.scripts.installation import app_packages
from penstock.scripts.operations.another_parallelism import planned_partitions
from penstock.scripts.operations.changes_of_jobs import rendered
from penstock.scripts.operations.deployed_job import jobs_of
from penstock.scripts.operations.job_changes import JobChanges, job_changes
from penstock.scripts.operations.upgrade_check import UpgradeCheck, Verdict, checked
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps, with_app_path
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render.screen import screen_of
from penstock.scripts.render.table import Column, Row, Styled, table
from penstock.sizing.errors import CheckFailed
from penstock.sizing.planned import SCHEMA_VERSION

_STYLES: dict[Verdict, str] = {
    "goes on": "green",
    "no state yet": "green",
    "not known": "yellow",
    "begins without": "yellow",
    "refused": "red",
}
_COLUMNS = (Column("job"), Column("state"), Column("generation", right=True), Column("why", wraps=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, help_ in (
        ("check", "check whether jobs can go on with their state"),
        ("plan", "show what changes jobs, and what each change means"),
        ("preview", "run a job as it runs and as it is here over the same records, and show which rows differ"),
    ):
        action = actions.add_parser(name, help=help_, allow_abbrev=False)
        add_environment_argument(action)
        add_app_path_argument(action)
        if name == "preview":
            add_preview_arguments(action)
        else:
            action.add_argument(
                "--job", action="append", default=[], metavar="NAME", help="a job of the environment (default: all); repeatable"
            )
        add_output_argument(action)


def run(arguments: argparse.Namespace) -> int:
    """Checks jobs as they are in the environment's files against the generations that are deployed, or shows how they differ
    and what they would write.

    Returns:
        0, or 1 if a job can't go on with its state.

    Raises:
        PenstockError: TOOL-016, TOOL-020, Spark's jars are missing; TOOL-050; what is wrong with a spec or an app; JOB-008, JOB-009.
    """
    environment = chosen(arguments)
    if arguments.action == "preview":
        return preview(arguments, environment)
    specs = jobs_of(environment, arguments.job)
    aws = AwsAccess(environment)
    if arguments.action == "plan":
        return _plan(arguments, environment, aws)
    aws.check_account()
    now = _now(specs, arguments, environment, Steps())
    bucket, s3 = environment.spec.buckets.checkpoints, aws.client("s3")
    planned = planned_partitions(environment)
    names = [spec.job.metadata.name for spec in specs]
    results = [checked(spec, now[name], planned[name], bucket, s3) for name, spec in zip(names, specs, strict=True)]
    if arguments.output == "table":
        _print(environment, results)
    else:
        _dump(environment, results, arguments.output)
    return CheckFailed.exit_code if any(one.verdict == "refused" for one in results) else 0


def _plan(arguments: argparse.Namespace, environment: Environment, aws: AwsAccess) -> int:
    planned = plans(with_app_path(environment, arguments.app_path))
    aws.check_account()
    folders = folders_of_apps(arguments.app_path, environment)
    jobs = job_changes(planned, environment, aws.client("s3"), arguments.job, folders)
    if arguments.output == "table":
        sys.stdout.write(rendered(jobs, screen_of(sys.stdout, os.environ)) if jobs else f"environment {environment.name} has no jobs\n")
    else:
        _dump(environment, jobs, arguments.output)
    return CheckFailed.exit_code if any(one.impossible for one in jobs) else 0


def _dump(environment: Environment, results: Sequence[UpgradeCheck | JobChanges], output: str) -> None:
    document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name}
    listed = [one.model_dump(by_alias=True, mode="json") for one in results]
    sys.stdout.write(as_text({**document, "jobs": listed}, output))


def _now(
    specs: Sequence[SpecFile], arguments: argparse.Namespace, environment: Environment, steps: Steps
) -> dict[str, dict[str, QueryRecord]]:
    """Job -> what its queries keep."""
    if not specs:
        return {}
    # PySpark takes long to import.
    from penstock.jobs.driver.check import stored_queries
    from penstock.scripts.checking.session import analyzing

    folders = folders_of_apps(arguments.app_path, environment)
    packages = {spec.path: app_packages.install(app_packages.checked(spec), steps) for spec in specs}
    jars = list(dict.fromkeys(jar for one in packages.values() for jar in one.jars))
    steps.line("upgrade", "starting Spark, which analyzes the queries of the apps")
    found = {}
    with analyzing(jars) as (session, folder):
        for spec in specs:
            with steps.at("upgrade", str(spec.path)):
                found[spec.job.metadata.name] = stored_queries(spec, folders, session, folder, packages[spec.path].path)
    return found


def _print(environment: Environment, results: Sequence[UpgradeCheck]) -> None:
    screen = screen_of(sys.stdout, os.environ)
    if not results:
        sys.stdout.write(f"environment {environment.name} has no jobs\n")
        return
    rows: list[Row] = [
        [one.job, Styled(one.verdict, _STYLES[one.verdict]), str(one.generation or "-"), "; ".join([*one.reasons, *one.notes]) or "-"]
        for one in results
    ]
    sys.stdout.write("\n".join([f"jobs of {environment.name}, and the state that they have", "", *table(_COLUMNS, rows, screen)]) + "\n")
