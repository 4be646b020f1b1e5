"""A review as a comment on a pull request: a line for each job, details folded."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.scripts.render import markdown
from penstock.scripts.review.job_review import JobReview, Review
from penstock.scripts.review.review_table import change, finding_text, summary


def rendered(review: Review) -> str:
    """The comment."""
    return "\n".join(_lines(review)) + "\n"


def _lines(review: Review) -> Iterator[str]:
    refused = [job.job for job in review.jobs if job.refused]
    verdict = f"refused: {', '.join(refused)}" if refused else "refused" if review.refused else "can be deployed"
    yield f"## Jobs of {markdown.text(review.environment)}: {markdown.text(verdict)}"
    yield ""
    differing = [job for job in review.jobs if job.kind != "unchanged" or job.refused or job.findings]
    rows = [[job.job, job.kind, job.outcome, *summary(job)] for job in differing]
    head = ["job", "change", "deployed", "executors", "nodes", "USD a month"]
    yield from markdown.table(head, rows, right=(3, 4, 5)) if rows else ["No job differs."]
    yield ""
    if review.cost is not None:
        same = review.cost.before == review.cost.now
        amount = review.cost.now if same else f"{review.cost.before} before, {review.cost.now} after"
        yield f"All jobs, without what they share: {markdown.text(amount)} USD a month. Compared with {review.base[:12]}."
        yield ""
    yield from markdown.bullets(f"All jobs together: {violation}" for violation in review.violations)
    for job in differing:
        yield from _job(job)
    yield from _environment(review)


def _job(job: JobReview) -> Iterator[str]:
    yield from markdown.bullets(f"{job.job}: {reason}" for reason in job.refused)
    lines: list[str] = []
    if job.changes:
        rows = [[one.what, one.before, one.now, one.effect, one.why] for one in job.changes]
        lines += [*markdown.table(["change", "before", "after", "means", "because"], rows, right=()), ""]
    if job.plan or job.topics:
        amounts = [[one.what, one.before, one.now] for one in (*job.plan, *job.topics)]
        lines += [*markdown.table(["plan", "before", "after"], amounts), ""]
    lines += markdown.bullets([*map(finding_text, job.findings), *job.notes])
    while lines and not lines[-1]:
        lines.pop()
    if lines:
        yield ""
        yield from markdown.folded(f"{markdown.text(job.job)}: {job.kind}", lines)


def _environment(review: Review) -> Iterator[str]:
    told = [f"{one.what}: {change(one)}" for one in review.fields]
    lines = markdown.bullets([*told, *map(finding_text, review.findings), *review.notes])
    if lines:
        yield ""
        yield from markdown.folded(f"Environment {markdown.text(review.environment)}", lines)
