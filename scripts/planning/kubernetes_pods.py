"""The pods of Kubernetes objects: of workloads, and those that a cluster already has.

Pods of one controller that ask for the same are one group. A workload whose pods are given too counts by its pods alone, because its
controller has already created them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from penstock.jobs.document import Path_
from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.sizing.errors import PenstockError
from penstock.sizing.placement.errors import BadScenario
from penstock.sizing.placement.pod_manifests import Pod
from penstock.sizing.placement.scenario import MAX_PODS

# The kinds with a pod template, and the field with the number of their pods.
WORKLOADS = {"Deployment": "replicas", "ReplicaSet": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}

# Pods of the same controller differ in these labels only.
_OF_ONE_POD = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index")
_SET_BY_THE_CLUSTER = ("nodeName",)
_DECISIVE = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources")
_TEMPLATE_HASH = "pod-template-hash"


class PodGroupOf(NamedTuple):
    """A group of pods, not yet named.

    Args:
        source: the object that it comes from.
        owner: kind, namespace and name of the workload or pod.
        spec: path of the pods' spec in the object.
        metadata: path of their metadata.
        pending: number of pending pods.
        running: number of pods that run already, by node.
    """

    source: KubernetesObject
    owner: tuple[str, str, str]
    spec: Path_
    metadata: Path_
    pending: int
    running: dict[str, int]

    def pod(self, name: str) -> Pod:
        """One of the pods.

        Args:
            name: name of the group.

        Raises:
            PenstockError: SIZ-020 to SIZ-023.
        """
        labels = self.source.mapping(*self.metadata, "labels")
        metadata = {"name": name, "namespace": self.source.namespace, "labels": {k: v for k, v in labels.items() if k not in _OF_ONE_POD}}
        spec = {key: value for key, value in self.source.mapping(*self.spec).items() if key not in _SET_BY_THE_CLUSTER}
        paths: dict[str | int, Path_] = {"metadata": self.metadata, "spec": self.spec}

        def origin(location: Path_) -> Path_:
            return (*paths[location[0]], *location[1:]) if location and location[0] in paths else location

        return self.source.model(Pod, {"metadata": metadata, "spec": spec}, origin)


class Pods(NamedTuple):
    """The pods of a cluster.

    Args:
        groups: the groups, in the order of the objects.
        faults: errors in the objects.
        elsewhere: pods that run on nodes that are not given.
    """

    groups: tuple[PodGroupOf, ...]
    faults: tuple[PenstockError, ...]
    elsewhere: int


def pods_of(objects: Sequence[KubernetesObject], nodes: Iterable[str]) -> Pods:
    """The pods of objects, without those of DaemonSets and those that ended.

    Args:
        objects: all objects.
        nodes: names of the given nodes.
    """
    known = set(nodes)
    live = [each for each in objects if each.kind == "Pod" and _is_live(each)]
    owned = {_owner(pod) for pod in live}
    deployments = {("Deployment", each.namespace, each.name) for each in objects if each.kind == "Deployment"}
    groups: list[PodGroupOf] = []
    faults: list[PenstockError] = []
    for each in objects:
        if each.kind in WORKLOADS and not {_self(each), _workload(each)} & owned and _managed(each) not in deployments:
            made = _of_workload(each)
            if isinstance(made, PenstockError):
                faults.append(made)
            else:
                groups.append(made)
    groups += _of_pods([pod for pod in live if not pod.text("spec", "nodeName") or pod.text("spec", "nodeName") in known])
    elsewhere = sum(1 for pod in live if pod.text("spec", "nodeName") and pod.text("spec", "nodeName") not in known)
    return Pods(tuple(groups), tuple(faults), elsewhere)


def names_of(groups: Sequence[PodGroupOf]) -> list[str]:
    """A unique name for each group: that of its workload, with namespace and kind where that is not unique."""
    names = [group.owner[2] for group in groups]
    qualified = [f"{namespace}/{name}" for _, namespace, name in (group.owner for group in groups)]
    full = [f"{kind.lower()}/{namespace}/{name}" for kind, namespace, name in (group.owner for group in groups)]
    for level in (qualified, full):
        repeated = {name for name, times in Counter(names).items() if times > 1}
        names = [longer if name in repeated else name for name, longer in zip(names, level, strict=True)]
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return numbered


def _of_workload(item: KubernetesObject) -> PodGroupOf | PenstockError:
    count = 0 if item.kind == "Job" and _is_at_rest(item) else item.get("spec", WORKLOADS[item.kind])
    count = 1 if count is None else count
    if item.kind == "Job" and isinstance(completions := item.get("spec", "completions"), int) and isinstance(count, int):
        count = min(count, completions)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_PODS:
        need = f"an integer from 0 to {MAX_PODS}"
        return item.refused(BadScenario, "spec", WORKLOADS[item.kind], need=need, fix="correct the number")
    template = ("spec", "template")
    if not item.mapping(*template, "spec"):
        return item.refused(BadScenario, *template, need="spec.template.spec, the spec of its pods", fix="add it")
    return PodGroupOf(item, _self(item), (*template, "spec"), (*template, "metadata"), count, {})


def _is_at_rest(job: KubernetesObject) -> bool:
    """Whether a Job is suspended or has ended."""
    conditions = [each for each in job.items("status", "conditions") if isinstance(each, dict) and each.get("status") == "True"]
    return job.get("spec", "suspend") is True or any(each.get("type") in ("Complete", "Failed") for each in conditions)


def _of_pods(pods: Iterable[KubernetesObject]) -> Iterator[PodGroupOf]:
    alike: dict[str, list[KubernetesObject]] = {}
    for pod in pods:
        alike.setdefault(json.dumps([_owner(pod), _decisive(pod)], sort_keys=True, default=str), []).append(pod)
    for group in alike.values():
        on_nodes = Counter(node for pod in group if (node := pod.text("spec", "nodeName")))
        pending = sum(1 for pod in group if not pod.text("spec", "nodeName"))
        yield PodGroupOf(group[0], _owner(group[0]), ("spec",), ("metadata",), pending, dict(on_nodes))


def _decisive(pod: KubernetesObject) -> list[Any]:
    """What decides the placement of a pod."""
    spec = pod.mapping("spec")
    labels = {key: value for key, value in pod.mapping("metadata", "labels").items() if key not in _OF_ONE_POD}
    containers = [
        [(each.get("resources"), each.get("restartPolicy")) for each in pod.items("spec", key) if isinstance(each, dict)]
        for key in ("containers", "initContainers")
    ]
    return [labels, containers, [spec.get(key) for key in _DECISIVE]]


def _is_live(pod: KubernetesObject) -> bool:
    """Whether a pod is to be placed, or takes room on a node that is not taken by a DaemonSet."""
    ended = pod.text("status", "phase") in ("Succeeded", "Failed") or pod.get("metadata", "deletionTimestamp") is not None
    return not ended and pod.controller[0] not in ("DaemonSet", "Node")


def _self(item: KubernetesObject) -> tuple[str, str, str]:
    return item.kind, item.namespace, item.name


def _managed(item: KubernetesObject) -> tuple[str, str, str]:
    kind, name = item.controller
    return kind, item.namespace, name


def _workload(item: KubernetesObject) -> tuple[str, str, str]:
    """A ReplicaSet's Deployment, or the object itself."""
    return _managed(item) if item.kind == "ReplicaSet" and item.controller[0] == "Deployment" else _self(item)


def _owner(pod: KubernetesObject) -> tuple[str, str, str]:
    """The workload of a pod; a Deployment names its ReplicaSets for the hash of their template."""
    kind, name = pod.controller
    hashed = pod.text("metadata", "labels", _TEMPLATE_HASH)
    if kind == "ReplicaSet" and hashed and name.endswith(f"-{hashed}"):
        return "Deployment", pod.namespace, name[: -len(hashed) - 1]
    return (kind, pod.namespace, name) if kind else _self(pod)
