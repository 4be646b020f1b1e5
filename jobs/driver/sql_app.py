"""Declares the job of a SQL app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.job import Job
from penstock.jobs.sql import parsing
from penstock.jobs.sql.names import outputs
from penstock.jobs.sql.statements import Insert, Select, SideOutput
from penstock.jobs.sql_views.declaring import created
from penstock.jobs.sql_views.views import Views


def declare(path: Path, job: Job) -> None:
    """Declares the job of a SQL app.

    Raises:
        PenstockError: SPEC-045 with the line and the column.
    """
    script, statements = parsing.read(path)
    views = created(script, statements, job, {})
    for statement in statements:
        if isinstance(statement, SideOutput):
            views.tried(statement.sink, lambda: job.side_output(statement.sink.text, statement.tag))  # noqa: B023
    for output in outputs(statements):
        _write(job, views, [one for one in output if isinstance(one, Insert)])


def _write(job: Job, views: Views, inserts: Sequence[Insert]) -> None:
    """One output: a query, or several routes of one view."""
    first = inserts[0]
    if len(inserts) == 1:
        stream = views.built(first.query)
        views.tried(first.sink, lambda: job.write(stream, first.sink.text))
        return
    routes = {one.sink.text: one.query.where.text if isinstance(one.query, Select) and one.query.where else None for one in inserts}
    stream = views.streams[first.query.uses[0].text]
    for one in inserts:
        if isinstance(one.query, Select) and one.query.where:
            views.filtered(stream, one.query.where)
    views.tried(first.sink, lambda: job.write(stream, routes))
