"""``penstock report``: the plan as one self-contained HTML page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.errors import NoPage, ReportNotWritten
from penstock.scripts.planning.planned_jobs import (
    add_planning_arguments,
    add_prices_argument,
    planned_job,
    where,
)
from penstock.scripts.render.report import page
from penstock.sizing.errors import Infeasible

_SUFFIXES = (".html", ".htm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="job spec (YAML)")
    add_environment_option(parser)
    add_planning_arguments(parser)
    add_prices_argument(parser)
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="output file (default: <job>-report.html in the current folder)")


def run(arguments: argparse.Namespace) -> int:
    """Writes the page and prints its path.

    Returns:
        0, or 3 for an infeasible plan; its page is written anyway.
    """
    location = where(arguments.environment, arguments.catalog, arguments.prices)
    job = planned_job(arguments.spec, location, arguments.app_path)
    out: Path = arguments.out or Path(f"{job.name}-report.html")
    check(out)
    write(out, page.render(job.plan, job.name, location.environment.name, job.targets.load))
    print(out, flush=True)
    for violation in job.plan.violations:
        print(violation.render(), file=sys.stderr)
    return 0 if job.plan.feasible else Infeasible.exit_code


def check(out: Path) -> None:
    """Rejects a path that is not an HTML file, such as the spec's own, which would be overwritten.

    Raises:
        NoPage: USE-041.
    """
    if out.suffix.lower() not in _SUFFIXES:
        raise NoPage(path="--out", given=str(out), need=f"a file name ending in {' or '.join(_SUFFIXES)}", fix=f"--out {out}.html")


def write(out: Path, text: str) -> None:
    """Writes a page.

    Raises:
        ReportNotWritten: USE-040.
    """
    try:
        # A user's path need not be valid UTF-8.
        out.write_bytes(text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        need = f"a file in a writable directory: {error.strerror or error}"
        raise ReportNotWritten(path="--out", given=str(out), need=need, fix="create the directory, or specify another --out") from None
