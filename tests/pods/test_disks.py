"""Disks of the tests' own nodes: the kubelet evicts what exceeds its limit and what is on a full disk, and images stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.scripts.kube.cluster import sandbox_image
from penstock.scripts.kube.cluster.node import Node
from tests.kube.evidence import wait_for
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.test_cluster import pod

MIB = 2**20
# The kubelet looks at the disks every ten seconds, and evicts one pod each time.
LIMIT_S = 300
# Of a disk that fills: less than the kubelet's threshold.
LEFT_MIB = 64
LIMIT_MIB = 32
PRESSURE = "node.kubernetes.io/disk-pressure"


@contextmanager
def freed(cluster: ClusterUnderTest) -> Iterator[list[Node]]:
    """The nodes; disks that are filled meanwhile have room again at the end, and the nodes take pods."""
    try:
        yield cluster.nodes
    finally:
        for node in cluster.nodes:
            node.free_disk()
    wait_for(lambda: not any(under_pressure(cluster, node) for node in cluster.nodes), LIMIT_S)


def under_pressure(cluster: ClusterUnderTest, node: Node) -> bool:
    """Whether a node takes no pods because its disk is full."""
    return any(taint.key == PRESSURE for taint in cluster.core.read_node(node.name).spec.taints or [])


def evictions(cluster: ClusterUnderTest, namespace: str) -> dict[str, str]:
    """The evicted pods of a namespace, and why; of each the last time."""
    events = cluster.core.list_namespaced_event(namespace, field_selector="reason=Evicted").items
    events.sort(key=lambda event: event.last_timestamp or event.metadata.creation_timestamp)
    return {event.involved_object.name: event.message for event in events}


@pytest.fixture
def writing(cluster: ClusterUnderTest) -> Iterator[Any]:
    """A running pod with a volume that has a limit, on the second node."""
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": f"{LIMIT_MIB}Mi"}}
    asked = pod("writing", nodeName=cluster.nodes[1].name, volumes=[volume])
    asked["spec"]["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    cluster.objects.create(asked)
    (running,) = cluster.objects.wait_for(asked, "app=writing", lambda all_: [one["status"]["phase"] for one in all_] == ["Running"])
    yield running
    cluster.objects.delete(asked)


def test_a_pod_that_exceeds_the_limit_of_its_volume_is_evicted(cluster: ClusterUnderTest, writing: Any) -> None:
    with (cluster.nodes[1].volume(writing["metadata"]["uid"], "scratch") / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 * LIMIT_MIB * MIB)
    name = writing["metadata"]["name"]
    wait_for(lambda: "exceeds the limit" in evictions(cluster, "default").get(name, ""), LIMIT_S)


def test_a_full_disk_evicts_pods_and_no_images_and_the_node_takes_pods_again(cluster: ClusterUnderTest, writing: Any) -> None:
    node = cluster.nodes[1]
    with freed(cluster):
        node.fill_disk(LEFT_MIB)
        name = writing["metadata"]["name"]
        wait_for(lambda: "low on resource: ephemeral-storage" in evictions(cluster, "default").get(name, ""), LIMIT_S)
        wait_for(lambda: under_pressure(cluster, node), LIMIT_S)
        assert sandbox_image.IMAGE in node.ctr("images", "list", "--quiet")
    assert not under_pressure(cluster, node)


def test_without_evictions_a_full_disk_has_no_room_and_its_pods_run_on(cluster: ClusterUnderTest, writing: Any) -> None:
    node = cluster.nodes[1]
    with freed(cluster), node.without_evictions():
        node.fill_disk()
        with pytest.raises(OSError, match="No space left on device"):
            (node.volume(writing["metadata"]["uid"], "scratch") / "any").write_bytes(b"x" * MIB)
        assert not under_pressure(cluster, node)
        assert cluster.core.read_namespaced_pod("writing", "default").status.phase == "Running"
