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
from penstock.scripts.provisioning import workplace
from penstock.scripts.security import gate, waivers
from penstock.scripts.security.gate import WAIVERS, Scanned
from penstock.scripts.security.waivers import Waiver
from penstock.sizing.errors import raise_all
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument(
        "--waivers", type=Path, default=WAIVERS, metavar="FILE", help="waivers of accepted findings (default: infra/waivers.toml)"
    )
    workplace.add_limit_argument(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Scans the stacks, the manifests and the image's Dockerfile.

    Returns:
        0; findings are raised.

    Raises:
        PenstockError: SEC-001 to SEC-004 and SEC-008 for the gate's findings, all at once; SEC-005 to SEC-007 and those of a
            synth and a plan.
    """
    environment = chosen(arguments)
    planned = deployable_plans(environment)
    waived = waivers.read(arguments.waivers)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    steps = Steps()
    with tempfile.TemporaryDirectory(prefix="penstock-scan-") as folder:
        scanned = gate.run(environment, planned, Path(folder), waived=waived, today=today, show=steps.at, limit_s=arguments.limit_s)
    if arguments.output == "table":
        _show(scanned, steps)
    elif not scanned.faults:
        # Faults are printed by the command, in the same form for every verb.
        sys.stdout.write(as_text(_document(scanned), arguments.output))
    raise_all(scanned.faults)
    return 0


def _show(scanned: Scanned, steps: Steps) -> None:
    for part, count in scanned.resources.items():
        steps.line("", f"{part}: {count}{', not changed since its last scan' if part in scanned.kept else ''}")
    by_waiver: dict[Waiver, list[str]] = {}
    for finding, waiver in scanned.waived:
        by_waiver.setdefault(waiver, []).append(finding.path)
    for waiver, paths in by_waiver.items():
        listed = "\n".join(dict.fromkeys(paths))
        steps.line("waived", f"{waiver.rule} until {waiver.expires}: {waiver.reason}\n{listed}")
    left = len(scanned.findings)
    steps.line("findings", f"{left} not waived, {len(scanned.waived)} waived")


def _document(scanned: Scanned) -> dict[str, object]:
    waived = [{**finding.model_dump(), "reason": waiver.reason, "expires": str(waiver.expires)} for finding, waiver in scanned.waived]
    return {"schemaVersion": SCHEMA_VERSION, "scanned": scanned.resources, "unchanged": list(scanned.kept), "waived": waived}
