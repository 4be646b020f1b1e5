"""Drain a cluster before its network is destroyed: jobs first, then the nodes that Karpenter has started for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import StillThere
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked

# Label of all objects of a job, set in infra/manifests/deployed_job.py.
OF_PENSTOCK = "app.kubernetes.io/part-of=penstock"
_NODE_POOLS = {"group": "karpenter.sh", "version": "v1", "plural": "nodepools"}
_NODE_CLAIMS = {"group": "karpenter.sh", "version": "v1", "plural": "nodeclaims"}
_SPARK_APPLICATIONS = {"group": "spark.apache.org", "version": "v1", "plural": "sparkapplications"}
# Karpenter's label of a NodeClaim.
_POOL_LABEL = "karpenter.sh/nodepool"
_ABSENT = 404
# In addition to a pod's own grace period: for the kubelet to report, and for the executors to follow their driver.
POD_MARGIN_S = 90.0
# Karpenter evicts a node's pods, terminates the instance and waits until EC2 confirms it.
NODES_LIMIT_S = 1200.0
LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class Drained:
    """What was stopped and deleted.

    Args:
        jobs: each running driver, ``namespace/name``; in a cluster that stays the name of its job.
        node_pools: names of the NodePools.
        node_claims: number of nodes.
    """

    jobs: tuple[str, ...]
    node_pools: tuple[str, ...]
    node_claims: int


@dataclass(frozen=True)
class Own:
    """What an environment has in a cluster that stays.

    Args:
        jobs: names of its jobs.
        release: the Helm release of its NodePools.
    """

    jobs: Sequence[str]
    release: str


def drain(
    api: client.ApiClient,
    steps: Steps,
    own: Own | None = None,
    *,
    nodes_limit_s: float = NODES_LIMIT_S,
    pod_margin_s: float = POD_MARGIN_S,
) -> Drained:
    """Stop the jobs, each at the end of its micro-batch, and then the nodes.

    Args:
        api: client of the cluster's API.
        steps: receives a line per finished step.
        own: in a cluster that stays, where jobs of other environments and NodePools of others go on; None: everything.
        nodes_limit_s: timeout in seconds for the nodes.
        pod_margin_s: seconds that a pod may take in addition to its own grace period.

    Raises:
        StillThere: DEP-011.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with steps.at("jobs", "waiting for the drivers to finish their micro-batch and stop") as step:
        jobs = stop_jobs(api, pod_margin_s) if own is None else tuple(job for job in own.jobs if stop_job(api, job, pod_margin_s))
        step.said = f"stopped: {', '.join(jobs)}" if jobs else "no running jobs"
    with steps.at("nodes", "waiting for Karpenter to remove its nodes") as step:
        pools, claims = drain_nodes(api, nodes_limit_s, own.release if own else None)
        step.said = f"{claims} nodes of {len(pools)} pools removed"
    return Drained(jobs, pools, claims)


def stop_jobs(api: client.ApiClient, pod_margin_s: float = POD_MARGIN_S) -> tuple[str, ...]:
    """Stop all drivers, and wait until all pods of the jobs are gone.

    A stopped driver finishes its current micro-batch within the grace period of its pod, so that no output is left incomplete.

    Returns:
        ``namespace/name`` of the stopped drivers.

    Raises:
        StillThere: DEP-011, with the pods.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with asked("the jobs"):
        grace_s = _grace_s(api, OF_PENSTOCK)
        drivers = [*_scale_down(api, OF_PENSTOCK), *_delete_runs(api), *_delete_applications(api)]
    _wait_for_pods(api, OF_PENSTOCK, grace_s + pod_margin_s)
    return tuple(drivers)


def stop_job(api: client.ApiClient, job: str, pod_margin_s: float = POD_MARGIN_S) -> bool:
    """Stop the driver of one job, at the end of its micro-batch, and wait until all pods of the job are gone.

    Args:
        api: client of the cluster's API.
        job: its name.
        pod_margin_s: seconds that a pod may take in addition to its own grace period.

    Returns:
        Whether it was to run before.

    Raises:
        StillThere: DEP-011, with the pods.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    selector = of_job(job)
    with asked(f"the job {job}"):
        grace_s = _grace_s(api, selector)
        stopped = _scale_down(api, selector)
    _wait_for_pods(api, selector, grace_s + pod_margin_s)
    return bool(stopped)


def of_job(job: str) -> str:
    """The selector of a job's objects."""
    return f"{OF_PENSTOCK},penstock.dev/job={job}"


def _grace_s(api: client.ApiClient, selector: str) -> int:
    return max((pod.spec.termination_grace_period_seconds or 0 for pod in _pods(api, selector)), default=0)


def _wait_for_pods(api: client.ApiClient, selector: str, limit_s: float) -> None:
    fix = "check the logs with kubectl logs, and delete a hanging pod with kubectl delete pod"
    _wait(lambda: [_name(pod) for pod in _pods(api, selector)], limit_s, "pods", fix)


