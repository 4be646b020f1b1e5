"""``penstock lint``: valid but risky configuration in job specs, environments and manifests, without a cluster or AWS."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.environment_file import DEFAULT_ENVIRONMENT
from penstock.scripts.checking.checks import Asked
from penstock.scripts.cli.check import add_no_check_argument, check_first
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import BadDate, NothingToLint, UnknownRule
from penstock.scripts.linting.environment import LintedEnvironment
from penstock.scripts.linting.jobs import JobToLint, job_to_lint
from penstock.scripts.linting.manifests import Manifests, read_manifests
from penstock.scripts.linting.subjects import subject_of
from penstock.scripts.planning.app_path import folders_of_apps
from penstock.scripts.planning.planned_jobs import add_planning_arguments
from penstock.scripts.planning.price_files import catalog_file
from penstock.scripts.render import lint_table as table
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.screen import screen_of
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.errors import CheckFailed, PenstockError, raise_all
from penstock.sizing.lint.finding import Finding
from penstock.sizing.lint.lint import RULES, lint
from penstock.sizing.lint.names import meant
from penstock.sizing.lint.subject import Subject
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC", help="job spec to lint together with its environment")
    add_environment_option(parser, None, default_text=f"{DEFAULT_ENVIRONMENT}, with a SPEC")
    parser.add_argument(
        "--manifest",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        metavar="FILE",
        help="Kubernetes manifests to lint: NodePool, EC2NodeClass, Pod, Deployment, StatefulSet, Job, SparkApplication ...",
    )
    add_planning_arguments(parser)
    add_no_check_argument(parser)
    parser.add_argument("--today", metavar="YYYY-MM-DD", help="date against which ends of support are checked (default: today)")
    parser.add_argument("--ignore", action="append", default=[], metavar="LINT-0xx", help="disable a rule; repeatable")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("--rules", action="store_true", help="list all rules and exit")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings.

    Returns:
        0, or 1 if there is an error among the findings, with --strict also for a warning, or if an app fails its check.

    Raises:
        PenstockError: USE-020 to USE-022 for the arguments; all faults of the documents at once.
    """
    if arguments.rules:
        _print_rules(arguments.output)
        return 0
    ignored = _ignored(arguments.ignore)
    today = _today(arguments.today)
    if not arguments.specs and not arguments.manifest and arguments.environment is None:
        need = "a job spec, --manifest FILE, or --environment ENV"
        raise NothingToLint(given="none", need=need, fix="penstock lint jobs/specs/user_credit.yaml")
    findings, environment = _findings(arguments, today, ignored)
    app_path = tuple(folders_of_apps(arguments.app_path, environment)) if environment is not None else ()
    asked = [Asked(spec, app_path) for spec in dict.fromkeys(arguments.specs)]
    if failed := check_first(asked, arguments.output, wanted=not arguments.no_check):
        return failed
    if arguments.output == "table":
        sys.stdout.write(table.render(findings, _looked_at(arguments), screen_of(sys.stdout, os.environ)))
    else:
        sys.stdout.write(as_text(_document(findings, today), arguments.output))
    grave = ("error", "warning") if arguments.strict else ("error",)
    return CheckFailed.exit_code if any(finding.severity in grave for finding in findings) else 0


def _findings(arguments: argparse.Namespace, today: str, ignored: frozenset[str]) -> tuple[tuple[Finding, ...], Environment | None]:
    """Findings in the environment with its jobs, and in the manifests, which are linted separately if they contain NodePools."""
    faults: list[PenstockError] = []
    manifests = _manifests(arguments.manifest, faults)
    environment, jobs = _jobs(arguments, faults)
    raise_all(faults)
    catalog = _catalog(arguments.catalog, environment)
    findings: list[Finding] = []
    if environment is not None:
        findings += lint(subject_of(environment, jobs, catalog, today), ignored)
    if any(manifests):
        findings += lint(_manifest_subject(manifests, environment, catalog, today), ignored)
    return tuple(dict.fromkeys(findings)), environment.there.environment if environment is not None else None


def _jobs(arguments: argparse.Namespace, faults: list[PenstockError]) -> tuple[LintedEnvironment | None, list[JobToLint]]:
    if not arguments.specs and arguments.environment is None:
        return None, []
    try:
        environment = LintedEnvironment(arguments.environment or DEFAULT_ENVIRONMENT, arguments.catalog)
    except PenstockError as error:
        faults += error.errors
        return None, []
    jobs: list[JobToLint] = []
    for path in arguments.specs:
        try:
            jobs.append(job_to_lint(path, arguments.app_path, environment))
        except PenstockError as error:
            faults += error.errors
    return environment, jobs


def _manifests(paths: Sequence[Path], faults: list[PenstockError]) -> Manifests:
    manifests = Manifests()
    for path in paths:
        try:
            manifests = manifests.plus(read_manifests(path))
        except PenstockError as error:
            faults += error.errors
    return manifests


def _catalog(path: Path | None, environment: LintedEnvironment | None) -> Catalog:
    if environment is not None and environment.cluster is not None:
        return environment.cluster.catalog
    return catalog_file(path) if path else shipped()


def _manifest_subject(manifests: Manifests, environment: LintedEnvironment | None, catalog: Catalog, today: str) -> Subject:
    zones = sorted({zone for instance in catalog.types for zone in instance.zones})
    return Subject(
        today=today,
        catalog=catalog,
        zones=tuple(zones),
        pools=manifests.pools or (environment.pools if environment else ()),
        pods=manifests.pods,
        confs=manifests.confs,
        manifests=manifests.manifests,
        budgets=manifests.budgets,
        all_pods=bool(manifests.pools),
    )


def _ignored(names: Sequence[str]) -> frozenset[str]:
    ids = [name.strip() for text in names for name in text.split(",")]
    faults = [
        UnknownRule(path="--ignore", given=name, need="a rule id", fix=meant(name.upper(), RULES, "penstock lint --rules"))
        for name in ids
        if name not in RULES
    ]
    raise_all(faults)
    return frozenset(ids)


def _today(text: str | None) -> str:
    if text is None:
        return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC).date().isoformat()
    except ValueError:
        raise BadDate(path="--today", given=text, need="a date such as 2026-11-21", fix="use the format YYYY-MM-DD") from None


def _looked_at(arguments: argparse.Namespace) -> str:
    """What was linted, in numbers: findings stand below the name of their file."""
    named = [counted(len(arguments.specs), "spec")] if arguments.specs else []
    if arguments.specs or arguments.environment:
        named.append(f"environment {arguments.environment or DEFAULT_ENVIRONMENT}")
    if arguments.manifest:
        named.append(counted(len(arguments.manifest), "manifest file"))
    return ", ".join(named)


def _document(findings: Sequence[Finding], today: str) -> dict[str, object]:
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in ("error", "warning", "info")}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "today": today,
        "counts": numbers,
        "findings": [finding.as_json() for finding in findings],
    }


def _print_rules(output: str) -> None:
    if output == "table":
        sys.stdout.write(table.render_rules(RULES.values(), screen_of(sys.stdout, os.environ)))
        return
    rules = [{"id": one.id, "severity": one.severity, "title": one.title, "why": one.why, "fix": one.fix} for one in RULES.values()]
    sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, "rules": rules}, output))
