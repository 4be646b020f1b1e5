"""The errors of the cost."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NoShippedPrices(DocumentError):
    """No prices of this region come with Penstock."""

    code = "SIZ-050"
    title = "no prices of this region are shipped"


class BadPrices(DocumentError):
    """A file that should hold a region's prices does not."""

    code = "SIZ-051"
    title = "these are no prices"


class RegionsDiffer(DocumentError):
    """The prices and the catalog of instance types are of two regions."""

    code = "SIZ-052"
    title = "prices and catalog are of different regions"
