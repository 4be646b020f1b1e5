"""The writable volumes of a job's pods: they live as long as their pod, and have the plan's limits."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import Component, DeployedWorkload
from penstock.infra.manifests.pod_security import LOCAL_DIRS, TEMPORARY, WORK
from penstock.sizing.ephemeral_storage import VolumeLimits, has_own_local_dirs, volume_limits

# The name by which Spark recognises a volume for its local directory. Source: Spark 4.3.0, LocalDirsFeatureStep.
SCRATCH = "spark-local-dir-1"


def pod_volumes(job: DeployedWorkload, component: Component, *, scratch: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volumes, and their mounts in the container.

    Args:
        job: the job.
        component: whose pod.
        scratch: whether Spark's local directory is among them: Spark itself adds it to the pods that it creates.
    """
    limits = _limits(job, component)
    volumes = {"tmp": (TEMPORARY, limits.temporary_mib), "work": (WORK, limits.work_mib)}
    if scratch:
        volumes[SCRATCH] = (LOCAL_DIRS, limits.scratch_mib)
    mounts = [{"name": name, "mountPath": path} for name, (path, _) in volumes.items()]
    return [_volume(name, limit_mib) for name, (_, limit_mib) in volumes.items()], mounts


def scratch_conf(job: DeployedWorkload, component: Component) -> dict[str, str]:
    """Spark's settings for the volume of the local directory of a pod that it creates.

    Returns:
        Setting -> value; empty without a limit, with which Spark adds the same volume, and where the job's own settings place it.
    """
    limit_mib = _limits(job, component).scratch_mib
    if limit_mib is None or has_own_local_dirs(job.plan.spark_conf, component):
        return {}
    at = f"spark.kubernetes.{component}.volumes.emptyDir.{SCRATCH}"
    return {f"{at}.mount.path": LOCAL_DIRS, f"{at}.options.sizeLimit": f"{limit_mib}Mi"}


def _limits(job: DeployedWorkload, component: Component) -> VolumeLimits:
    plan = job.plan
    driver = component == "driver"
    pod, needs = (plan.pods.driver, plan.driver_storage) if driver else (plan.pods.executor, plan.executor_storage)
    return volume_limits(needs, pod.limit_ephemeral_storage_mib)


def _volume(name: str, limit_mib: int | None) -> dict[str, Any]:
    return {"name": name, "emptyDir": {} if limit_mib is None else {"sizeLimit": f"{limit_mib}Mi"}}
