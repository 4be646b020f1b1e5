"""Errors of the test kit (TEST-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class WrongInput(DocumentError):
    """A micro-batch has values for a source that the job does not have, or that its source can't have."""

    code = "TEST-001"
    title = "invalid micro-batch"


class NeedsMore(DocumentError):
    """The job needs more than its input: a table of a database, an endpoint that it calls, or files that are no text."""

    code = "TEST-002"
    title = "the job needs more than its input"


class WrongNumbers(DocumentError):
    """A number to hold a plan against is none of a plan's."""

    code = "TEST-003"
    title = "no number of a plan"
