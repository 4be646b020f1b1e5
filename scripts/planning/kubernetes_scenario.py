"""A scenario from Kubernetes objects: NodePools, DaemonSets, workloads, pods and nodes, as manifests or as a cluster returns them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.scripts.planning.kubernetes_pods import WORKLOADS, names_of, pods_of
from penstock.scripts.planning.node_classes import settings_of, unknown_classes
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, WELL_KNOWN, ZONE, is_restricted
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.placement.errors import BadScenario, NotModelled, UnknownName
from penstock.sizing.placement.pod_manifests import DaemonSet
from penstock.sizing.placement.scenario import ExistingNode, NodePool, PodGroup, Scenario, findings

Item = TypeVar("Item")
Made = TypeVar("Made")

# Objects of these kinds neither create pods nor affect where pods are placed.
_WITHOUT_EFFECT = frozenset(
    {
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "ControllerRevision",
        "CustomResourceDefinition",
        "Endpoints",
        "EndpointSlice",
        "Event",
        "HorizontalPodAutoscaler",
        "Ingress",
        "IngressClass",
        "Lease",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "NodeClaim",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "PodMonitor",
        "PriorityClass",
        "PrometheusRule",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    }
)
_READ = ("NodePool", "EC2NodeClass", "Node", "DaemonSet", *WORKLOADS, "Pod")
_API_VERSIONS = {"NodePool": "karpenter.sh/v1", "EC2NodeClass": "karpenter.k8s.aws/v1", "Node": "v1", "Pod": "v1", "Job": "batch/v1"}


class KubernetesScenario(NamedTuple):
    """A scenario, and what was left out of it.

    Args:
        scenario: the scenario.
        settings: of the nodes, with those of the EC2NodeClasses.
        skipped: number of objects without effect on the placement, by kind.
        elsewhere: pods that run on nodes that are not given.
    """

    scenario: Scenario
    settings: NodeSettings
    skipped: dict[str, int]
    elsewhere: int

    @property
    def notes(self) -> Iterator[str]:
        """What was left out, as text."""
        if self.skipped:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.skipped.items()))
            yield f"skipped, without effect on the placement: {kinds}"
        if self.elsewhere == 1:
            yield "skipped: 1 pod on a node that is not given; add its Node to count it"
        elif self.elsewhere:
            yield f"skipped: {self.elsewhere} pods on nodes that are not given; add their Nodes to count them"


def scenario_of(
    objects: Sequence[KubernetesObject], settings: NodeSettings, types: Collection[str], spot_ratio: float | None
) -> KubernetesScenario:
    """The scenario of Kubernetes objects.

    Args:
        objects: all objects, of all files.
        settings: of the nodes, where no EC2NodeClass says otherwise.
        types: names of the known instance types.
        spot_ratio: each spot price as a share of the on-demand price; None: the catalog's spot prices.

    Raises:
        PenstockError: SIZ-020 to SIZ-024: the errors of all objects, each with its file, document and line.
    """
    faults: list[PenstockError] = [fault for each in objects if (fault := _refused(each))]
    objects = [each for each in objects if _refused(each) is None]
    of_kind = {kind: [each for each in objects if each.kind == kind] for kind in _READ}
    faults += _repeated(objects)
    faults += unknown_classes(of_kind["NodePool"], of_kind["EC2NodeClass"])
    pods = pods_of(objects, [node.name for node in of_kind["Node"]])
    faults += pods.faults
    node_pools = _each(of_kind["NodePool"], lambda item: item.model(NodePool, item.get()), faults)
    daemon_sets = _each(of_kind["DaemonSet"], lambda item: item.model(DaemonSet, item.get()), faults)
    named = list(zip(names_of(pods.groups), pods.groups, strict=True))
    groups = _each(named, lambda pair: PodGroup(count=pair[1].pending, pod=pair[1].pod(pair[0])), faults)
    running: dict[str, dict[str, int]] = {}
    for name, group in named:
        for node, count in group.running.items():
            running.setdefault(node, {})[name] = count
    pools = [pool.name for pool in of_kind["NodePool"]]
    nodes = _each(of_kind["Node"], lambda item: _node(item, running.get(item.name, {}), pools, types), faults)
    if not of_kind["NodePool"] and not faults:
        faults.append(BadScenario(path="NodePool", need="at least one NodePool", fix="add its manifest, or kubectl get nodepools -o yaml"))
    try:
        settings = settings_of(of_kind["EC2NodeClass"], settings)
    except PenstockError as error:
        faults += error.errors
    raise_all(faults)
    try:
        scenario = Scenario(
            node_pools=tuple(node_pools),
            daemon_sets=tuple(daemon_sets),
            pods=tuple(groups),
            existing_nodes=tuple(nodes),
            spot_ratio=spot_ratio,
        )
    except ValidationError as invalid:
        raise_all(fault for _, fault in findings(invalid))
        raise
    skipped = Counter(each.kind for each in objects if each.kind in _WITHOUT_EFFECT)
    return KubernetesScenario(scenario, settings, dict(skipped), pods.elsewhere)


def _each(items: Iterable[Item], read: Callable[[Item], Made], faults: list[PenstockError]) -> list[Made]:
    """What is read from each item; the errors of those that cannot be read are added to `faults`."""
    made = []
    for item in items:
        try:
            made.append(read(item))
        except PenstockError as error:
            faults += error.errors
    return made


def _node(item: KubernetesObject, pods: dict[str, int], node_pools: Sequence[str], types: Collection[str]) -> ExistingNode:
    labels = item.mapping("metadata", "labels")
    if NODE_POOL not in labels:
        fix = f"leave it and its pods out: kubectl get nodes -l {NODE_POOL}"
        raise item.refused(NotModelled, "metadata", "labels", need=f"a node of a NodePool, with the label {NODE_POOL}", fix=fix)
    if item.get("spec", "unschedulable"):
        raise item.refused(NotModelled, "spec", "unschedulable", need="a node that takes pods, not a cordoned one", fix="leave it out")
    if labels[NODE_POOL] not in node_pools:
        need = f"one of the NodePools that are given: {', '.join(sorted(node_pools)) or 'none'}"
        raise item.refused(UnknownName, "metadata", "labels", NODE_POOL, need=need, fix="add the NodePool, or leave the node out")
    for label in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE):
        if label not in labels:
            raise item.refused(BadScenario, "metadata", "labels", need=f"the label {label}", fix="add it")
    if labels[INSTANCE_TYPE] not in types:
        raise item.refused(UnknownName, "metadata", "labels", INSTANCE_TYPE, need="an instance type of the catalog", fix="check the name")
    data = {
        "name": item.name,
        "nodePool": labels[NODE_POOL],
        "instanceType": labels[INSTANCE_TYPE],
        "zone": labels[ZONE],
        "capacityType": labels[CAPACITY_TYPE],
        "labels": {label: value for label, value in labels.items() if label not in WELL_KNOWN and not is_restricted(label)},
        "pods": pods,
    }
    return item.model(ExistingNode, data, lambda location: ("metadata", "labels"))


def _refused(item: KubernetesObject) -> PenstockError | None:
    """Why an object cannot be read at all."""
    if not item.kind:
        return item.refused(BadScenario, need="a Kubernetes object with apiVersion and kind", fix="add them, or leave it out")
    if item.kind in _WITHOUT_EFFECT:
        return None
    if item.kind not in _READ:
        need = f"one of {', '.join(_READ)}; objects of another kind may create pods"
        return item.refused(NotModelled, "kind", need=need, fix="leave it out, or give the workload or the pods that it creates")
    version = _API_VERSIONS.get(item.kind, "apps/v1")
    if item.get("apiVersion") != version:
        return item.refused(BadScenario, "apiVersion", need=version, fix=f"convert it to {version}")
    if not item.name:
        return item.refused(BadScenario, "metadata", need="metadata.name", fix="add it")
    return None


def _repeated(objects: Sequence[KubernetesObject]) -> Iterator[PenstockError]:
    seen: dict[tuple[str, str, str], KubernetesObject] = {}
    for each in objects:
        if each.kind not in _READ:
            continue
        first = seen.setdefault((each.kind, each.namespace, each.name), each)
        if first is not each:
            where = first.document.place(first.root)
            yield each.refused(BadScenario, need=f"each object once; this one is also at {where}", fix="remove one of them")
