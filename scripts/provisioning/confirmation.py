"""The question before something is done that can't be taken back."""

from __future__ import annotations

import sys

from penstock.scripts.errors import WrongUsage
from penstock.scripts.provisioning.errors import Declined


def confirm(question: str, wanted: str, *, shown: bool = True) -> None:
    """Asks on the terminal, and goes on only with the one answer.

    Args:
        question: what is asked.
        wanted: the answer that goes on.
        shown: whether there is something to look at: a program that reads JSON can't be asked.

    Raises:
        WrongUsage: USE-001, there is stdin is not a terminal.
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
