"""Pods that are lost while a job runs: every row comes out once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from penstock.scripts.local.environment import LocalEnvironment
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec


def an_executor_is_deleted(job: ReleasedJob) -> None:
    pod = job.pods("executor")[0]
    job.cluster.core.delete_namespaced_pod(pod.metadata.name, job.namespace, grace_period_seconds=0)


def the_driver_is_deleted(job: ReleasedJob) -> None:
    job.cluster.core.delete_namespaced_pod(job.driver, job.namespace)


def the_driver_is_killed_in_its_container(job: ReleasedJob) -> None:
    """As the kernel does where memory runs out: the container starts again in the same pod, with the same uid."""
    pod = job.cluster.core.read_namespaced_pod(job.driver, job.namespace)
    (container,) = pod.status.container_statuses
    node = job.cluster.node_of(job.namespace, job.driver)
    for folder in job.cluster.tree(node).rglob(container.container_id.rpartition("/")[2]):
        for pid in map(int, (folder / "cgroup.procs").read_text("ascii").split()):
            if b"penstock.jobs.driver.runtime" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def test_no_row_is_lost_or_doubled_through_lost_pods(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    assert cluster.nodes
    spec = small_spec("flights", tmp_path)
    faults: Faults = {1: an_executor_is_deleted, 2: the_driver_is_deleted, 4: the_driver_is_killed_in_its_container}
    with run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert verdict.compared
    assert not verdict.differences
