"""The environment that a verb works on: named, never assumed, for the wrong one is too dear."""

from __future__ import annotations

import argparse
import datetime
import os

from penstock.infra.deployable import refuse_undeployable
from penstock.infra.environment import Environment, file_of, load, names
from penstock.infra.errors import NoEnvironment
from penstock.infra.plans import plans
from penstock.jobs.document import read

ENVIRONMENT_VARIABLE = "PENSTOCK_ENVIRONMENT"


def add_environment_argument(parser: argparse.ArgumentParser) -> None:
    """``ENV``, or the variable."""
    parser.add_argument(
        "environment", nargs="?", metavar="ENV", help=f"an environment file or a shipped one's name (default: {ENVIRONMENT_VARIABLE})"
    )


def chosen(name: str | None) -> Environment:
    """The environment of a name, or of PENSTOCK_ENVIRONMENT.

    Args:
        name: as given; None: the variable's.

    Raises:
        NoEnvironment: INF-002.
        PenstockError: what is wrong with the file.
    """
    name = name or os.environ.get(ENVIRONMENT_VARIABLE)
    if not name:
        need = f"one of {', '.join(names())}, or the path of an environment file"
        raise NoEnvironment(path="ENV", need=need, fix=f"name it, or export {ENVIRONMENT_VARIABLE}")
    return load(name)


def deployable(name: str | None) -> Environment:
    """The environment of a name, or of PENSTOCK_ENVIRONMENT, if it could be deployed today; all that stands against it is told here.

    Args:
        name: as given; None: the variable's.

    Raises:
        NoEnvironment: INF-002.
        PenstockError: what is wrong with the file and the specs that it names, sizing's own errors where the plans of its jobs can't be
            met, and INF-020 to INF-023.
    """
    environment = chosen(name)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    file = file_of(name or os.environ[ENVIRONMENT_VARIABLE])
    refuse_undeployable(environment, plans(environment).cluster, today=today, document=read(file))
    return environment
