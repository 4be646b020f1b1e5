"""Creates what the statements of a text create, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pyspark.sql import SparkSession

from penstock.jobs.blocks.lookups.table import LookupTable
from penstock.jobs.sql import parsing
from penstock.jobs.sql.statements import CreateFunction, CreateSource, CreateView, Result, Statement
from penstock.jobs.sql.tokens import Script
from penstock.jobs.sql_views.functions import Functions
from penstock.jobs.sql_views.views import Views
from penstock.jobs.stream.streams import Stream


class Declared(Protocol):
    """What statements use of a job."""

    session: SparkSession
    connections: Mapping[str, str]

    def source(self, name: str, schema: str, *, record: str | None = None) -> Stream:
        """A source of the spec as a stream."""

    def table(self, name: str) -> LookupTable:
        """A table of the spec."""


def created(script: Script, statements: Iterable[Statement], job: Declared, streams: Mapping[str, Stream]) -> Views:
    """The streams that statements create, by their names.

    Args:
        script: the text.
        statements: of it; those that create nothing are left out.
        job: while its app declares it.
        streams: those that the text may read besides.

    Raises:
        PenstockError: SPEC-045 with the line and the column.
    """
    views = Views(script, streams, job.table, lambda tried: Functions(tried, job.session, job.connections))
    for statement in statements:
        match statement:
            case CreateFunction():
                views.functions.create(statement)
            case CreateSource(name=name, schema=schema, record=record):
                views.streams[name.text] = views.tried(name, lambda: job.source(name.text, schema.text, record=record))
            case CreateView(name=name, query=query):
                views.streams[name.text] = views.built(query)
    return views


def result(script: Script, job: Declared, streams: Mapping[str, Stream]) -> Stream:
    """The rows of the query that a text ends with. Arguments and errors are those of `created`."""
    statements = parsing.embedded(script, list(streams))
    views = created(script, statements, job, streams)
    (last,) = [statement for statement in statements if isinstance(statement, Result)]
    return views.built(last.query)
