"""The namespace of a job."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import DeployedWorkload

# Source: Kubernetes, "Pod Security Standards" and "Enforce Pod Security Standards with Namespace Labels".
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def namespace(job: DeployedWorkload) -> dict[str, Any]:
    """Rejects pods with more rights than a job's pods need."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": job.namespace, "labels": {**job.labels(), **RESTRICTED}},
    }
