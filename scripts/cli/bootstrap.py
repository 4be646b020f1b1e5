"""``penstock bootstrap``: creates the bucket for an environment's Terraform state."""

from __future__ import annotations

import argparse
import sys

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Creates the bucket, or corrects its settings.

    Returns:
        0.
    """
    environment = chosen(arguments)
    state_bucket.name(environment)
    aws = AwsAccess(environment)
    steps = Steps()
    caller = aws.check_account()
    steps.line("account", f"{caller.account}  {caller.arn}")
    with steps.at("state", f"bucket {state_bucket.name(environment)} in {environment.spec.region}") as step:
        done = state_bucket.bootstrap(aws)
        step.said = str(done)
    if arguments.output != "table":
        document = {
            "schemaVersion": SCHEMA_VERSION,
            "environment": environment.name,
            "bucket": done.bucket,
            "created": done.created,
            "corrected": list(done.corrected),
        }
        sys.stdout.write(as_text(document, arguments.output))
    return 0
