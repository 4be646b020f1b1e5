from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.infra.manifests.job import job_manifests
from tests.infra.manifests.jobs_in_cluster import deployed, of_kind

# A peer of a connection: pods with labels in a namespace, or an address.
DRIVER, EXECUTOR = "driver", "executor"
Peer = Mapping[str, Any]


def pod(component: str, job: str = "user-credit") -> Peer:
    return {"namespace": f"job-{job}", "labels": {"penstock.dev/job": job, "app.kubernetes.io/component": component}}


DNS: Peer = {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}
PROMETHEUS: Peer = {"namespace": "observability", "labels": {"app": "any"}}


def address(ip: str) -> Peer:
    return {"ip": ip}


def allowed(direction: str, component: str, peer: Peer, port: int, protocol: str = "TCP", **changes: Any) -> bool:
    """Whether the job's policies allow a connection, by Kubernetes' rules: policies add up, and without a policy for a pod and direction
    everything is allowed.
    """
    policies = of_kind(job_manifests(deployed(**changes)), "NetworkPolicy")
    own = [one["spec"] for one in policies if _selected(one["spec"]["podSelector"], pod(component)["labels"])]
    bound = [spec for spec in own if direction.title() in spec["policyTypes"]]
    side = {"ingress": "from", "egress": "to"}[direction]
    rules = [rule for spec in bound for rule in spec.get(direction, [])]
    return not bound or any(
        any(_is(peer, one) for one in rule[side]) and {"protocol": protocol, "port": port} in rule["ports"] for rule in rules
    )


def _selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted: dict[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


def _is(peer: Peer, rule: Mapping[str, Any]) -> bool:
    if "ipBlock" in rule or "ip" in peer:
        return "ipBlock" in rule and "ip" in peer and _inside(peer["ip"], rule["ipBlock"])
    namespace = {"kubernetes.io/metadata.name": peer["namespace"]}
    here = peer["namespace"] == "job-user-credit"
    in_namespace = _selected(rule["namespaceSelector"], namespace) if "namespaceSelector" in rule else here
    return in_namespace and _selected(rule.get("podSelector", {}), peer["labels"])


def _inside(ip: str, block: Mapping[str, Any]) -> bool:
    peer = ipaddress.ip_address(ip)
    within = [ipaddress.ip_network(cidr) for cidr in (block["cidr"], *block.get("except", []))]
    return peer in within[0] and not any(peer in excepted for excepted in within[1:])


@pytest.mark.parametrize("port", [7078, 7079])
def test_driver_and_executors_reach_each_other(port: int) -> None:
    assert allowed("egress", EXECUTOR, pod(DRIVER), port) and allowed("ingress", DRIVER, pod(EXECUTOR), port)
    assert allowed("egress", EXECUTOR, pod(EXECUTOR), 7079) and allowed("ingress", EXECUTOR, pod(EXECUTOR), 7079)
    assert allowed("egress", DRIVER, pod(EXECUTOR), 7079) and allowed("ingress", EXECUTOR, pod(DRIVER), 7079)


@pytest.mark.parametrize("component", [DRIVER, EXECUTOR])
@pytest.mark.parametrize("port", [7078, 7079, 4040])
def test_the_pods_of_another_job_reach_nothing(component: str, port: int) -> None:
    for other in (pod(DRIVER, "flights"), pod(EXECUTOR, "flights")):
        assert not allowed("ingress", component, other, port)
        assert not allowed("egress", component, other, port)


@pytest.mark.parametrize("component", [DRIVER, EXECUTOR])
def test_names_are_asked_of_the_clusters_dns_alone(component: str) -> None:
    for protocol in ("UDP", "TCP"):
        assert allowed("egress", component, DNS, 53, protocol)
        assert not allowed("egress", component, address("8.8.8.8"), 53, protocol)


@pytest.mark.parametrize("component", [DRIVER, EXECUTOR])
def test_the_brokers_and_https_are_reached_and_no_other_port(component: str) -> None:
    for port in (443, 9098):
        assert allowed("egress", component, address("10.0.3.4"), port)
    for port in (22, 80, 6379, 9092, 9094):
        assert not allowed("egress", component, address("10.0.3.4"), port)


def test_other_brokers_have_other_ports() -> None:
    assert allowed("egress", EXECUTOR, address("10.0.3.4"), 9092, broker_ports=(9092, 19092))
    assert allowed("egress", EXECUTOR, address("10.0.3.4"), 19092, broker_ports=(9092, 19092))
    assert not allowed("egress", EXECUTOR, address("10.0.3.4"), 9098, broker_ports=(9092, 19092))


@pytest.mark.parametrize("component", [DRIVER, EXECUTOR])
def test_the_pod_identity_agent_is_reached_and_the_nodes_metadata_is_not(component: str) -> None:
    assert allowed("egress", component, address("169.254.170.23"), 80)
    for port in (80, 443):
        assert not allowed("egress", component, address("169.254.169.254"), port)


def test_prometheus_reaches_the_drivers_metrics_and_nothing_else() -> None:
    assert allowed("ingress", DRIVER, PROMETHEUS, 4040)
    assert not allowed("ingress", DRIVER, PROMETHEUS, 7078)
    assert not allowed("ingress", EXECUTOR, PROMETHEUS, 7079)
    assert not allowed("ingress", DRIVER, {**PROMETHEUS, "namespace": "default"}, 4040)


def test_a_pod_that_is_neither_driver_nor_executor_is_shut_in() -> None:
    policies = of_kind(job_manifests(deployed()), "NetworkPolicy")
    (deny,) = [one["spec"] for one in policies if one["spec"]["podSelector"] == {}]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
