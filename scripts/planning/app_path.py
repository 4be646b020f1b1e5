"""The folders in which apps are looked up: ``--app-path`` of a verb, and ``appPath`` of an environment."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.environment import Environment


def add_app_path_argument(parser: argparse.ArgumentParser) -> None:
    """``--app-path``."""
    parser.add_argument(
        "--app-path",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="additional folder to search for an app's module, before appPath of the environment; repeatable",
    )


def folders_of_apps(given: Sequence[Path], environment: Environment) -> list[Path]:
    """The folders of a command line, then those of the environment.

    Args:
        given: on the command line.
        environment: of the jobs.
    """
    return [*given, *map(Path, environment.spec.app_path)]


def with_app_path(environment: Environment, given: Sequence[Path]) -> Environment:
    """An environment whose jobs' apps are looked up in the folders of a command line first.

    Args:
        environment: of the jobs.
        given: on the command line.
    """
    folders = [str(folder.resolve()) for folder in given]
    return environment.with_spec(app_path=[*folders, *environment.spec.app_path]) if folders else environment
