"""The errors of the catalog of instance types."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NoShippedCatalog(DocumentError):
    """No catalog of this region comes with Penstock."""

    code = "SIZ-030"
    title = "no catalog of this region is shipped"


class BadCatalog(DocumentError):
    """A file that should be a catalog snapshot is none."""

    code = "SIZ-031"
    title = "this is no catalog snapshot"
