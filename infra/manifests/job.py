"""All objects of a job in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.infra.manifests.config_map import config_map
from penstock.infra.manifests.deployed_job import DeployedJob, DeployedWorkload
from penstock.infra.manifests.driver_job import driver_job
from penstock.infra.manifests.driver_pod import program_of
from penstock.infra.manifests.driver_stateful_set import driver_stateful_set
from penstock.infra.manifests.namespace import namespace
from penstock.infra.manifests.network_policy import network_policies
from penstock.infra.manifests.rbac import role, role_binding
from penstock.infra.manifests.resource_quota import limit_range, resource_quota
from penstock.infra.manifests.service import driver_service
from penstock.infra.manifests.service_account import service_account
from penstock.infra.manifests.upgrade_check import requested


def job_manifests(job: DeployedJob) -> list[dict[str, Any]]:
    """The objects of a job that runs without an operator, in an order in which they can be applied one by one.

    All are in the job's own namespace, which is the first. A pure function: equal input gives equal output, to the byte.

    Args:
        job: the job; see `DeployedJob` for its fields. ``plan`` is the result of `penstock.sizing.plan.plan` for a spec;
            ``trigger_s=None``
            makes a bounded run: a Job instead of the StatefulSet.

    Returns:
        Namespace, quota, limits, service accounts, RBAC, network policies, ConfigMap, headless Service, and the driver's StatefulSet or
        Job, each in the form of the Kubernetes API.
    """
    driver = driver_job(job) if job.bounded else driver_stateful_set(job, program_of(job))
    return [*foundation(job, requested(job)), role(job), role_binding(job), config_map(job), driver_service(job), driver]


def foundation(job: DeployedWorkload, check: Mapping[str, int]) -> list[dict[str, Any]]:
    """The objects that a job, or a session, needs with any launcher of its driver: namespace, quota, service accounts and network policies.

    Args:
        job: the job.
        check: requests of the check before an upgrade, as `penstock.infra.manifests.upgrade_check.requested`.
    """
    return [
        namespace(job),
        resource_quota(job, check),
        limit_range(job),
        service_account(job, "driver"),
        service_account(job, "executor"),
        *network_policies(job),
    ]
