"""What manifests of pods have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.infra.parts.nodes import PodPlace, Toleration


def tolerations(given: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Tolerations as the Kubernetes API takes them; what is not given is left out."""
    return [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in given]


def placed(place: PodPlace) -> dict[str, Any]:
    """What of a pod's spec says which nodes it may go to; empty where any will do."""
    found: dict[str, Any] = {}
    if place.node_selector:
        found["nodeSelector"] = dict(place.node_selector)
    if place.tolerations:
        found["tolerations"] = tolerations(place.tolerations)
    return found
