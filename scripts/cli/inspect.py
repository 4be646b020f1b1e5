"""``penstock inspect``: what a job's checkpoint has, read from S3 without running the job."""

from __future__ import annotations

import argparse
import os
import sys

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.operations.checkpoint_reading import content_of
from penstock.scripts.operations.checkpoint_tables import content_text
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import CheckFailed
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_argument(parser)
    parser.add_argument("--generation", type=int, metavar="N", help="a generation of the job (default: the current one)")
    parser.add_argument("--micro-batch", type=int, metavar="N", help="a micro-batch of its checkpoint (default: the last committed one)")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows the checkpoint.

    Returns:
        0, or 1 if something in it is damaged or missing.
    """
    environment = chosen(arguments)
    job = DeployedJob(environment, arguments.job)
    checkpoint, generation = job.checkpoint(arguments.generation)
    content = content_of(job.spec, checkpoint, generation, arguments.micro_batch)
    if arguments.output == "table":
        sys.stdout.write(content_text(content, screen_of(sys.stdout, os.environ)))
        for error in content.faults:
            print(f"\n{error.render()}")
    else:
        document = {"schemaVersion": SCHEMA_VERSION, "environment": environment.name}
        sys.stdout.write(as_text({**document, **content.model_dump(by_alias=True, mode="json")}, arguments.output))
    return CheckFailed.exit_code if content.errors else 0
