"""Errors of the instance type catalog."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NoShippedCatalog(DocumentError):
    """Penstock does not ship an instance type catalog for this region."""

    code = "SIZ-030"
    title = "no catalog for this region"


class BadCatalog(DocumentError):
    """The file is not a catalog snapshot."""

    code = "SIZ-031"
    title = "invalid catalog snapshot"
