"""Shared parts of pod manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.infra.parts.nodes import PodPlace, Toleration
from penstock.sizing.placement.resources import EPHEMERAL_STORAGE
from penstock.sizing.planned import PlannedPod


def tolerations(given: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Tolerations in the form of the Kubernetes API, without unset fields."""
    return [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in given]


def storage_resources(pod: PlannedPod) -> dict[str, dict[str, str]]:
    """Request and limit of a planned pod's ephemeral storage, for which Spark has no setting: it keeps those of a pod template."""
    limit_mib = pod.limit_ephemeral_storage_mib
    return {
        "requests": {EPHEMERAL_STORAGE: f"{pod.request_ephemeral_storage_mib}Mi"},
        "limits": {} if limit_mib is None else {EPHEMERAL_STORAGE: f"{limit_mib}Mi"},
    }


def placed(place: PodPlace) -> dict[str, Any]:
    """The part of a pod's spec that selects its nodes; empty if any node will do."""
    placement: dict[str, Any] = {}
    if place.node_selector:
        placement["nodeSelector"] = dict(place.node_selector)
    if place.tolerations:
        placement["tolerations"] = tolerations(place.tolerations)
    return placement
