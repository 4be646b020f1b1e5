"""A DaemonSet reduced to its pod's requests, for sizing. Penstock does not deploy it."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.pod import tolerations
from penstock.infra.parts.nodes import DaemonSetRequest


def daemon_set(request: DaemonSetRequest) -> dict[str, Any]:
    """The manifest with its requests; image and selector do not affect the size of a node."""
    requests = {"cpu": f"{request.cpu}m", "memory": f"{request.memory}Mi"}
    pod: dict[str, Any] = {
        "containers": [{"name": request.name, "image": request.name, "resources": {"requests": requests}}],
        "tolerations": tolerations(request.tolerations),
    }
    if request.node_selector:
        pod["nodeSelector"] = dict(request.node_selector)
    labels = {"app.kubernetes.io/name": request.name}
    return {
        "metadata": {"name": request.name, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
