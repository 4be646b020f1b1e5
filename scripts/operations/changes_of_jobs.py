"""The changes of jobs as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.jobs.spec.change_effects import Effect
from penstock.scripts.operations.job_changes import Change, JobChanges
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, table

_STYLES: dict[Effect, str] = {
    "nothing": "green",
    "restart": "green",
    "restart with state": "yellow",
    "state must be reset": "red",
    "refused": "red",
}
_COLUMNS = ("runs", "wanted")
_PLAN = (Column("plan"), Column("runs", right=True), Column("wanted", right=True))


def rendered(jobs: Sequence[JobChanges], screen: Screen) -> str:
    """A paragraph for each job that changes, and a line for each that does not."""
    return "\n".join(line for job in jobs for line in _job(job, screen)) + "\n"


def changes_table(changes: Sequence[Change], columns: tuple[str, str], screen: Screen) -> list[str]:
    """Lines of a table of changes.

    Args:
        changes: of a job.
        columns: what the values before and after the change are called.
        screen: where it goes.
    """
    before, now = (Column(name, wraps=True) for name in columns)
    rows: list[Row] = [[one.what, one.before, one.now, Styled(one.effect, _STYLES[one.effect]), one.why] for one in changes]
    return table((Column("change"), before, now, Column("means"), Column("because", wraps=True)), rows, screen)


def _job(job: JobChanges, screen: Screen) -> Iterator[str]:
    runs = "" if job.generation is None else f" (generation {job.generation} runs)"
    yield f"{job.job}: {job.state}{runs}"
    if job.changes:
        yield from ["", *changes_table(job.changes, _COLUMNS, screen)]
    if job.plan:
        amounts: list[Row] = [[one.what, one.before, one.now] for one in job.plan]
        yield from ["", *table(_PLAN, amounts, screen)]
    if job.savepoint is not None:
        yield f"  its driver first takes savepoint {job.savepoint}: penstock savepoint start-from goes back to it"
    yield from (f"  note: {note}" for note in job.notes)
    if job.changes or job.plan:
        yield ""
