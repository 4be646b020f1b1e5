"""A rehearsal as a table, a row a stack."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scripts.render.rehearsal_stages import Case, Outcome, Stage
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Cell, Column, Styled, table

_STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.LEFT_OUT: "yellow"}


def render(cases: Sequence[Case], screen: Screen) -> str:
    """The stages of each stack.

    Args:
        cases: one for each stage of each stack.
        screen: where it is printed.
    """
    by_stack: dict[str, dict[Stage, Case]] = {}
    for case in cases:
        by_stack.setdefault(case.stack, {})[case.stage] = case
    columns = (Column("stack"), Column("resources", right=True), *(Column(stage.value, wraps=True) for stage in Stage))
    rows = [(name, f"{stages[Stage.APPLY].resources}", *(_cell(stages[stage]) for stage in Stage)) for name, stages in by_stack.items()]
    return "\n".join(["", *table(columns, rows, screen), ""])


def _cell(case: Case) -> Cell:
    took = "" if case.outcome is Outcome.LEFT_OUT else f" in {case.seconds:.0f} s"
    return Styled(f"{case.outcome}{took}", _STYLES[case.outcome])
