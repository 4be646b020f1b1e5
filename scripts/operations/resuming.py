"""A job that is stopped, or that has failed for good, runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubernetes import client

from penstock.scripts.provisioning.draining import of_job
from penstock.scripts.provisioning.errors import JobNotDeployed
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked


def driver_of(api: client.ApiClient, job: str) -> Any:
    """The StatefulSet of the driver of a job, or of a session.

    Raises:
        JobNotDeployed: DEP-017.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with asked(f"the job {job}"):
        found = client.AppsV1Api(api).list_stateful_set_for_all_namespaces(label_selector=of_job(job), _request_timeout=REQUEST_LIMIT_S)
    if not found.items:
        need = "a StatefulSet of its driver in the cluster; a bounded run has none, and ends by itself"
        raise JobNotDeployed(path=f"job {job}", need=need, fix="deploy it: penstock deploy ENV jobs-charts")
    return found.items[0]


def resume(api: client.ApiClient, job: str, forgive: Callable[[], object]) -> bool:
    """Start the driver of a job, or of a session, that does not run.

    Args:
        api: client of the cluster's API.
        job: its name.
        forgive: has its failures so far count no more.

    Returns:
        Whether it was started; False if it runs or starts already.

    Raises:
        JobNotDeployed: DEP-017.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
        PenstockError: JOB-009, JOB-082.
    """
    driver, core = driver_of(api, job), client.CoreV1Api(api)
    with asked(f"the job {job}"):
        crashed = _crashed(core, driver)
    if driver.spec.replicas != 0 and not crashed:
        return False
    # Before the driver starts: it reads it.
    forgive()
    with asked(f"the job {job}"):
        for pod in crashed:
            # Its container would start again within five minutes; another pod does at once.
            core.delete_namespaced_pod(pod, driver.metadata.namespace, _request_timeout=REQUEST_LIMIT_S)
    start(api, driver)
    return True


def start(api: client.ApiClient, driver: Any) -> None:
    """Start a driver, by its StatefulSet; one that runs or starts is left alone.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    if driver.spec.replicas == 0:
        name, namespace = driver.metadata.name, driver.metadata.namespace
        with asked(f"the driver {namespace}/{name}"):
            client.AppsV1Api(api).patch_namespaced_stateful_set_scale(
                name, namespace, {"spec": {"replicas": 1}}, _request_timeout=REQUEST_LIMIT_S
            )


def is_ready(driver: Any) -> bool:
    """Whether the query of a driver reads, by its StatefulSet."""
    status = driver.status
    return driver.spec.replicas != 0 and bool(status.ready_replicas) and status.observed_generation == driver.metadata.generation


def _crashed(core: client.CoreV1Api, driver: Any) -> list[str]:
    """Names of the driver's pods whose container has ended and waits for its next start."""
    labels = ",".join(f"{name}={value}" for name, value in driver.spec.selector.match_labels.items())
    pods = core.list_namespaced_pod(driver.metadata.namespace, label_selector=labels, _request_timeout=REQUEST_LIMIT_S).items
    return [pod.metadata.name for pod in pods if any(_has_ended(one) for one in pod.status.container_statuses or ())]


def _has_ended(container: Any) -> bool:
    return container.state.running is None and (container.state.terminated is not None or container.restart_count > 0)
