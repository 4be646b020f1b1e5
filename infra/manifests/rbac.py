"""A driver's permissions on the Kubernetes API: in its own namespace, those that Spark's client mode needs. Executors have none.

Source: Spark 4.1's scheduler/cluster/k8s: the allocator creates, lists, labels and deletes executor pods and reads the driver's own, the
snapshot sources list and watch them.
"""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.client_mode_conf import claims_volumes
from penstock.infra.manifests.deployed_job import DeployedWorkload

_GROUP = "rbac.authorization.k8s.io"
_POD_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]
_CLAIM_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch"]


def role(job: DeployedWorkload) -> dict[str, Any]:
    """The role of the driver's service account."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": _POD_VERBS}]
    if claims_volumes(job.plan.spark_conf):
        rules.append({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": _CLAIM_VERBS})
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": _metadata(job), "rules": rules}


def role_binding(job: DeployedWorkload) -> dict[str, Any]:
    """Binds the role to the driver's service account only."""
    account = {"kind": "ServiceAccount", "name": job.service_account("driver"), "namespace": job.namespace}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(job),
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": job.driver_name},
        "subjects": [account],
    }


def _metadata(job: DeployedWorkload) -> dict[str, Any]:
    return {"name": job.driver_name, "namespace": job.namespace, "labels": job.labels("driver")}
