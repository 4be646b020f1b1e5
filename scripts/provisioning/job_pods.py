"""What keeps the pods of deployed jobs from running: the cluster's reasons, beside what the plan asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes import client

from penstock.infra.manifests.deployed_job import namespace
from penstock.scripts.provisioning.draining import OF_PENSTOCK
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked
from penstock.scripts.render.node_shares import counted
from penstock.sizing.plan.session import SessionPlan
from penstock.sizing.plan.workload import Workload

_PURPOSE = "its driver and its executors run"
_JOB, _ROLE = "penstock.dev/job", "spark-role"
# Source: the kubelet's pkg/kubelet/images/types.go; all are about the image of a container that waits.
_IMAGE_REASONS = {"ErrImagePull", "ErrImageNeverPull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable"}

# Source: the kubelet's pkg/kubelet/eviction; a pod's status and the event have it. The API server keeps events for an hour.
_EVICTED = "Evicted"
# What it says of a disk: of a pod's volume, of a pod, and of the node, as in "The node was low on resource: ephemeral-storage".
_OF_A_DISK = ("emptydir", "ephemeral", "inodes")


def look(api: client.ApiClient, running: Mapping[str, Workload]) -> list[Finding]:
    """Check the pods of each job that has a driver of its own, and of each session.

    Args:
        api: client of the cluster's API.
        running: name -> plan, see `penstock.infra.plans.EnvironmentPlans.workloads`.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    with asked("the pods of the jobs"):
        core = client.CoreV1Api(api)
        pods = core.list_pod_for_all_namespaces(label_selector=OF_PENSTOCK, _request_timeout=REQUEST_LIMIT_S).items
        # Spark deletes evicted executors at once, and the StatefulSet's controller an evicted driver: their events stay.
        events = core.list_event_for_all_namespaces(field_selector=f"reason={_EVICTED}", _request_timeout=REQUEST_LIMIT_S).items
    return [
        of_job(name, plan, [pod for pod in pods if pod.metadata.labels.get(_JOB) == name], _evictions(name, events))
        for name, plan in running.items()
    ]


def _evictions(job: str, events: Sequence[Any]) -> dict[str, str]:
    """The evicted pods of a job, the last one first, and why."""
    own = [event for event in events if event.involved_object.namespace == namespace(job)]
    own.sort(key=lambda event: event.last_timestamp or event.metadata.creation_timestamp, reverse=True)
    return {event.involved_object.name: event.message or "" for event in own}


def of_job(name: str, plan: Workload, pods: Sequence[Any], evictions: Mapping[str, str]) -> Finding:
    """Check the pods of one job, or of one session. The first reason that keeps one from running is reported.

    Args:
        name: of the job.
        plan: of the job.
        pods: its pods, as the API has them.
        evictions: its pods that kubelets have evicted within an hour, the last one first, and why.
    """
    # A completed pod blocks nothing, and a bounded run keeps it for its log.
    own = [pod for pod in pods if pod.metadata.labels.get(_ROLE) and pod.status.phase != "Succeeded"]
    title = f"session {name}" if isinstance(plan, SessionPlan) else f"job {name}"
    if not own:
        return Finding(title, OK, "no pods: not deployed, stopped, or completed", _PURPOSE)
    found = _image(own) or _no_node(own, plan) or _evicted(name, evictions, plan) or _failed(own)
    if found:
        said, fix = found
        return missing(title, said=said, purpose=_PURPOSE, fix=fix, needed=True)
    return Finding(title, OK, _running(own), _PURPOSE)


def _image(pods: Sequence[Any]) -> tuple[str, str] | None:
    for pod in pods:
        for container in pod.status.container_statuses or []:
            waiting = container.state.waiting
            if waiting and waiting.reason in _IMAGE_REASONS:
                said = f"{pod.metadata.name}: {waiting.reason}: {waiting.message or container.image}"
                return (
                    said,
                    "push this tag to the registry, or deploy with one that is there: registry.imageTag, or registry.imageTags for one job",
                )
    return None


