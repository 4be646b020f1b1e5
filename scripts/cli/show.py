"""``penstock show``: a job's queries as a picture: sources, operators with state, and sinks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from penstock.infra.environment_file import load as load_environment
from penstock.infra.job_specs import spec_in
from penstock.jobs.spec import SpecFile, load
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import FORMATS, add_output_argument, as_text
from penstock.scripts.installation import app_packages
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.progress import Steps
from penstock.scripts.render.screen import screen_of
from penstock.sizing.planned import SCHEMA_VERSION

_MERMAID = "mermaid"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="job spec (YAML)")
    add_app_path_argument(parser)
    add_environment_option(parser, None, more="its appPath is searched too", default_text="none")
    add_output_argument(parser, (*FORMATS, _MERMAID))


def run(arguments: argparse.Namespace) -> int:
    """Shows the queries.

    Returns:
        0.

    Raises:
        PenstockError: what is wrong with the spec or its app; TOOL-016, TOOL-020, Spark's jars are missing; TOOL-050.
    """
    environment = load_environment(arguments.environment) if arguments.environment else None
    spec = load(arguments.spec) if environment is None else spec_in(environment, arguments.spec)
    app_path = arguments.app_path if environment is None else folders_of_apps(arguments.app_path, environment)
    sys.stdout.write(_text(spec, app_path, arguments.output))
    return 0


def _text(spec: SpecFile, app_path: list[Path], output: str) -> str:
    # PySpark takes long to import.
    from penstock.jobs.driver.check import flows
    from penstock.scripts.checking.session import analyzing
    from penstock.scripts.render.flows import as_mermaid, as_trees

    steps = Steps()
    installed = app_packages.install(app_packages.checked(spec), steps)
    with analyzing(installed.jars) as (session, folder), steps.at("show", "Spark analyzes the queries of the app") as step:
        queries = flows(spec, app_path, session, folder, installed.path)
        step.said = str(spec.path)
    job = spec.job.metadata.name
    if output == _MERMAID:
        return as_mermaid(job, queries)
    if output == "table":
        return as_trees(job, queries, screen_of(sys.stdout, os.environ))
    return as_text(
        {"schemaVersion": SCHEMA_VERSION, "job": job, "queries": [one.model_dump(by_alias=True, mode="json") for one in queries]}, output
    )