def drain_nodes(api: client.ApiClient, limit_s: float = NODES_LIMIT_S, release: str | None = None) -> tuple[tuple[str, ...], int]:
    """Delete the NodePools, and wait until Karpenter has terminated the last of their nodes.

    Args:
        api: client of the cluster's API.
        limit_s: timeout in seconds.
        release: the Helm release of the NodePools; None: all NodePools.

    Returns:
        The names of the NodePools and the number of their node claims.

    Raises:
        StillThere: DEP-011, with the node claims.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    custom = client.CustomObjectsApi(api)
    with asked("the node pools"):
        listed = _listed(custom, _NODE_POOLS)
        pools = tuple(pool["metadata"]["name"] for pool in listed if release in (None, _release(pool)))

        def left() -> list[str]:
            of_pools = (claim["metadata"] for claim in _listed(custom, _NODE_CLAIMS))
            return [one["name"] for one in of_pools if release is None or one.get("labels", {}).get(_POOL_LABEL) in pools]

        claims = len(left())
        for pool in pools:
            _gone_is_fine(partial(custom.delete_cluster_custom_object, **_NODE_POOLS, name=pool, _request_timeout=REQUEST_LIMIT_S))
    hint = "check with kubectl describe nodeclaim what blocks it: a pod that cannot be evicted, or the controller"
    _wait(left, limit_s, "nodes", hint)
    return pools, claims


def _release(pool: Any) -> str | None:
    release: str | None = pool["metadata"].get("annotations", {}).get("meta.helm.sh/release-name")
    return release


def _pods(api: client.ApiClient, selector: str) -> Sequence[Any]:
    core = client.CoreV1Api(api)
    pods = core.list_pod_for_all_namespaces(label_selector=selector, _request_timeout=REQUEST_LIMIT_S).items
    # A completed pod blocks nothing; a bounded run keeps it for its log.
    return [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]


def _scale_down(api: client.ApiClient, selector: str) -> list[str]:
    apps = client.AppsV1Api(api)
    sets = apps.list_stateful_set_for_all_namespaces(label_selector=selector, _request_timeout=REQUEST_LIMIT_S).items
    running = [driver for driver in sets if driver.spec.replicas != 0]
    for driver in running:
        apps.patch_namespaced_stateful_set_scale(
            driver.metadata.name, driver.metadata.namespace, {"spec": {"replicas": 0}}, _request_timeout=REQUEST_LIMIT_S
        )
    return [_name(driver) for driver in running]


def _delete_runs(api: client.ApiClient) -> list[str]:
    batch = client.BatchV1Api(api)
    runs = batch.list_job_for_all_namespaces(label_selector=OF_PENSTOCK, _request_timeout=REQUEST_LIMIT_S).items
    for run in runs:
        place = {"name": run.metadata.name, "namespace": run.metadata.namespace}
        _gone_is_fine(partial(batch.delete_namespaced_job, **place, propagation_policy="Background", _request_timeout=REQUEST_LIMIT_S))
    return [_name(run) for run in runs]


def _delete_applications(api: client.ApiClient) -> list[str]:
    custom = client.CustomObjectsApi(api)
    applications = [one["metadata"] for one in _listed(custom, _SPARK_APPLICATIONS, label_selector=OF_PENSTOCK)]
    for one in applications:
        place = {"namespace": one["namespace"], "name": one["name"]}
        _gone_is_fine(partial(custom.delete_namespaced_custom_object, **_SPARK_APPLICATIONS, **place, _request_timeout=REQUEST_LIMIT_S))
    return [f"{one['namespace']}/{one['name']}" for one in applications]


def _listed(custom: client.CustomObjectsApi, kind: dict[str, str], **asked_for: str) -> list[dict[str, Any]]:
    """The objects of a kind; empty if the cluster does not have the kind."""
    try:
        items: list[dict[str, Any]] = custom.list_cluster_custom_object(**kind, **asked_for, _request_timeout=REQUEST_LIMIT_S)["items"]
    except ApiException as error:
        if error.status == _ABSENT:
            return []
        raise
    return items


def _gone_is_fine(delete: Callable[[], object]) -> None:
    try:
        delete()
    except ApiException as error:
        if error.status != _ABSENT:
            raise


def _wait(left: Callable[[], list[str]], limit_s: float, what: str, fix: str) -> None:
    until_s = time.monotonic() + limit_s
    while True:
        with asked(what):
            names = left()
        if not names:
            return
        if time.monotonic() > until_s:
            shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
            raise StillThere(path=what, given=shown, need=f"none left within {limit_s:g} s", fix=f"{fix}; then retry")
        time.sleep(LOOK_EVERY_S)


def _name(item: Any) -> str:
    return f"{item.metadata.namespace}/{item.metadata.name}"
