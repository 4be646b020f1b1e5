"""Errors of SQL in jobs (SPEC-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class SqlRefused(DocumentError):
    """A statement of an SQL app, or of the text of ``job.sql``, has a syntax error, is not supported, or cannot be built."""

    code = "SPEC-045"
    title = "invalid SQL"
