"""The cluster's DNS as network policies see it.

CoreDNS runs beside the API, in no pod, and policies allow a connection to DNS by the namespace and the labels of its pod. So a pod that
never runs has its address.
"""

from __future__ import annotations

from kubernetes.client import CoreV1Api

from penstock.scripts.kube.cluster import network, sandbox_image

NAMESPACE = "kube-system"
# Source: Kubernetes, "Customizing DNS Service"; CoreDNS has the label of the DNS before it, on EKS too.
LABELS = {"k8s-app": "kube-dns"}
_NAME = "coredns"


def register(core: CoreV1Api) -> None:
    """Create the pod.

    Args:
        core: the API of an administrator; the namespace's service account exists.
    """
    spec = {
        "containers": [{"name": _NAME, "image": sandbox_image.IMAGE}],
        "automountServiceAccountToken": False,
        # There is no such scheduler, so no node gets it.
        "schedulerName": "none",
    }
    core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": _NAME, "labels": LABELS}, "spec": spec})
    address = network.CONTROL_PLANE
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    core.patch_namespaced_pod_status(_NAME, NAMESPACE, {"status": status})
