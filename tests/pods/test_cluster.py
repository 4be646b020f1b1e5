"""The tests' own cluster: pods run, find each other and this machine, and nothing of it stays behind, however it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.kube.cluster import network, sandbox_image
from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
from penstock.scripts.kube.errors import ClusterInUse
from tests.pods.cluster_under_test import ClusterUnderTest


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod of the one image that every node of the tests' own cluster has."""
    container = {"name": "pause", "image": sandbox_image.IMAGE, "resources": {"limits": {"memory": "32Mi", "cpu": "10m"}}}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture
def pods(cluster: ClusterUnderTest) -> Iterator[list[Any]]:
    """A running pod on each node."""
    asked = [pod(f"on-{node.name}", nodeName=node.name) for node in cluster.nodes]
    for one in asked:
        cluster.objects.create(one)
    yield list(cluster.objects.wait_for(asked[0], "app", lambda all_: [one["status"]["phase"] for one in all_] == ["Running"] * len(asked)))
    for one in asked:
        cluster.objects.delete(one)


def test_a_pod_runs_on_each_node_with_an_address_of_its_own(cluster: ClusterUnderTest, pods: list[Any]) -> None:
    assert [one["spec"]["nodeName"] for one in pods] == [node.name for node in cluster.nodes]
    assert [one["status"]["podIP"].rpartition(".")[0] for one in pods] == ["10.244.1", "10.244.2"]


def test_the_limit_of_a_pods_memory_is_the_kernels(cluster: ClusterUnderTest, pods: list[Any]) -> None:
    tree = cluster.own.cgroups.memory(cluster.nodes[0].name) if cluster.own else Path()
    name = "memory.max" if Cgroups().unified else "memory.limit_in_bytes"
    assert str(32 * 2**20) in {file.read_text().strip() for file in tree.rglob(f"pod{pods[0]['metadata']['uid']}/*/{name}")}


def test_the_cluster_has_names_for_its_services(cluster: ClusterUnderTest, pods: list[Any]) -> None:
    said = cluster.nodes[0].namespaces.run(sys.executable, "-I", "-c", _ASK.format(server=network.CONTROL_PLANE))
    assert said.strip() == "172.20.0.1"


# Source: RFC 1035, section 4.1: one question of type A; the answer's last four bytes are the address.
_ASK = """
import socket
name = b"".join(bytes([len(part)]) + part for part in b"kubernetes.default.svc.cluster.local".split(b".")) + b"\\0"
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(30)
client.sendto(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1", ("{server}", 53))
print(socket.inet_ntoa(client.recv(512)[-4:]))
"""


def test_a_node_that_is_unplugged_is_lost_to_the_api_and_comes_back(cluster: ClusterUnderTest) -> None:
    node = cluster.nodes[1]
    resource = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}}
    node.disconnect()
    try:
        cluster.objects.wait_for(resource, "", lambda nodes: not ready(nodes[1]), 300)
    finally:
        node.connect()
    cluster.objects.wait_for(resource, "", lambda nodes: ready(nodes[1]), 300)


def ready(node: Any) -> bool:
    """Whether the API holds a node for ready."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])


def test_a_second_cluster_is_refused_while_one_runs(cluster: ClusterUnderTest, tmp_path: Path) -> None:
    assert cluster.nodes
    with pytest.raises(ClusterInUse, match="KUBE-021"):
        PodCluster(folder=tmp_path / "second").start()
    assert all(node.namespaces.alive() for node in cluster.nodes)
