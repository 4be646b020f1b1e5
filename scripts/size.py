"""``penstock size``: from a job spec to the plan, without Spark, cdktf or AWS."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jobs.spec import load
from jobs.targets import targets
from scripts import plan_table
from scripts.output import add_output_argument, as_text, violation
from sizing.errors import Infeasible
from sizing.plan import plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="the job spec, a YAML file")
    parser.add_argument(
        "--app-path", action="append", type=Path, default=[], metavar="DIR", help="a folder where the app's module may lie; may be repeated"
    )
    add_output_argument(parser)
    parser.add_argument("--explain", action="store_true", help="say for each number how it came about")


def run(arguments: argparse.Namespace) -> int:
    """Prints the plan.

    Returns:
        0, or 3 for a plan that is not feasible; it is printed all the same.
    """
    spec_file = load(arguments.spec)
    planned = plan(targets(spec_file, arguments.app_path))
    if arguments.output == "table":
        sys.stdout.write(plan_table.render(planned, spec_file.job.metadata.name))
        if arguments.explain:
            sys.stdout.write(plan_table.render_explanations(planned))
        sys.stdout.flush()
        for found in planned.violations:
            print(violation(found).render(), file=sys.stderr)
    else:
        left_out = None if arguments.explain else {"explain"}
        sys.stdout.write(as_text(planned.model_dump(mode="json", by_alias=True, exclude=left_out), arguments.output))
    return 0 if planned.feasible else Infeasible.exit_code
