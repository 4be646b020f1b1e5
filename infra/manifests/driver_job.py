"""The Kubernetes Job of a bounded run's driver."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.config_map import fingerprint
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import driver_pod, program_of

RETRIES = 3


def driver_job(job: DeployedJob) -> dict[str, Any]:
    """The Job. Its template is immutable, so a changed template gets another name."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{job.driver_name}-{fingerprint(job)[:8]}", "namespace": job.namespace, "labels": job.labels("driver")},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": RETRIES,
            # The next pod waits until the previous one has ended. Another Job's driver may still run: the job's lease decides.
            "podReplacementPolicy": "Failed",
            "template": driver_pod(job, program_of(job), "Never"),
        },
    }
