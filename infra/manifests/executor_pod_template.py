"""The template of executor pods: what Spark has no settings for. Spark fills in memory, CPU, image and names."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.client_mode_conf import EXECUTOR_CONTAINER
from penstock.infra.manifests.deployed_job import DeployedWorkload
from penstock.infra.manifests.pod import placed, storage_resources
from penstock.infra.manifests.pod_security import container_security_context, pod_security_context
from penstock.infra.manifests.pod_volumes import pod_volumes
from penstock.sizing.executor_spread import spread_constraints


def executor_pod_template(job: DeployedWorkload) -> dict[str, Any]:
    """The template, a Pod. Spark adds its scratch folder, a separate volume, at spark.local.dir."""
    volumes, mounts = pod_volumes(job, "executor", scratch=False)
    container = {
        "name": EXECUTOR_CONTAINER,
        "resources": storage_resources(job.plan.pods.executor),
        "securityContext": container_security_context(),
        "volumeMounts": mounts,
    }
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security_context(),
        "containers": [container],
        "volumes": volumes,
        **placed(job.executor),
        **_spread(job),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": job.labels("executor")}, "spec": pod}


def _spread(job: DeployedWorkload) -> dict[str, Any]:
    pods = job.plan.pods
    if pods.executor_spread is None:
        return {}
    constraints = spread_constraints(pods.executor_spread, job.selector("executor"), pods.executor.count, job.zones)
    return {"topologySpreadConstraints": constraints}
