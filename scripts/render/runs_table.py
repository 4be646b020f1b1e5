"""The jobs of one local run, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, table

CORRECT, WRONG, NOT_COMPARED = "correct", "WRONG", "nothing to compare"
_STYLES = {CORRECT: "green", NOT_COMPARED: "yellow"}


class Counts(NamedTuple):
    """What a job has read and written, in rows.

    Args:
        rows_in: records read.
        rows: rows in the output.
        quarantined: quarantined records.
        late: late rows.
    """

    rows_in: int
    rows: int
    quarantined: int
    late: int


class EndedRun(NamedTuple):
    """How a job's run has ended.

    Args:
        job: its name.
        verdict: whether its output was correct, or why there is none.
        counts: what it read and wrote; None if it has not come so far.
    """

    job: str
    verdict: str
    counts: Counts | None = None


def render(runs: Sequence[EndedRun], screen: Screen) -> str:
    """The runs as a table.

    Args:
        runs: in their order.
        screen: where it is printed.
    """
    numbers = ("in", "out", "quarantined", "late")
    columns = (Column("job"), *(Column(name, right=True) for name in numbers), Column("verdict", wraps=True))
    return "\n".join(["", *table(columns, map(_row, runs), screen), ""])


def _row(run: EndedRun) -> Row:
    counts = ("-",) * len(Counts._fields) if run.counts is None else tuple(f"{count:,}" for count in run.counts)
    return run.job, *counts, Styled(run.verdict, _STYLES.get(run.verdict, "red"))
