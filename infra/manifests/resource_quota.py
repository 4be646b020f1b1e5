"""Limits of a job's namespace: the planned resources plus those of a restart and of an upgrade; and limits of a single container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.infra.manifests.client_mode_conf import claims_volumes
from penstock.infra.manifests.deployed_job import DeployedWorkload

# While the executors of a lost driver are still terminating, those of the next one start.
EXECUTORS_AT_A_RESTART = 2


def resource_quota(job: DeployedWorkload, check: Mapping[str, int]) -> dict[str, Any]:
    """The quota: one driver, twice the executors, and the check before an upgrade, of which there is one at a time.

    Args:
        job: the job, or the session.
        check: requests of the check, as `penstock.infra.manifests.upgrade_check.requested`.
    """
    driver, executor = job.plan.pods.driver, job.plan.pods.executor
    executors = EXECUTORS_AT_A_RESTART * executor.count
    memory = f"{driver.memory_mib + executors * executor.memory_mib + check['memory_mib']}Mi"
    storage_mib = driver.request_ephemeral_storage_mib + executors * executor.request_ephemeral_storage_mib + check["storage_mib"]
    cpu_millicores = driver.request_cpu_millicores + executors * executor.request_cpu_millicores + check["cpu_millicores"]
    hard = {
        "requests.cpu": f"{cpu_millicores}m",
        "requests.memory": memory,
        "limits.memory": memory,
        "requests.ephemeral-storage": f"{storage_mib}Mi",
        "pods": str(2 + executors),
        "services": "1",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        "secrets": "0",
    }
    if not claims_volumes(job.plan.spark_conf):
        hard["persistentvolumeclaims"] = "0"
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": _metadata(job), "spec": {"hard": hard}}


def limit_range(job: DeployedWorkload) -> dict[str, Any]:
    """No container is larger than the largest planned one; a container without requests, such as one for debugging, gets small defaults."""
    largest_mib = max(job.plan.pods.driver.memory_mib, job.plan.pods.executor.memory_mib)
    little = f"{min(256, largest_mib)}Mi"
    limit = {
        "type": "Container",
        "max": {"memory": f"{largest_mib}Mi"},
        "default": {"memory": little},
        "defaultRequest": {"memory": little, "cpu": "100m"},
    }
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": _metadata(job), "spec": {"limits": [limit]}}


def _metadata(job: DeployedWorkload) -> dict[str, Any]:
    return {"name": "planned", "namespace": job.namespace, "labels": job.labels()}
