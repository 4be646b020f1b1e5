"""``penstock cost``: a job's share of the AWS bill, and the difference between two specs or two environments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from penstock.infra.environment_file import DEFAULT_ENVIRONMENT
from penstock.infra.sessions import session_of
from penstock.scripts.cli.environment_argument import add_environment_options
from penstock.scripts.cli.output import as_text
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.planned_jobs import (
    add_planning_arguments,
    add_prices_argument,
    planned_job,
    where,
)
from penstock.scripts.render import cost_markdown, cost_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.difference import difference
from penstock.sizing.errors import Infeasible
from penstock.sizing.planned import SCHEMA_VERSION, Plan
from penstock.sizing.violation import raise_violations

FORMATS = ("table", "json", "yaml", "markdown")


class Priced(NamedTuple):
    """A job in an environment, with its bill.

    Args:
        spec: the file of its spec, as it was named.
        name: its name.
        environment: name of the environment.
        plan: what it needs.
        bill: what that costs.
        session: of the environment, in which it runs; its bill is that of a driver of its own. None: it has one.
    """

    spec: Path
    name: str
    environment: str
    plan: Plan
    bill: Bill
    session: str | None = None

    @property
    def title(self) -> str:
        """The job and the environment as a title."""
        return f"{self.name} in {self.environment}{self._apart}"

    @property
    def title_with_file(self) -> str:
        """The title of one of two specs: versions of a job have the same name."""
        return f"{self.name} ({self.spec}) in {self.environment}{self._apart}"

    @property
    def _apart(self) -> str:
        return "" if self.session is None else f" (as if outside of session {self.session}, which penstock size prices)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("specs", nargs="+", type=Path, metavar="SPEC", help="job spec; with two, show the difference")
    add_environment_options(parser, "given twice, show the difference")
    add_planning_arguments(parser)
    add_prices_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        default=FORMATS[0],
        help="output format; markdown suits a pull request comment (default: table)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the bill, or the difference.

    Returns:
        0, or 3 if a plan is infeasible; what is planned is priced anyway.
    """
    priced = [_priced(spec, name, arguments) for spec, name in compared(arguments.specs, arguments.environment)]
    sys.stdout.write(_rendered(priced, arguments.output))
    sys.stdout.flush()
    for one in priced:
        for violation in one.plan.violations:
            print(violation.render(), file=sys.stderr)
    return 0 if all(one.plan.feasible for one in priced) else Infeasible.exit_code


def compared(specs: Sequence[Path], environments: Sequence[str]) -> list[tuple[Path, str]]:
    """Which spec is priced in which environment: one pair, or two to compare.

    Raises:
        WrongUsage: USE-001, for three of a kind.
    """
    if len(specs) > 2 or len(environments) > 2:
        given = f"{len(specs)} specs, {len(environments)} environments"
        raise WrongUsage(given=given, need="at most two of each: one for a bill, two for the difference", fix="penstock cost --help")
    named = environments or [DEFAULT_ENVIRONMENT]
    first = (specs[0], named[0])
    return [first, (specs[-1], named[-1])] if len(specs) == 2 or len(named) == 2 else [first]


def _priced(spec: Path, environment: str, arguments: argparse.Namespace) -> Priced:
    job = planned_job(spec, where(environment, arguments.catalog, arguments.prices), arguments.app_path)
    name = job.where.environment.name
    if job.plan.cost is None:
        raise_violations(job.plan.violations)
        need = "an environment with a cluster (network, eks and nodes) in a region with known prices"
        raise WrongUsage(given=f"environment {name}", need=need, fix=f"--environment {DEFAULT_ENVIRONMENT}")
    return Priced(spec, job.name, name, job.plan, job.plan.cost, session_of(job.where.environment, job.name))


def _rendered(priced: Sequence[Priced], output: str) -> str:
    if len(priced) == 1:
        return _rendered_bill(priced[0], output)
    before, after = priced
    of, to = (one.title if before.spec == after.spec else one.title_with_file for one in priced)
    result = difference(before.bill, after.bill)
    if output == "table":
        return cost_table.render_difference(result, of, to, screen_of(sys.stdout, os.environ))
    if output == "markdown":
        return cost_markdown.render_difference(result, of, to)
    changes = result.model_dump(mode="json", by_alias=True, exclude={"before", "after"})
    sides = {"before": _document(before), "after": _document(after)}
    return as_text({"schemaVersion": SCHEMA_VERSION, **sides, "difference": changes}, output)


def _rendered_bill(one: Priced, output: str) -> str:
    if output == "table":
        return cost_table.render(one.bill, one.title, screen_of(sys.stdout, os.environ))
    if output == "markdown":
        return cost_markdown.render(one.bill, one.title)
    return as_text({"schemaVersion": SCHEMA_VERSION, **_document(one)}, output)


def _document(one: Priced) -> dict[str, Any]:
    bill = one.bill.model_dump(mode="json", by_alias=True)
    session = {} if one.session is None else {"session": one.session}
    place = {"name": one.name, "spec": str(one.spec), "environment": one.environment, **session}
    return {**place, "feasible": one.plan.feasible, "bill": bill}
