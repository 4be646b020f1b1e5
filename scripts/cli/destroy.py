"""``penstock destroy``: tears an environment down in order; what holds data is kept unless it is named."""

from __future__ import annotations

import argparse
import os
import sys

from penstock.infra.plans import plans
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import destroy_table, machine, orphans, state_bucket, workplace
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.confirmation import confirm
from penstock.scripts.provisioning.destruction import DestroyedStack, Destruction
from penstock.scripts.provisioning.introduction import introduce
from penstock.scripts.provisioning.stacks import synthesized
from penstock.scripts.render.screen import screen_of
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument("--yes", action="store_true", help="skip the confirmation prompt")
    parser.add_argument("--plan-only", action="store_true", help="show what would be destroyed and what would be kept, and exit")
    parser.add_argument(
        "--delete-bucket", action="append", default=[], metavar="NAME", help="also delete this bucket with all its objects; repeatable"
    )
    parser.add_argument(
        "--delete", action="append", default=[], metavar="STACK/ADDRESS", help="also destroy this protected resource; repeatable"
    )
    workplace.add_arguments(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Destroys.

    Returns:
        0.

    Raises:
        PenstockError: whatever is wrong with the environment, this machine, the credentials, the cluster or the destroy.
    """
    end_in_order()
    environment = chosen(arguments)
    steps = Steps()
    aws = AwsAccess(environment)
    introduce(environment, aws, steps)
    state_bucket.check(aws)
    with workplace.held(workplace.folder_of(environment.name, arguments.out), "destroy") as folder:
        with steps.at("synth", "synthesizing the stacks with cdktf") as step:
            # An environment whose version is out of support can no longer be deployed, but still be destroyed.
            stacks = synthesized(environment, folder, planned=plans(environment))
            step.said = f"{len(stacks)} stacks"
        if any(stack.on_kubernetes for stack in stacks):
            machine.require("aws")
        destruction = Destruction(stacks, aws, steps, buckets=arguments.delete_bucket, others=arguments.delete, limit_s=arguments.limit_s)
        return _destroy(arguments, aws, destruction)


def _destroy(arguments: argparse.Namespace, aws: AwsAccess, destruction: Destruction) -> int:
    environment = aws.environment
    destroy_actions = destruction.destroy_actions()
    left = orphans.remaining(aws, destroy_actions)
    if arguments.output == "table":
        sys.stdout.write("\n" + destroy_table.render(destroy_actions, left, screen_of(sys.stdout, os.environ)))
        sys.stdout.flush()
    done: list[DestroyedStack] = []
    if not arguments.plan_only and any(action.destroyed for action in destroy_actions):
        if not arguments.yes:
            confirm(
                f"Destroy {environment.name} in account {environment.spec.account}?", environment.name, shown=arguments.output == "table"
            )
        destruction.drain(destroy_actions)
        done = destruction.destroy(destroy_actions)
    if arguments.output != "table":
        destroyed = [{"stack": one.stack, "destroyed": one.applied.count("delete")} for one in done if one.applied is not None]
        document = {
            "schemaVersion": SCHEMA_VERSION,
            "environment": environment.name,
            **destroy_table.document(destroy_actions, left),
            "destroyed": destroyed,
        }
        sys.stdout.write(as_text(document, arguments.output))
    return 0
