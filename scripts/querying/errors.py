"""Errors of ``penstock sql`` (SQL-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class InvalidSyntax(DocumentError):
    """The text is not a query of Spark SQL."""

    code = "SQL-001"
    title = "invalid SQL"


class UnknownTable(DocumentError):
    """The query names a table that is none of the topics that the jobs read."""

    code = "SQL-002"
    title = "unknown table"


class InvalidQuery(DocumentError):
    """Spark can't analyze the query: an unknown column or function, or types that do not fit."""

    code = "SQL-003"
    title = "query can't be analyzed"


class NotFollowed(DocumentError):
    """Structured Streaming does not support the query, so its result can't be followed."""

    code = "SQL-004"
    title = "query can't be followed"


class QueryEnded(RunFailed):
    """The query failed while it ran."""

    code = "SQL-005"
    title = "query failed"


class NothingToQuery(DocumentError):
    """The jobs read no topics, or none of their topics exists."""

    code = "SQL-006"
    title = "no topics to query"
