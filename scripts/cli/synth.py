"""``penstock synth``: the stacks of an environment as Terraform configuration; does not call AWS."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.checking.checks import Asked
from penstock.scripts.cli.check import add_no_check_argument, check_first
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.stack_order import StackOrder
from penstock.scripts.provisioning.stacks import Stack, synthesized
from penstock.scripts.render.screen import screen_of
from penstock.scripts.render.table import Column, table
from penstock.scripts.security.keyed_stacks import stacks_with_keys
from penstock.sizing.planned import SCHEMA_VERSION

# cdktf's own.
DEFAULT_FOLDER = Path("cdktf.out")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    add_no_check_argument(parser)
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help=f"output folder (default: {DEFAULT_FOLDER})")
    parser.add_argument(
        "--offline", action="store_true", help="for plans against an empty account: without credentials, AWS and the environment's state"
    )
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Synthesizes the stacks and lists them.

    Returns:
        0; 1 for an app that fails its check.

    Raises:
        PenstockError: what is wrong with the environment; sizing's own errors if the plans of its jobs are infeasible.
    """
    environment = chosen(arguments)
    planned = deployable_plans(environment)
    app_path = tuple(map(Path, environment.spec.app_path))
    asked = [Asked(job.spec.path, app_path) for job in planned.jobs]
    if failed := check_first(asked, arguments.output, wanted=not arguments.no_check):
        return failed
    with Steps().at("synth", f"the stacks of {environment.name}") as step:
        make = stacks_with_keys if arguments.offline else _stacks
        stacks = StackOrder(make(environment, planned, arguments.out)).stacks
        step.said = f"{len(stacks)} stacks in {arguments.out}"
    counts = [(stack, len(stack.resources())) for stack in stacks]
    if arguments.output == "table":
        columns = (Column("stack"), Column("resources", right=True), Column("depends on", wraps=True))
        rows = [(stack.name, f"{count:,}", ", ".join(stack.dependencies) or "-") for stack, count in counts]
        print("\n".join(table(columns, rows, screen_of(sys.stdout, os.environ), indent=0)))
        return 0
    listed = [
        {"name": stack.name, "folder": str(stack.folder), "resources": count, "dependencies": list(stack.dependencies)}
        for stack, count in counts
    ]
    document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name, "stacks": listed}
    sys.stdout.write(as_text(document, arguments.output))
    return 0


def _stacks(environment: Environment, planned: EnvironmentPlans, folder: Path) -> list[Stack]:
    return synthesized(environment, folder, planned=planned)
