"""The service accounts of a job: its driver's, and its executors'."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import Component, DeployedJob

ROLE_ANNOTATION = "penstock.dev/role-arn"


def service_account(job: DeployedJob, component: Component) -> dict[str, Any]:
    """One of the two. Its AWS role comes by pod identity; here it is told only to whoever looks for it.

    Args:
        job: whose it is.
        component: which of the two.
    """
    metadata: dict[str, Any] = {
        "name": job.service_account(component),
        "namespace": job.namespace,
        "labels": job.labels(component),
    }
    if job.role_arn is not None:
        metadata["annotations"] = {ROLE_ANNOTATION: job.role_arn}
    # The driver's pod asks for its token by itself; executors ask nothing of Kubernetes.
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}
