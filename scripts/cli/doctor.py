"""``penstock doctor``: missing prerequisites on this machine and, for an environment, on AWS; and how to get them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen_or_none
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.provisioning import machine
from penstock.scripts.provisioning.finding import MISSING, OK, OPTIONAL, Finding
from penstock.scripts.render.screen import screen_of
from penstock.scripts.render.table import Column, Styled, table
from penstock.sizing.errors import ToolMissing
from penstock.sizing.planned import SCHEMA_VERSION

_STYLES = {OK: "green", MISSING: "red", OPTIONAL: "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reports missing prerequisites.

    Returns:
        0, or 4 if something required is missing.
    """
    environment = chosen_or_none(arguments)
    has_charts = environment is not None and environment.spec.eks is not None and environment.spec.endpoints is None
    groups = {"this machine": machine.look(also_needed=["aws"] if has_charts else [])}
    if environment is not None:
        from penstock.scripts.provisioning import cloud  # boto3 takes half a second, and only this needs it
        from penstock.scripts.provisioning.aws_access import AwsAccess

        groups[f"environment {environment.name}"] = cloud.look(AwsAccess(environment))
    findings_of_all = [finding for findings in groups.values() for finding in findings]
    if arguments.output == "table":
        for group, findings in groups.items():
            sys.stdout.write(f"{group}\n\n{_table(findings)}\n")
    else:
        listed = [{"group": group, **finding.document()} for group, findings in groups.items() for finding in findings]
        document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name if environment else None, "findings": listed}
        sys.stdout.write(as_text(document, arguments.output))
    return ToolMissing.exit_code if any(finding.state == MISSING for finding in findings_of_all) else 0


def _table(findings: Sequence[Finding]) -> str:
    columns = (Column("check"), Column("status"), Column("details", wraps=True), Column("purpose", wraps=True))
    rows = ((finding.name, Styled(finding.state, _STYLES[finding.state]), _details(finding), finding.purpose) for finding in findings)
    return "\n".join(table(columns, rows, screen_of(sys.stdout, os.environ))) + "\n"


def _details(finding: Finding) -> str:
    return f"{finding.said}\nfix: {finding.fix}" if finding.state != OK and finding.fix else finding.said
