"""``penstock inspect``: what a job's checkpoint has, read from S3 without running the job."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import WrongUsage, package_missing
from penstock.scripts.operations.checkpoint_content import CheckpointContent
from penstock.scripts.operations.checkpoint_reading import content_of
from penstock.scripts.operations.checkpoint_tables import content_text
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import StateNotRead
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import CheckFailed
from penstock.sizing.planned import SCHEMA_VERSION

# Ours: enough to see what the rows look like.
_ROWS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_job_argument(parser)
    parser.add_argument("--generation", type=int, metavar="N", help="a generation of the job (default: the current one)")
    parser.add_argument("--micro-batch", type=int, metavar="N", help="a micro-batch of its checkpoint (default: the last committed one)")
    parser.add_argument(
        "--rows",
        type=_count,
        nargs="?",
        const=_ROWS,
        metavar="N",
        help=f"show N rows of each table of the state instead (default: {_ROWS})",
    )
    parser.add_argument("--query", metavar="NAME", help="with --rows: of this query; the first one has the name of the job")
    parser.add_argument("--operator", type=int, metavar="ID", help="with --rows: of this operator")
    parser.add_argument("--state", metavar="NAME", help="with --rows: left or right of a join, or a variable of a keyed function")
    parser.add_argument("--key", metavar="TEXT", help="with --rows: those with this text as a column of their key")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows the checkpoint.

    Returns:
        0; 1 if something in it is damaged or missing, 5 if state could not be read.
    """
    _refuse_without_rows(arguments)
    job = DeployedJob(chosen(arguments), arguments.job)
    checkpoint, generation = job.checkpoint(arguments.generation)
    content = content_of(job.spec, checkpoint, generation, arguments.micro_batch)
    if arguments.rows is not None:
        return _show_rows(job, content, arguments)
    if arguments.output == "table":
        sys.stdout.write(content_text(content, screen_of(sys.stdout, os.environ)))
        for error in content.faults:
            print(f"\n{error.render()}")
    else:
        _write(job, content.model_dump(by_alias=True, mode="json"), arguments.output)
    return CheckFailed.exit_code if content.errors else 0


def _refuse_without_rows(arguments: argparse.Namespace) -> None:
    given = [f"--{name}" for name in ("query", "operator", "state", "key") if getattr(arguments, name) is not None]
    if given and arguments.rows is None:
        raise WrongUsage(given=" ".join(given), need="--rows together with it", fix="add --rows")


def _show_rows(job: DeployedJob, content: CheckpointContent, arguments: argparse.Namespace) -> int:
    try:
        # Spark takes long to import, and the rest does without it.
        from penstock.scripts.operations import state_rows
        from penstock.scripts.operations.state_session import reading
        from penstock.scripts.operations.state_table import state_lines
    except ModuleNotFoundError as error:
        raise package_missing("penstock inspect --rows", error, "local") from None
    wanted = state_rows.Wanted(arguments.rows, arguments.query, arguments.operator, arguments.state, arguments.key)
    parts = state_rows.parts(content, wanted)
    steps = Steps()
    steps.line("inspect", "starting Spark, which reads the state")
    with reading(job.aws) as session, steps.at("inspect", "reading") as step:
        found, faults = state_rows.read_all(session, content.checkpoint, parts, wanted)
        step.said = f"read from {content.checkpoint}"
    if arguments.output == "table":
        screen = screen_of(sys.stdout, os.environ)
        texts = ["\n".join(state_lines(one, job.name, screen)) for one in found]
        sys.stdout.write("\n\n".join([*texts, *(fault.render() for fault in faults)]) + "\n")
    else:
        where = {"job": content.job, "generation": content.generation, "checkpoint": content.checkpoint}
        states = [one.model_dump(by_alias=True, mode="json") for one in found]
        _write(job, {**where, "states": states, "errors": [fault.as_json() for fault in faults]}, arguments.output)
    return StateNotRead.exit_code if faults else 0


def _write(job: DeployedJob, content: dict[str, Any], output: str) -> None:
    sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, "environment": job.environment.name, **content}, output))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number of rows from 1 on, not {text}")
    return int(text)
