"""``penstock check``: builds apps against their specs and has Spark analyze their queries; starts no broker and asks no AWS."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from penstock.infra.environment_file import load as load_environment
from penstock.infra.job_specs import spec_in
from penstock.jobs.spec import load
from penstock.scripts.checking.checks import Asked, Checked, check_all, unknown
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.progress import Steps
from penstock.sizing.errors import CheckFailed, DocumentError, PenstockError, ToolMissing
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("specs", nargs="+", type=Path, metavar="SPEC", help="job spec (YAML) whose app is checked")
    add_app_path_argument(parser)
    add_environment_option(parser, None, more="its appPath is searched too", default_text="none")
    add_output_argument(parser)


def add_no_check_argument(parser: argparse.ArgumentParser) -> None:
    """``--no-check``."""
    parser.add_argument("--no-check", action="store_true", help="do not check the apps first, as penstock check does")


def run(arguments: argparse.Namespace) -> int:
    """Checks the specs.

    Returns:
        0; 1 if an app fails its check; 2 for an invalid spec.

    Raises:
        PenstockError: TOOL-016, TOOL-020, Spark's jars are missing; TOOL-050.
    """
    environment = load_environment(arguments.environment) if arguments.environment else None
    app_path = tuple(arguments.app_path if environment is None else folders_of_apps(arguments.app_path, environment))
    read = load if environment is None else partial(spec_in, environment)
    results = check_all([Asked(spec, app_path) for spec in dict.fromkeys(arguments.specs)], Steps(), read)
    if arguments.output == "table":
        _print_errors(results)
    else:
        specs = [{"file": str(one.spec), "passed": not one.faults} for one in results]
        errors = [fault.as_json() for one in results for fault in one.faults]
        sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, "specs": specs, "errors": errors}, arguments.output))
    return _code([fault for one in results for fault in one.faults])


def check_first(asked: Sequence[Asked], output: str, *, wanted: bool) -> int:
    """Checks the apps of a verb that does something else with them, where Spark is installed, unless they have passed before.

    Args:
        asked: the specs of the verb.
        output: format of the verb; errors are printed in it.
        wanted: whether the user has not turned it off.

    Returns:
        0, or the exit code with which the verb ends.
    """
    pending = unknown(asked) if wanted else []
    if not pending:
        return 0
    steps = Steps()
    try:
        results = check_all(pending, steps)
    except ToolMissing as error:
        # The verb itself needs no Spark, or says what it lacks.
        steps.line("check", f"not done, see penstock check: {error.title}: {error.given or error.path}")
        return 0
    faults = [fault for one in results for fault in one.faults]
    if faults and output == "json":
        sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, "errors": [fault.as_json() for fault in faults]}, output))
    elif faults:
        _print_errors(results)
    return _code(faults)


def _print_errors(results: Sequence[Checked]) -> None:
    sys.stdout.flush()
    for one in results:
        for fault in one.faults:
            print(fault.render(), file=sys.stderr)


def _code(faults: Sequence[PenstockError]) -> int:
    if any(fault.exit_code == DocumentError.exit_code for fault in faults):
        return DocumentError.exit_code
    return CheckFailed.exit_code if faults else 0
