"""Confirmation prompt before an irreversible action."""

from __future__ import annotations

import sys

from penstock.scripts.errors import WrongUsage
from penstock.scripts.provisioning.errors import Declined


def confirm(question: str, wanted: str, *, shown: bool = True) -> None:
    """Prompt on the terminal and continue only with the expected answer.

    Args:
        question: the prompt.
        wanted: the expected answer.
        shown: whether the plan was printed for a person; a program that reads JSON cannot be prompted.

    Raises:
        WrongUsage: USE-001, stdin is not a terminal.
        Declined: DEP-008.
    """
    if not shown:
        raise WrongUsage(given="-o json or yaml", need="--yes together with it", fix="review the table, then run it again with --yes")
    if not sys.stdin.isatty():
        raise WrongUsage(given="stdin is not a terminal", need="--yes, or a terminal", fix="review the plan, then run it again with --yes")
    sys.stderr.write(f"\n{question} Only '{wanted}' is accepted: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer != wanted:
        raise Declined(given=f"the answer '{answer}'", need=f"'{wanted}'", fix="run it again to proceed")
