"""Shared parts of pod manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.infra.parts.nodes import PodPlace, Toleration


def tolerations(given: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Tolerations in the form of the Kubernetes API, without unset fields."""
    return [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in given]


def placed(place: PodPlace) -> dict[str, Any]:
    """The part of a pod's spec that selects its nodes; empty if any node will do."""
    placement: dict[str, Any] = {}
    if place.node_selector:
        placement["nodeSelector"] = dict(place.node_selector)
    if place.tolerations:
        placement["tolerations"] = tolerations(place.tolerations)
    return placement
