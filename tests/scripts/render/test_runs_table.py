"""The jobs of one local run in a table."""

from __future__ import annotations

from penstock.scripts.render.runs_table import CORRECT, WRONG, Counts, EndedRun, render
from penstock.scripts.render.screen import Screen


def test_each_job_has_a_row_also_one_that_has_failed_or_was_not_reached() -> None:
    runs = (
        EndedRun("clicks", CORRECT, Counts(rows_in=1_204, rows=1_200, quarantined=4, late=0)),
        EndedRun("user-credit", WRONG, Counts(rows_in=20, rows=0, quarantined=20, late=0)),
        EndedRun("visits", "failed: JOB-005, the streaming query failed"),
        EndedRun("orders", "not finished"),
    )
    assert render(runs, Screen(100)).splitlines() == [
        "",
        "  job             in    out  quarantined  late  verdict",
        "  clicks       1,204  1,200            4     0  correct",
        "  user-credit     20      0           20     0  WRONG",
        "  visits           -      -            -     -  failed: JOB-005, the streaming query failed",
        "  orders           -      -            -     -  not finished",
    ]
