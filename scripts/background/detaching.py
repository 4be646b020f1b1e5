"""``--detach`` of a verb: the same command without it, in the background."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.scripts.background.detached_run import detach, show
from penstock.scripts.progress import Steps

OPTION = "--detach"


def run_detached(arguments: argparse.Namespace, verb: str, environment: Environment, jobs: Sequence[str], more: Sequence[str] = ()) -> int:
    """Starts a command in the background, and says how to look at it and how to stop it.

    Args:
        arguments: of the command, with its ``words``.
        verb: of the command.
        environment: of its jobs.
        jobs: names of its jobs.
        more: options that the command gets in addition.

    Returns:
        0.

    Raises:
        PenstockError: RUN-060, RUN-061.
    """
    steps = Steps()
    words = [word for word in arguments.words if word != OPTION]
    command = [sys.executable, "-m", "penstock.scripts", *words, *more]
    run = detach(command, verb, environment.name, jobs, steps, argument=argument_of(environment))
    if run.alive:
        show(run, steps)
    else:
        # A bounded run: there is nothing to stop.
        steps.line("ended", f"{', '.join(jobs)} has finished; log {run.log}")
    return 0
