"""Pods that are lost while a job runs: every row comes out once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.local.environment import LocalEnvironment
from tests.kube.evidence import wait_for
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.containers import control_group, processes
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec

MIB = 2**20
# Argument of the daemon that forks the workers of tasks, which keep its command line.
WORKER = b"pyspark.worker"
LIMIT_S = 60
# The timeout, and what a busy machine needs to end and start the container.
HUNG_LIMIT_S = 300


def an_executor_is_deleted(job: ReleasedJob) -> None:
    pod = job.pods("executor")[0]
    job.cluster.core.delete_namespaced_pod(pod.metadata.name, job.namespace, grace_period_seconds=0)


def the_driver_is_deleted(job: ReleasedJob) -> None:
    job.cluster.core.delete_namespaced_pod(job.driver, job.namespace)


def the_driver_is_killed_in_its_container(job: ReleasedJob) -> None:
    """As the kernel does where memory runs out: the container starts again in the same pod, with the same uid."""
    for pid in processes(control_group(job, job.driver), b"penstock.jobs.driver.runtime"):
        os.kill(pid, signal.SIGKILL)


def a_python_worker_runs_out_of_memory(job: ReleasedJob) -> None:
    """The kernel has the container's memory at its limit, and kills the worker, which is made the first that it chooses."""
    # It stays for the next micro-batch. An executor that has just started has none, and might stay without if no task comes to it.
    wait_for(lambda: any(processes(group, WORKER) for group in executors(job)))
    group = next(group for group in executors(job) if processes(group, WORKER))
    unified = Cgroups().unified
    limit = group / ("memory.max" if unified else "memory.limit_in_bytes")
    usage = group / ("memory.current" if unified else "memory.usage_in_bytes")
    before_bytes, killed = limit.read_text(), oom_kills(group)
    workers = processes(group, WORKER)
    for pid in workers:
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    try:
        until_s = time.monotonic() + LIMIT_S
        while oom_kills(group) == killed:
            assert time.monotonic() < until_s, "the kernel has killed nothing"
            # Refused while nothing can be reclaimed, which is when the next allocation meets the limit.
            with contextlib.suppress(OSError):
                limit.write_text(str(int(usage.read_text()) - MIB))
    finally:
        limit.write_text(before_bytes)
    # Killed at once, gone a little later.
    wait_for(lambda: not set(workers) <= set(processes(group, WORKER)))


def a_micro_batch_hangs(job: ReleasedJob) -> None:
    """Its Python workers are frozen, as a call that is never answered does: the driver ends itself, and its container says why."""
    wait_for(lambda: any(processes(group, WORKER) for group in executors(job)))
    for group in executors(job):
        for pid in processes(group, WORKER):
            os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: "JOB-090" in last_message(job), HUNG_LIMIT_S)


def executors(job: ReleasedJob) -> list[Path]:
    """The memory's control groups of the executors that run."""
    return [control_group(job, pod.metadata.name) for pod in job.pods("executor") if pod.status.phase == "Running"]


def last_message(job: ReleasedJob) -> str:
    """The termination message that the last container of the driver's pod has left."""
    (container,) = job.cluster.core.read_namespaced_pod(job.driver, job.namespace).status.container_statuses
    last = container.last_state.terminated
    return (last.message or "") if last else ""


def oom_kills(group: Path) -> int:
    """How many processes the kernel has killed there for their memory."""
    file = next(file for name in ("memory.events", "memory.oom_control") if (file := group / name).exists())
    return int(dict(line.split() for line in file.read_text().splitlines())["oom_kill"])


def test_no_row_is_lost_or_doubled_through_lost_pods(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    assert cluster.nodes
    faults: Faults = {1: an_executor_is_deleted, 2: the_driver_is_deleted, 4: the_driver_is_killed_in_its_container}
    with run_of(small_spec("flights", tmp_path), cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert verdict.compared
    assert not verdict.differences


def test_no_row_is_lost_or_doubled_when_python_workers_are_killed_or_hang(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    assert cluster.nodes
    spec = small_spec("flights", tmp_path, batches=3, progressTimeout="60s")
    faults: Faults = {2: a_python_worker_runs_out_of_memory, 5: a_micro_batch_hangs}
    with run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults, failures_allowed=1)
    assert verdict.compared
    assert not verdict.differences
