"""``penstock review BASE``: what a change of the repository means for each job of an environment, before it is merged."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from penstock.infra.environment_file import file_of, load
from penstock.infra.plans import specs_of
from penstock.scripts.checking.checks import VARIABLE
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.render.screen import screen_of
from penstock.scripts.review import review_markdown, review_table
from penstock.scripts.review.base_tree import BaseTree, written
from penstock.scripts.review.job_review import Review
from penstock.scripts.review.queries import analyzed
from penstock.scripts.review.reviewing import Versions, reviewed, to_analyze
from penstock.scripts.review.side import NOTHING, Side, side_of
from penstock.sizing.errors import CheckFailed, PenstockError, ToolMissing, raise_all
from penstock.sizing.planned import SCHEMA_VERSION

_FORMATS = ("table", "json", "yaml", "markdown")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "base", metavar="BASE", help="branch or commit before the change, such as origin/main; the change is what lies here"
    )
    add_environment_option(parser)
    add_app_path_argument(parser)
    parser.add_argument("--no-check", action="store_true", help="do not have Spark compare what the apps keep as state")
    add_output_argument(parser, _FORMATS)


def run(arguments: argparse.Namespace) -> int:
    """Prints the review.

    Returns:
        0, or 1 if a job can't be deployed as it is.

    Raises:
        PenstockError: REV-001, REV-002, TOOL-001; what is wrong with the environment or a spec as they are here.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-review-") as folder:
        review = _review(arguments, written(arguments.base, Path(folder).resolve()), Steps())
    if arguments.output == "markdown":
        sys.stdout.write(review_markdown.rendered(review))
    elif arguments.output == "table":
        sys.stdout.write(review_table.rendered(review, screen_of(sys.stdout, os.environ)))
    else:
        sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, **review.model_dump(mode="json", by_alias=True)}, arguments.output))
    return CheckFailed.exit_code if review.refused else 0


def _review(arguments: argparse.Namespace, tree: BaseTree, steps: Steps) -> Review:
    file, today = file_of(arguments.environment), datetime.now(UTC).date().isoformat()
    # What does not fit together is said here: the sides have each job by itself.
    specs_of(load(file))
    now = side_of(file, arguments.app_path, today)
    raise_all(now.faults)
    notes: list[str] = []
    before = _before(tree.before(file), [tree.before(folder) for folder in arguments.app_path], today, notes)
    versions = _versions(before, now, steps, notes) if not arguments.no_check and os.environ.get(VARIABLE) != "off" else {}
    return reviewed(tree, before, now, versions, notes)


def _before(file: Path, app_path: list[Path], today: str, notes: list[str]) -> Side:
    if not file.is_file():
        notes.append("the environment is new")
        return NOTHING
    try:
        return side_of(file, app_path, today)
    except PenstockError as error:
        notes.extend(f"{fault.code} in the environment at the base, so every job counts as added" for fault in error.errors)
        return NOTHING


def _versions(before: Side, now: Side, steps: Steps, notes: list[str]) -> dict[str, Versions]:
    """What Spark finds in both versions of each app, where Spark is installed."""
    both = to_analyze(before, now)
    if not both:
        return {}
    try:
        found = iter(analyzed([app for pair in both.values() for app in pair], steps))
    except ToolMissing as error:
        notes.append(f"what the apps keep as state is not compared, see penstock check: {error.title}")
        return {}
    # Two of each job, in the order in which they were asked for.
    return dict(zip(both, zip(found, found, strict=True), strict=True))
