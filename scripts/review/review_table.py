"""A review as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.scripts.operations.changes_of_jobs import changes_table
from penstock.scripts.planning.quantities import NONE, Quantity
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, table
from penstock.scripts.review.job_review import JobReview, Outcome, Review
from penstock.sizing.lint.finding import Finding

STYLES: dict[Outcome, str] = {
    "starts": "green",
    "ends": "yellow",
    "unchanged": "green",
    "goes on with its state": "green",
    "begins without its state": "yellow",
    "refused": "red",
}
_SUMMARY = (Column("job"), Column("change"), Column("deployed"), Column("executors"), Column("nodes"), Column("USD a month", right=True))


def rendered(review: Review, screen: Screen) -> str:
    """What a change means: all jobs, then each that differs."""
    return "\n".join(_lines(review, screen)) + "\n"


def summary(job: JobReview) -> tuple[str, ...]:
    """What is said first of a job: its executors, nodes and USD a month."""
    found = {**job.needs, **{one.what: change(one) for one in job.plan}}
    return tuple(found[what] for what in ("executors", "nodes", "USD a month"))


def change(quantity: Quantity) -> str:
    """Both values, ``4 → 8``, or the one that there is."""
    values = [value for value in (quantity.before, quantity.now) if value != NONE]
    return " → ".join(values)


def finding_text(finding: Finding) -> str:
    """A finding in a line."""
    return f"{finding.rule} {finding.severity}: {finding.path}: {finding.title}; {finding.fix}"


def _lines(review: Review, screen: Screen) -> Iterator[str]:
    yield f"environment {review.environment}, compared with {review.base[:12]}"
    yield ""
    rows: list[Row] = [[job.job, job.kind, Styled(job.outcome, STYLES[job.outcome]), *summary(job)] for job in review.jobs]
    yield from table(_SUMMARY, rows, screen) if rows else ["the environment has no jobs"]
    if review.cost is not None and review.cost.before != review.cost.now:
        yield f"  all jobs, without what they share: {change(review.cost)} USD a month"
    yield from (f"  refused, all jobs together: {violation}" for violation in review.violations)
    for job in review.jobs:
        if job.kind != "unchanged" or job.refused or job.findings:
            yield from _job(job, screen)
    yield from _amounts("environment", review.fields, screen)
    for told in [*map(finding_text, review.findings), *(f"note: {note}" for note in review.notes)]:
        yield f"  {told}"


def _job(job: JobReview, screen: Screen) -> Iterator[str]:
    yield ""
    yield f"{job.job}: {job.kind}, {job.outcome}"
    if job.changes:
        yield from ["", *changes_table(job.changes, ("before", "after"), screen)]
    yield from _amounts("plan", (*job.plan, *job.topics), screen)
    for told in [
        *(f"refused: {reason}" for reason in job.refused),
        *map(finding_text, job.findings),
        *(f"note: {one}" for one in job.notes),
    ]:
        yield f"  {told}"


def _amounts(what: str, quantities: Sequence[Quantity], screen: Screen) -> Iterator[str]:
    if quantities:
        columns = (Column(what), Column("before", right=True, wraps=True), Column("after", right=True, wraps=True))
        yield from ["", *table(columns, [[one.what, one.before, one.now] for one in quantities], screen)]
