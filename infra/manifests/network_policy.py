"""Network policies of a job. Its pods may connect to each other, DNS, the brokers, the job's connections, and AWS and the Kubernetes API by
HTTPS; Prometheus may connect to them.

Source: Kubernetes, "Network Policies"; Amazon EKS User Guide, "EKS Pod Identity agent" (169.254.170.23, port 80).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.infra.manifests.deployed_job import (
    BLOCK_MANAGER_PORT,
    DRIVER_PORT,
    OBSERVABILITY_NAMESPACE,
    UI_PORT,
    Component,
    DeployedWorkload,
)
from penstock.jobs.configuration.runtime import JOB_LABEL

_HTTPS = 443
_DNS = 53
# IPv4 only, like the network and the cluster.
_POD_IDENTITY_AGENT = "169.254.170.23/32"
_POD_IDENTITY_PORT = 80
_ANYWHERE = "0.0.0.0/0"
# The metadata service of the node: pods must not get the node's own role.
_METADATA = "169.254.169.254/32"


def network_policies(job: DeployedWorkload) -> list[dict[str, Any]]:
    """Denies everything that the other policies do not allow."""
    return [_deny(job), _driver(job), _executors(job), _outside(job)]


def _deny(job: DeployedWorkload) -> dict[str, Any]:
    return _policy(job, "default-deny", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})


def _driver(job: DeployedWorkload) -> dict[str, Any]:
    executors = _pods(job, "executor")
    scrapers = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": OBSERVABILITY_NAMESPACE}}}
    ingress = [
        {"from": [executors], "ports": _tcp(DRIVER_PORT, BLOCK_MANAGER_PORT)},
        {"from": [scrapers], "ports": _tcp(UI_PORT)},
    ]
    egress = [{"to": [executors], "ports": _tcp(BLOCK_MANAGER_PORT)}]
    return _policy(job, "driver", {"podSelector": {"matchLabels": job.selector("driver")}, **_rules(ingress, egress)})


def _executors(job: DeployedWorkload) -> dict[str, Any]:
    driver, executors = _pods(job, "driver"), _pods(job, "executor")
    ingress = [{"from": [driver, executors], "ports": _tcp(BLOCK_MANAGER_PORT)}]
    egress = [
        {"to": [driver], "ports": _tcp(DRIVER_PORT, BLOCK_MANAGER_PORT)},
        {"to": [executors], "ports": _tcp(BLOCK_MANAGER_PORT)},
    ]
    return _policy(job, "executors", {"podSelector": {"matchLabels": job.selector("executor")}, **_rules(ingress, egress)})


def _outside(job: DeployedWorkload) -> dict[str, Any]:
    """External connections of driver and executors."""
    egress = outside_rules({*job.broker_ports, *job.connection_ports})
    everyone = {"matchLabels": {JOB_LABEL: job.owner}}
    return _policy(job, "outside", {"podSelector": everyone, "policyTypes": ["Egress"], "egress": egress})


def outside_rules(ports: Iterable[int]) -> list[dict[str, Any]]:
    """Egress to DNS, AWS, the Kubernetes API and other ports. S3 and the API server have no addresses known in advance to a policy.

    Args:
        ports: of brokers and connections, anywhere.
    """
    anywhere = [{"ipBlock": {"cidr": _ANYWHERE, "except": [_METADATA]}}]
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return [
        {"to": [dns], "ports": [{"protocol": protocol, "port": _DNS} for protocol in ("UDP", "TCP")]},
        {"to": anywhere, "ports": _tcp(*sorted({_HTTPS, *ports}))},
        {"to": [{"ipBlock": {"cidr": _POD_IDENTITY_AGENT}}], "ports": _tcp(_POD_IDENTITY_PORT)},
    ]


def _rules(ingress: list[dict[str, Any]], egress: list[dict[str, Any]]) -> dict[str, Any]:
    return {"policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress}


def _pods(job: DeployedWorkload, component: Component) -> dict[str, Any]:
    return {"podSelector": {"matchLabels": job.selector(component)}}


def _tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def _policy(job: DeployedWorkload, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": job.namespace, "labels": job.labels()},
        "spec": spec,
    }
