"""A node that is lost while its containers run on: its driver holds the checkpoint's lease, and nothing that it writes counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.kube.cluster.node import Node
from penstock.scripts.local.environment import LocalEnvironment
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec
from tests.pods.test_cluster import ready


def the_drivers_node_is_lost(job: ReleasedJob) -> None:
    """Its kubelet dies, and the node is removed from the API, as the controller of the cloud's nodes does with an instance that is gone."""
    node = job.cluster.node_of(job.namespace, job.driver)
    node.stop_kubelet()
    job.cluster.core.delete_node(node.name)


@contextmanager
def registered_again(cluster: ClusterUnderTest) -> Iterator[list[Node]]:
    """The nodes; those that are lost meanwhile come back at the end."""
    yield cluster.nodes
    known = {node.metadata.name for node in cluster.core.list_node().items}
    lost = [node for node in cluster.nodes if node.name not in known]
    for node in lost:
        node.start_kubelet()
    resource = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "any"}}
    cluster.objects.wait_for(resource, "", lambda nodes: len(nodes) == len(cluster.nodes) and all(map(ready, nodes)), 300)


def test_no_row_is_lost_or_doubled_while_a_lost_nodes_driver_runs_on(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    faults: Faults = {2: the_drivers_node_is_lost}
    spec = small_spec("flights", tmp_path, batches=8)
    with registered_again(cluster), run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert verdict.compared
    assert not verdict.differences
