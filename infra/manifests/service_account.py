"""The service accounts of a job: of its driver and of its executors."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import Component, DeployedWorkload

ROLE_ANNOTATION = "penstock.dev/role-arn"


def service_account(job: DeployedWorkload, component: Component) -> dict[str, Any]:
    """One of the two. Its AWS role comes from pod identity; the annotation is only informative.

    Args:
        job: the job.
        component: driver or executor.
    """
    metadata: dict[str, Any] = {
        "name": job.service_account(component),
        "namespace": job.namespace,
        "labels": job.labels(component),
    }
    if job.role_arn is not None:
        metadata["annotations"] = {ROLE_ANNOTATION: job.role_arn}
    # The driver's pod mounts its token explicitly; executors do not use the Kubernetes API.
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}
