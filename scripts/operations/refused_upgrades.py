"""Why the check of an upgrade has refused it: Helm and Terraform say only that a hook has failed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubernetes import client

from penstock.infra.manifests.deployed_job import COMPONENT_LABEL, INSTANCE_LABEL
from penstock.infra.manifests.upgrade_check import COMPONENT
from penstock.jobs.configuration.runtime import JOB_LABEL
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked


def refusals(api: client.ApiClient, since: datetime) -> dict[str, str]:
    """Job -> what the last pod of its check has ended with.

    Args:
        api: client of the cluster's API.
        since: pods that were created before are of other upgrades.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with asked("the checks of upgrades"):
        core = client.CoreV1Api(api)
        pods = core.list_pod_for_all_namespaces(label_selector=f"{COMPONENT_LABEL}={COMPONENT}", _request_timeout=REQUEST_LIMIT_S).items
    failed = [pod for pod in pods if pod.status.phase == "Failed" and pod.metadata.creation_timestamp >= since]
    failed.sort(key=lambda pod: pod.metadata.creation_timestamp)
    return {_job(pod): _message(pod) for pod in failed}


def _job(pod: Any) -> str:
    """The job that is checked: the label of the objects' owner names the session of one that runs in a session."""
    labels = pod.metadata.labels
    return str(labels.get(INSTANCE_LABEL) or labels.get(JOB_LABEL, pod.metadata.namespace))


def _message(pod: Any) -> str:
    ends = [one.state.terminated for one in pod.status.container_statuses or [] if one.state.terminated is not None]
    said = next((end.message for end in ends if end.message), None)
    return (said or pod.status.message or pod.status.reason or "no reason is recorded").strip()
