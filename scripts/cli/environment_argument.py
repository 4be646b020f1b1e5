"""The environment of a verb: ``--environment ENV`` for each of them, or the argument ENV if the verb has it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.environment_file import DEFAULT_ENVIRONMENT, ENVIRONMENT_VARIABLE, load, named, names
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.app_path import with_app_path

_WHAT = "environment file, or the name of a shipped environment"


def add_environment_option(
    parser: argparse.ArgumentParser, default: str | None = DEFAULT_ENVIRONMENT, *, more: str = "", default_text: str = ""
) -> None:
    """``-e``, ``--environment``.

    Args:
        parser: of the verb.
        default: used if none is named.
        more: added to the help text.
        default_text: describes the default if it is not an environment.
    """
    text = f"{_WHAT}{f'; {more}' if more else ''} (default: {default_text or default})"
    parser.add_argument("-e", "--environment", default=default, metavar="ENV", help=text)


def add_environment_options(parser: argparse.ArgumentParser, more: str) -> None:
    """``-e``, ``--environment``, which may be repeated.

    Args:
        parser: of the verb.
        more: the meaning of several.
    """
    text = f"{_WHAT} (default: {DEFAULT_ENVIRONMENT}); {more}"
    parser.add_argument("-e", "--environment", action="append", default=[], metavar="ENV", help=text)


def add_environment_argument(parser: argparse.ArgumentParser) -> None:
    """``ENV`` and ``--environment ENV`` for verbs that use AWS: without either, PENSTOCK_ENVIRONMENT names it."""
    parser.add_argument("environment_argument", nargs="?", metavar="ENV", help=f"{_WHAT} (default: {ENVIRONMENT_VARIABLE})")
    parser.add_argument("-e", "--environment", metavar="ENV", help="same as ENV")


def chosen(arguments: argparse.Namespace) -> Environment:
    """The environment of a command line, or of PENSTOCK_ENVIRONMENT, with the ``--app-path`` of the command line.

    Args:
        arguments: of a parser with `add_environment_argument`.

    Raises:
        WrongUsage: USE-001, the argument and the option differ.
        NoEnvironment: INF-002.
        PenstockError: what is wrong with the file.
    """
    environment = named(_given(arguments), fix=f"--environment ENV, or export {ENVIRONMENT_VARIABLE}")
    return with_app_path(environment, getattr(arguments, "app_path", []))


def chosen_or_none(arguments: argparse.Namespace) -> Environment | None:
    """Like `chosen`, also for a verb with the option alone; None if nothing names an environment."""
    name = _given(arguments) or os.environ.get(ENVIRONMENT_VARIABLE)
    return load(name) if name else None


def take_stacks(arguments: argparse.Namespace) -> None:
    """With ``--environment`` all arguments are stacks, except a first one that names an environment.

    Args:
        arguments: of a parser with `add_environment_argument`, and with ``stacks`` after it.
    """
    first = arguments.environment_argument
    if arguments.environment and first and not _names_environment(first, arguments.environment):
        arguments.stacks = [first, *arguments.stacks]
        arguments.environment_argument = None


def _names_environment(word: str, environment: str) -> bool:
    return word == environment or word in names() or Path(word).is_file()


def _given(arguments: argparse.Namespace) -> str | None:
    given = [name for name in (getattr(arguments, "environment_argument", None), arguments.environment) if name]
    if len(set(given)) > 1:
        raise WrongUsage(given=f"environments {' and '.join(given)}", need="a single environment", fix="specify it once")
    return given[0] if given else None
