"""The StatefulSet of a job's driver: Kubernetes runs at most one pod of it, as a checkpoint requires."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import DeployedWorkload
from penstock.infra.manifests.driver_pod import DriverProgram, driver_pod


def driver_stateful_set(job: DeployedWorkload, program: DriverProgram) -> dict[str, Any]:
    """The StatefulSet of a job, or of a session, that runs until it is stopped.

    Args:
        job: the job.
        program: of its driver.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": job.driver_name, "namespace": job.namespace, "labels": job.labels("driver")},
        "spec": {
            "replicas": 1,
            "serviceName": job.driver_name,
            "selector": {"matchLabels": job.selector("driver")},
            # OrderedReady would wait for a pod that never becomes ready before it applies a corrected template.
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "revisionHistoryLimit": 5,
            "template": driver_pod(job, program, "Always"),
        },
    }
