"""``penstock scan``: the security gate, on the resources of an environment's stacks, without AWS."""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path

from penstock.infra.deployable import deployable_plans
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.security import gate, waivers
from penstock.scripts.security.gate import WAIVERS, Scanned
from penstock.sizing.errors import raise_all
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument(
        "--waivers", type=Path, default=WAIVERS, metavar="FILE", help="waivers of accepted findings (default: infra/waivers.toml)"
    )
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Scans the stacks, the manifests and the image's Dockerfile.

    Returns:
        0; findings are raised.

    Raises:
        PenstockError: SEC-001 to SEC-004 for the gate's findings, all at once; SEC-005 to SEC-007 and those of a synth and a plan.
    """
    environment = chosen(arguments)
    planned = deployable_plans(environment)
    waived = waivers.read(arguments.waivers)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    steps = Steps()
    with tempfile.TemporaryDirectory(prefix="penstock-scan-") as folder, steps.at("scan", "synthesizing the stacks") as step:
        scanned = gate.run(environment, planned, Path(folder), waived=waived, today=today, progress=step.watch)
        step.said = f"{sum(scanned.resources.values())} resources and manifests of {len(scanned.resources)} stacks, and the image"
    if arguments.output == "table":
        _show(scanned, steps)
    elif not scanned.faults:
        # Faults are printed by the command, in the same form for every verb.
        sys.stdout.write(as_text(_document(scanned), arguments.output))
    raise_all(scanned.faults)
    return 0


def _show(scanned: Scanned, steps: Steps) -> None:
    for part, count in scanned.resources.items():
        steps.line("", f"{part}: {count}")
    for finding, waiver in scanned.waived:
        steps.line("waived", f"{finding.rule} {finding.path} until {waiver.expires}\n{waiver.reason}")
    left = len(scanned.findings)
    steps.line("findings", f"{left} not waived, {len(scanned.waived)} waived")


def _document(scanned: Scanned) -> dict[str, object]:
    waived = [{**finding.model_dump(), "reason": waiver.reason, "expires": str(waiver.expires)} for finding, waiver in scanned.waived]
    return {"schemaVersion": SCHEMA_VERSION, "scanned": scanned.resources, "waived": waived}
