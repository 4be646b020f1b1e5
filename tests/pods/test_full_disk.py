"""Disks that are full: of a pod that writes more than its plan, and of a node. Every row comes out once."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.infra.manifests.pod_volumes import SCRATCH
from penstock.scripts.kube.cluster.node import Node
from penstock.scripts.local.environment import LocalEnvironment
from tests.kube.evidence import wait_for
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec
from tests.pods.test_disks import LEFT_MIB, LIMIT_S, MIB, evictions, freed
from tests.pods.test_faults import last_message
from tests.pods.test_releases import said_by_doctor

# Of each executor: a spec without a load, as that of flights, has no limit otherwise.
STORAGE_MIB = 4096
LIMITED = {"slots": 2, "cores": "250m", "memory": "2g", "ephemeralStorage": f"{STORAGE_MIB}Mi"}
NO_SPACE = "No space left on device"


def an_executor_exceeds_its_ephemeral_storage(job: ReleasedJob) -> None:
    """Its state and its shuffles are larger than specified: here a file is, in the same volume."""
    pod = next(pod for pod in job.pods("executor") if pod.status.phase == "Running")
    folder = job.cluster.node_of(job.namespace, pod.metadata.name).volume(pod.metadata.uid, SCRATCH)
    with (folder / "more-than-specified").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, STORAGE_MIB * MIB)
    wait_for(lambda: pod.metadata.name in evicted(job), LIMIT_S)


def the_disk_of_the_drivers_node_fills(job: ReleasedJob) -> None:
    """From elsewhere than its pods, which are evicted one after the other: nothing that the kubelet may remove makes room."""
    job.cluster.node_of(job.namespace, job.driver).fill_disk(LEFT_MIB)
    wait_for(lambda: job.driver in evicted(job), LIMIT_S)


def the_disk_of_an_executors_node_is_full(job: ReleasedJob) -> None:
    """And nothing is evicted: what the executor writes fails, until the disk has room again."""
    node = next(node for node in nodes_of_executors(job) if node.name != job.cluster.node_of(job.namespace, job.driver).name)
    with node.without_evictions():
        node.fill_disk()
        wait_for(lambda: NO_SPACE in log_of_the_driver(job) or NO_SPACE in last_message(job), LIMIT_S)
        node.free_disk()


def nodes_of_executors(job: ReleasedJob) -> list[Node]:
    """The nodes on which executors run."""
    return [job.cluster.node_of(job.namespace, pod.metadata.name) for pod in job.pods("executor") if pod.status.phase == "Running"]


def log_of_the_driver(job: ReleasedJob) -> str:
    """What the driver's container has written."""
    return str(job.cluster.core.read_namespaced_pod_log(job.driver, job.namespace))


def evicted(job: ReleasedJob) -> dict[str, str]:
    """The job's pods that the kubelets have evicted, and why."""
    return evictions(job.cluster, job.namespace)


def test_no_row_is_lost_or_doubled_when_disks_are_full(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    spec = small_spec("flights", tmp_path, executor=LIMITED)
    doctor = said_by_doctor(cluster, spec)
    said: dict[str, str] = {}

    def an_executor_is_evicted(job: ReleasedJob) -> None:
        an_executor_exceeds_its_ephemeral_storage(job)
        said["executor"] = doctor()

    def the_driver_is_evicted(job: ReleasedJob) -> None:
        the_disk_of_the_drivers_node_fills(job)
        said["driver"] = doctor()

    faults: Faults = {1: the_disk_of_an_executors_node_is_full, 2: an_executor_is_evicted, 3: the_driver_is_evicted}
    with freed(cluster), run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults, failures_allowed=3)
    assert verdict.compared
    assert not verdict.differences
    assert "exceeds the limit" in said["executor"]
    assert f"by the plan each executor requests {STORAGE_MIB:,} MiB ephemeral storage" in said["executor"]
    assert "flights-driver-0: The node was low on resource: ephemeral-storage" in said["driver"]
