"""``penstock rehearse``: applies an environment's AWS stacks to emulators, plans them again and destroys them, before AWS sees them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE
from penstock.scripts.errors import ReportNotWritten
from penstock.scripts.local.emulated_stacks import EmulatedStacks
from penstock.scripts.local.rehearsal import Rehearsal
from penstock.scripts.local.working_folder import emptied
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import workplace
from penstock.scripts.render import junit_report, rehearsal_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.planned import SCHEMA_VERSION

DEFAULT_FOLDER = Path(".penstock/rehearsed")
_WORK = "work"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument(
        "--localstack",
        action="store_true",
        help=f"LocalStack in moto's place for what its free edition has (default: if {ENDPOINT_VARIABLE} is set)",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write a JUnit report, for a CI server")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for the stacks, states and logs (default: {DEFAULT_FOLDER}/ENV)")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rehearses.

    Returns:
        0; with ``-o json`` and ``-o yaml``, whose document has the faults of the stages, the exit code of these.

    Raises:
        PenstockError: USE-040, RUN-018, EMU-003, and whatever is wrong with the environment, this machine, LocalStack or Terraform.
        KeyboardInterrupt: once Terraform has ended.
    """
    end_in_order()
    environment, steps = chosen(arguments), Steps()
    _refuse_unwritable(arguments.junit)
    found: list[PenstockError] = []
    folder = (arguments.out or DEFAULT_FOLDER / environment.name).absolute()
    try:
        with workplace.held(folder, "rehearse"), emptied(folder / _WORK, steps) as work:
            found += _rehearse(environment, arguments, work, steps)
            raise_all(found)
    except PenstockError as error:
        if not found or arguments.output == "table":
            raise
        # Standard output has its document.
        print(error.render(), file=sys.stderr)
        return max(fault.exit_code for fault in found)
    return 0


def _refuse_unwritable(report: Path | None) -> None:
    """Before the minutes that a rehearsal takes.

    Raises:
        ReportNotWritten: USE-040.
    """
    if report is None:
        return
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.open("ab").close()
    except OSError as error:
        need = f"a file in a writable directory: {error.strerror or error}"
        raise ReportNotWritten(path="--junit", given=str(report), need=need, fix="name another file") from None


def _rehearse(environment: Environment, arguments: argparse.Namespace, folder: Path, steps: Steps) -> list[PenstockError]:
    """The faults of the stages, after a report of all."""
    localstack = arguments.localstack or bool(os.environ.get(ENDPOINT_VARIABLE))
    steps.title(f"rehearsal of environment {environment.name} on {'LocalStack and moto' if localstack else 'moto'}")
    if environment.spec.observability.open_search is not None:
        steps.line("left out", "observability.openSearch: emulators do not carry a domain")
    steps.line("left out", "stacks for Kubernetes: emulators have no API server")

    def show(line: str) -> None:
        stack, _, text = line.partition(": ")
        steps.line(stack if text else "", text or stack)

    with EmulatedStacks(environment, folder=folder, localstack=localstack, progress=show) as emulated:
        steps.line("AWS", emulated.moto.endpoint)
        rehearsal = Rehearsal(emulated.stacks)
        try:
            rehearsal.run()
        finally:
            _report(rehearsal, environment, arguments)
    return rehearsal.errors


def _report(rehearsal: Rehearsal, environment: Environment, arguments: argparse.Namespace) -> None:
    """What has been done so far, also of a rehearsal that was interrupted."""
    cases = rehearsal.cases
    if arguments.junit is not None:
        arguments.junit.write_bytes(junit_report.render(cases, environment.name))
    if arguments.output == "table":
        sys.stdout.write(rehearsal_table.render(cases, screen_of(sys.stdout, os.environ)))
    else:
        stages = [case.model_dump(by_alias=True, mode="json") for case in cases]
        document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name, "stages": stages}
        sys.stdout.write(as_text(document, arguments.output))
    sys.stdout.flush()
