"""Errors of placement."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class BadScenario(DocumentError):
    """A scenario has a missing field, a value of the wrong type, or a value out of range."""

    code = "SIZ-020"
    title = "invalid scenario"


class NotModelled(DocumentError):
    """A scenario uses a feature that is not modelled; ignoring it could give a wrong result."""

    code = "SIZ-021"
    title = "not modelled"


class BadResource(DocumentError):
    """An amount is not a valid Kubernetes quantity, or not one that a pod can request."""

    code = "SIZ-022"
    title = "invalid Kubernetes quantity"


class BadRequirement(DocumentError):
    """A label requirement that Kubernetes or Karpenter would reject."""

    code = "SIZ-023"
    title = "invalid requirement"


class UnknownName(DocumentError):
    """The scenario or the catalog has no object of this name."""

    code = "SIZ-024"
    title = "name not found"


class NoSpotPrice(DocumentError):
    """Spot prices are needed, but the catalog does not contain any."""

    code = "SIZ-025"
    title = "catalog has no spot prices"
