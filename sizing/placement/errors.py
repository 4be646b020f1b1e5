"""The errors of placement."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class BadScenario(DocumentError):
    """Something in a scenario is missing, of a wrong type, or out of range."""

    code = "SIZ-020"
    title = "the scenario can't be read"


class NotModelled(DocumentError):
    """A scenario has what is not modelled here; leaving it out in silence could give a wrong answer."""

    code = "SIZ-021"
    title = "this is not modelled"


class BadResource(DocumentError):
    """An amount that is no Kubernetes quantity, or that no pod can ask for."""

    code = "SIZ-022"
    title = "this is no quantity of Kubernetes"


class BadRequirement(DocumentError):
    """A requirement on labels that Kubernetes or Karpenter would refuse."""

    code = "SIZ-023"
    title = "Karpenter would refuse this requirement"


class UnknownName(DocumentError):
    """A name that the scenario or the catalog does not have."""

    code = "SIZ-024"
    title = "nothing has this name"


class NoSpotPrice(DocumentError):
    """Spot prices are asked from a catalog that has none."""

    code = "SIZ-025"
    title = "the catalog has no spot prices"
