"""Groups of pods: their requests, and what they ask of their nodes.

Source: Kubernetes' rule for the requests of a pod (``component-helpers/resource``), and karpenter v1.14.1 (``provisioner.go``: Validate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.sizing.catalog.labels import NODE_POOL, NORMALIZED, is_restricted
from penstock.sizing.placement.pod_manifests import Container, Pod, PodSpec
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.topology_rules import DEFAULT_NAMESPACE, Labelled, Rule
from penstock.sizing.placement.wishes import Wish, relaxations, required_rules, required_terms


@dataclass(frozen=True, eq=False)
class Group:
    """A group of identical pods.

    Args:
        name: name of the group.
        index: index among the groups, which breaks ties as creation order does.
        requests: requests by resource, in billionths; each pod also counts as one of ``pods``.
        wishes: requirements of its pods, in the order in which Karpenter relaxes them.
        pod: labels and namespace of its pods, by which topology rules select them.
        repels: the required anti-affinity terms: they also hold for the pods that they select.
        ignored: why Karpenter ignores these pods; empty if it does not.
    """

    name: str
    index: int
    requests: Mapping[str, int]
    wishes: tuple[Wish, ...]
    pod: Labelled
    repels: tuple[Rule, ...] = ()
    ignored: str = ""


def group(name: str, index: int, pod: Pod, *, tolerate_prefer_no_schedule: bool) -> Group:
    """Creates a group from the spec of its pods.

    Args:
        name: name of the group.
        index: index among the groups.
        pod: one of the pods.
        tolerate_prefer_no_schedule: whether any NodePool has a PreferNoSchedule taint: only then Karpenter relaxes it as the last step.
    """
    spec = pod.spec
    labelled = Labelled(tuple(pod.metadata.labels.items()), pod.metadata.namespace or DEFAULT_NAMESPACE)
    wishes = tuple(relaxations(spec, labelled, tolerate_prefer_no_schedule=tolerate_prefer_no_schedule))
    repels = required_rules("pod anti-affinity", spec, labelled)
    return Group(name, index, {**requests(spec), "pods": NANO}, wishes, labelled, repels, _ignored(spec, wishes[0]))


def requests(spec: PodSpec) -> dict[str, int]:
    """The requests of a pod, in billionths: the sum of its containers, or an init container if that is higher."""
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, container.resources.effective)
    beside: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.init_containers:
        _take(container, total, beside, most)
    for name, amount in most.items():
        total[name] = max(amount, total.get(name, 0))
    total.update(spec.resources.requests)
    _add(total, spec.overhead)
    return total


def _take(container: Container, total: dict[str, int], beside: dict[str, int], most: dict[str, int]) -> None:
    """Counts an init container: a sidecar, or one that runs before the others."""
    wanted = dict(container.resources.effective)
    if container.restart_policy == "Always":
        _add(total, wanted)
        _add(beside, wanted)
        wanted = dict(beside)
    else:
        _add(wanted, beside)
    for name, amount in wanted.items():
        most[name] = max(amount, most.get(name, 0))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _ignored(spec: PodSpec, first: Wish) -> str:
    """Why Karpenter ignores a pod before scheduling."""
    for label in _asked_labels(spec):
        if is_restricted(NORMALIZED.get(label, label)):
            return f"Karpenter ignores pods that select {label}: an unknown label in one of its reserved domains"
    pool = first.requirements.get(NODE_POOL)
    if not pool.complement and not pool.values:
        return f"it requires a node without {NODE_POOL}, which Karpenter never creates"
    return ""


def _asked_labels(spec: PodSpec) -> Iterable[str]:
    yield from spec.node_selector
    for term in required_terms(spec):
        yield from (expression.key for expression in term.match_expressions)