def _no_node(pods: Sequence[Any], plan: Workload) -> tuple[str, str] | None:
    waiting = [(pod, said) for pod in pods if (said := _unschedulable(pod))]
    if not waiting:
        return None
    role = waiting[0][0].metadata.labels[_ROLE]
    of_role = [said for pod, said in waiting if pod.metadata.labels[_ROLE] == role]
    planned = plan.pods.driver if role == "driver" else plan.pods.executor
    asks = f"{planned.request_cpu_millicores}m CPU, {planned.memory_mib:,} MiB memory"
    if planned.request_ephemeral_storage_mib:
        asks += f", {planned.request_ephemeral_storage_mib:,} MiB ephemeral storage"
    by_plan = f"by the plan each requests {asks}{_types(role, plan)}"
    return (
        f"{len(of_role)} of {counted(planned.count, role)} without a node: {of_role[0]}; {by_plan}",
        "check the limits and events of the NodePool (kubectl describe nodepool), the quotas, and penstock place",
    )


def _unschedulable(pod: Any) -> str:
    """Why the scheduler finds no node; empty if it has found one."""
    conditions = pod.status.conditions or []
    return next((one.message or one.reason or "" for one in conditions if one.type == "PodScheduled" and one.status == "False"), "")


def _types(role: str, plan: Workload) -> str:
    """The nodes on which the plan has the pods."""
    groups = plan.nodes.one_batch.groups if plan.nodes else ()
    found = {f"{group.example.instance_type} of pool {group.node_pool}" for group in groups if group.example and _has(group.pods, role)}
    return f", which fits {', '.join(sorted(found))}" if found else ""


def _has(pods: Sequence[Any], role: str) -> bool:
    return any(pod.group.rpartition("/")[2] == role for pod in pods)


def _evicted(job: str, evictions: Mapping[str, str], plan: Workload) -> tuple[str, str] | None:
    """The last eviction: an executor that is evicted for what it writes will be evicted again, although another runs now."""
    if not evictions:
        return None
    pod, message = next(iter(evictions.items()))
    role = "driver" if pod.startswith(f"{job}-driver") else "executor"
    planned = plan.pods.driver if role == "driver" else plan.pods.executor
    said = f"{counted(len(evictions), 'pod')} evicted within an hour, the last one {pod}: {' '.join(message.split())}"
    if not any(word in message.lower() for word in _OF_A_DISK):
        return said, "check the node's conditions (kubectl describe node) and what else runs there"
    said += f"; by the plan each {role} requests {planned.request_ephemeral_storage_mib:,} MiB ephemeral storage"
    if "exceeds" in message:
        return said, f"raise {role}.ephemeralStorage in the spec; penstock size --explain has the plan's parts"
    return said, (
        f"raise the environment's rootVolume, or find what else writes to the node's disk; a pod that uses more than it requests is "
        f"evicted first: {role}.ephemeralStorage"
    )


def _failed(pods: Sequence[Any]) -> tuple[str, str] | None:
    for pod in pods:
        for container in pod.status.container_statuses or []:
            if not container.ready and (last := container.state.terminated or container.last_state.terminated):
                said = f"{pod.metadata.name}: restarted {counted(container.restart_count, 'time')}, last ended with {_end(last)}"
                logs = f"kubectl logs --previous --namespace {pod.metadata.namespace} {pod.metadata.name}"
                return said, f"check its log with {logs}"
    return None


def _end(terminated: Any) -> str:
    said = " ".join((terminated.message or "").split())
    return f"{terminated.reason}, exit code {terminated.exit_code}" + (f": {said}" if said else "")


def _running(pods: Sequence[Any]) -> str:
    executors = sum(pod.metadata.labels[_ROLE] == "executor" for pod in pods)
    restarts = sum(container.restart_count for pod in pods for container in pod.status.container_statuses or [])
    ready = all(container.ready for pod in pods for container in pod.status.container_statuses or [])
    return (
        f"the driver and {counted(executors, 'executor')}"
        + ("" if ready else ", starting")
        + (f", {restarts} restarts" if restarts else "")
    )
