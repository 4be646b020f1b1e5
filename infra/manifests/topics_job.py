"""The Job that applies topics from within the cluster, for brokers that only the cluster reaches.

It runs on the nodes of the system, which are there before Karpenter and its nodes, with the jobs' image. Its AWS role comes from pod
identity and has rights on topics only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.infra.manifests.driver_pod import PYTHON, TERMINATION_FILE
from penstock.infra.manifests.namespace import RESTRICTED
from penstock.infra.manifests.network_policy import outside_rules
from penstock.infra.manifests.pod import tolerations
from penstock.infra.manifests.pod_security import TEMPORARY, container_security_context, pod_security_context
from penstock.infra.parts.nodes import PodPlace
from penstock.jobs.configuration.runtime import TERMINATION_FILE_VARIABLE

NAMESPACE, ACCOUNT = "penstock-topics", "topics"
CONTAINER = "topics"
REQUEST = "request.json"
MODULE = "penstock.scripts.topics.in_pod"
_FOLDER = "/etc/penstock"
# A node that pulls an image of a gigabyte, and a busy cluster with a few hundred partitions.
DEADLINE_S = 900
# For a command that was killed; others delete the Job themselves.
_KEPT_S = 3600
_MEMORY, _CPU, _STORAGE = "256Mi", "100m", "128Mi"
_LABELS = {"app.kubernetes.io/part-of": "penstock", "app.kubernetes.io/component": "topics"}


def place(broker_ports: Iterable[int]) -> list[dict[str, Any]]:
    """What all runs share: the namespace, a service account without rights in the cluster, and network policies.

    Args:
        broker_ports: the ports that the brokers listen on.
    """
    everything = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    outside = {"podSelector": {}, "policyTypes": ["Egress"], "egress": outside_rules(broker_ports)}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(ACCOUNT), "automountServiceAccountToken": False}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {**_LABELS, **RESTRICTED}}},
        account,
        _policy("default-deny", everything),
        _policy("outside", outside),
    ]


def run(name: str, image: str, request: str, where: PodPlace) -> list[dict[str, Any]]:
    """One run: a ConfigMap with its request, and the Job.

    Args:
        name: of both, unique.
        image: of the jobs.
        request: what `penstock.scripts.topics.in_pod` reads, as JSON without secrets.
        where: the nodes that its pod may run on.
    """
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(name), "data": {REQUEST: request}}
    template = {"metadata": {"labels": _LABELS}, "spec": _pod(name, image, where)}
    spec = {
        "completions": 1,
        "parallelism": 1,
        # A run that failed may have changed topics: what is missing is planned anew.
        "backoffLimit": 0,
        "activeDeadlineSeconds": DEADLINE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": template,
    }
    return [config_map, {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(name), "spec": spec}]


def _pod(name: str, image: str, where: PodPlace) -> dict[str, Any]:
    return {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": pod_security_context(),
        "nodeSelector": dict(where.node_selector),
        "tolerations": tolerations(where.tolerations),
        "containers": [_container(image)],
        "volumes": [
            {"name": "request", "configMap": {"name": name, "defaultMode": 0o444}},
            {"name": "tmp", "emptyDir": {"sizeLimit": _STORAGE}},
        ],
    }


def _container(image: str) -> dict[str, Any]:
    storage = {"ephemeral-storage": _STORAGE}
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/tini", "--", PYTHON, "-m", MODULE, f"{_FOLDER}/{REQUEST}"],
        "env": [{"name": TERMINATION_FILE_VARIABLE, "value": TERMINATION_FILE}],
        "resources": {"requests": {"cpu": _CPU, "memory": _MEMORY, **storage}, "limits": {"memory": _MEMORY, **storage}},
        "securityContext": container_security_context(),
        "volumeMounts": [
            {"name": "request", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": TEMPORARY},
        ],
        "terminationMessagePath": TERMINATION_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "labels": _LABELS}


def _policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": _metadata(name), "spec": spec}
