"""Errors of cost estimation."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NoShippedPrices(DocumentError):
    """Penstock does not ship prices for this region."""

    code = "SIZ-050"
    title = "no prices for this region"


class BadPrices(DocumentError):
    """The file does not contain the prices of a region."""

    code = "SIZ-051"
    title = "invalid price file"


class RegionsDiffer(DocumentError):
    """The price file and the instance type catalog are of different regions."""

    code = "SIZ-052"
    title = "prices and catalog are of different regions"
