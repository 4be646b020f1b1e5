"""Errors of the test kit (TEST-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class WrongInput(DocumentError):
    """A micro-batch has values for a source that the job does not have, or that its source can't have."""

    code = "TEST-001"
    title = "invalid micro-batch"


class WrongNumbers(DocumentError):
    """A number to hold a plan against is none of a plan's."""

    code = "TEST-003"
    title = "no number of a plan"
