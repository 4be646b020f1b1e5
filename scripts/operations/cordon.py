"""A node that drivers leave: cordoned while they do, with an annotation for each job that says so.

By the annotation a command that was interrupted finds the node again, and the last one that ends knows whether to lift the cordon.

Source: Karpenter, pkg/controllers/state/statenode.go: the taint of a cordoned node counts when pods are placed, and does not keep an empty
node from being removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked

_PREFIX = "moving.penstock.dev/"
# Values of the annotation: whether the node was cordoned for this, or already.
_OURS, _BEFORE = "cordoned", "cordoned-before"
_ABSENT, _CONFLICT = 404, 409
# Karpenter's, on the nodes that it has launched and removes again once they are empty.
NODE_POOL = "karpenter.sh/nodepool"


def cordon(api: client.ApiClient, node: str, job: str) -> None:
    """Keep new pods away from a node that the driver of a job leaves.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """

    def change(found: Any) -> dict[str, Any]:
        ours = not found.spec.unschedulable or _OURS in _marks(found).values()
        return {"metadata": {"annotations": {_PREFIX + job: _OURS if ours else _BEFORE}}, "spec": {"unschedulable": True}}

    _changed(api, node, change)


def lift(api: client.ApiClient, node: str, job: str, *, reused: bool, back: bool = False) -> bool:
    """End that a job leaves a node. The cordon stays while other jobs leave it, and if somebody else has set it.

    Args:
        api: client of the cluster's API.
        node: that it has left.
        job: its name.
        reused: whether other pods may be placed on the node again.
        back: whether the job's driver must be, also while other jobs leave it.

    Returns:
        Whether the node is cordoned now, or gone.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """

    def change(found: Any) -> dict[str, Any]:
        marks = _marks(found)
        others = {name: value for name, value in marks.items() if name != job}
        stays = marks.get(job) != _OURS or not (back or (reused and not others))
        body: dict[str, Any] = {"metadata": {"annotations": {_PREFIX + job: None}}}
        return body if stays else {**body, "spec": {"unschedulable": False}}

    after = _changed(api, node, change)
    return after is None or bool(after.spec.unschedulable)


def left_by(api: client.ApiClient, job: str) -> str | None:
    """The node that a job's driver is leaving, by a command that has not ended; None if there is none.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with asked("the nodes"):
        nodes = client.CoreV1Api(api).list_node(_request_timeout=REQUEST_LIMIT_S).items
    return next((str(node.metadata.name) for node in nodes if job in _marks(node)), None)


def leaving(node: Any) -> set[str]:
    """Jobs whose drivers are leaving a node."""
    return set(_marks(node))


def _marks(node: Any) -> Mapping[str, str]:
    """Job -> whether the node was cordoned for it."""
    return {name.removeprefix(_PREFIX): value for name, value in (node.metadata.annotations or {}).items() if name.startswith(_PREFIX)}


def _changed(api: client.ApiClient, node: str, change: Callable[[Any], dict[str, Any]]) -> Any | None:
    """Changes a node as it was read. Returns it; None if it is gone."""
    core = client.CoreV1Api(api)
    with asked(f"the node {node}"):
        while True:
            try:
                found = core.read_node(node, _request_timeout=REQUEST_LIMIT_S)
                body = change(found)
                body["metadata"]["resourceVersion"] = found.metadata.resource_version
                return core.patch_node(node, body, _request_timeout=REQUEST_LIMIT_S)
            except ApiException as error:
                if error.status == _ABSENT:
                    return None
                if error.status != _CONFLICT:
                    raise
