"""What an environment creates in an empty account: the plan of a deploy, without AWS and without credentials."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.cli.output import as_text
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import changes_table, planned_changes
from penstock.scripts.provisioning.deployment import Deferred, wanted
from penstock.scripts.provisioning.planned_changes import StackChanges
from penstock.scripts.provisioning.stack_order import StackOrder
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.render.screen import screen_of
from penstock.scripts.security import offline_plan
from penstock.sizing.planned import SCHEMA_VERSION

EMPTY = "a plan against an empty account: AWS and the state are not read, so nothing shows as changed or destroyed"


def show(arguments: argparse.Namespace, environment: Environment, plans: EnvironmentPlans, steps: Steps) -> int:
    """Plans the stacks against nothing and prints the plan.

    Args:
        arguments: of `deploy`.
        environment: the environment.
        plans: plans of its jobs.
        steps: receives the lines.

    Returns:
        0.

    Raises:
        UnknownStack: INF-007.
        PenstockError: RUN-005 to RUN-009, TOOL-001.
    """
    steps.line("offline", EMPTY)
    with tempfile.TemporaryDirectory(prefix="penstock-offline-") as folder:
        with steps.at("synth", "synthesizing the stacks with cdktf") as step:
            made = offline_plan.stacks_offline(environment, plans, Path(folder, "out"))
            stacks = StackOrder(wanted(made, arguments.stacks)).stacks
            step.said = f"{len(stacks)} stacks"
        with steps.at("plan", "planning the stacks") as step:
            of_aws = [stack for stack in stacks if not stack.on_kubernetes]
            planned = offline_plan.plans(of_aws, Path(folder, "plans"), step.watch, arguments.limit_s)
            step.said = f"{len(planned)} stacks planned"
        changes = {stack.name: _changes(stack, planned) for stack in stacks}
    if arguments.output == "table":
        sys.stdout.write("\n" + changes_table.render(changes, screen_of(sys.stdout, os.environ)) + f"({EMPTY})\n")
        return 0
    spec = environment.spec
    document = {
        "schemaVersion": SCHEMA_VERSION,
        "environment": environment.name,
        "account": spec.account,
        "region": spec.region,
        "against": "nothing",
        "stacks": changes_table.document(changes),
        "applied": [],
        "outputs": {},
    }
    sys.stdout.write(as_text(document, arguments.output))
    return 0


def _changes(stack: Stack, planned: Mapping[str, Mapping[str, Any]]) -> StackChanges | Deferred:
    if stack.name not in planned:
        return Deferred(stack.name, "the cluster exists", len(stack.resources()))
    return planned_changes.read(stack.name, planned[stack.name])
