"""Declares the job of a SQL app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.driver.unsupported import refuse_unsupported
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.job import Job
from penstock.jobs.sql import parsing
from penstock.jobs.sql.names import outputs
from penstock.jobs.sql.statements import Insert, Select, SideOutput
from penstock.jobs.sql_views.declaring import created
from penstock.jobs.sql_views.views import Views
from penstock.jobs.stream.streams import Stream


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
        _refuse_unsupported(views, first, stream)
        views.tried(first.sink, lambda: job.write(stream, first.sink.text))
        return
    routes = {one.sink.text: one.query.where.text if isinstance(one.query, Select) and one.query.where else None for one in inserts}
    stream = views.streams[first.query.uses[0].text]
    for one in inserts:
        if isinstance(one.query, Select) and one.query.where:
            views.filtered(stream, one.query.where)
    views.tried(first.sink, lambda: job.write(stream, routes))


def _refuse_unsupported(views: Views, insert: Insert, stream: Stream) -> None:
    if not stream.frame.isStreaming:
        return
    try:
        refuse_unsupported(stream)
    except BadDeclaration as error:
        need = f"a query that Structured Streaming can run; {error.given}"
        raise views.script.refused(
            insert.query.uses[0], need, "aggregate final results, or write them to a topic that a second job reads"
        ) from None
