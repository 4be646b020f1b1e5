"""The requirements of a group of pods, first with all preferences, then successively relaxed.

Source: karpenter v1.14.1 (``pkg/controllers/provisioning/scheduling/preferences.go``, ``pkg/scheduling/requirements.go``) and
Kubernetes' rule for the requests of a pod (``component-helpers/resource``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.sizing.catalog.labels import NODE_POOL, NORMALIZED, is_restricted
from penstock.sizing.placement.go_sort import sort_slice
from penstock.sizing.placement.pod_manifests import Container, NodeSelectorTerm, PodSpec, PreferredTerm
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.requirements import Allowed, Requirements, one_of, requirements
from penstock.sizing.placement.taints import TOLERATE_PREFER_NO_SCHEDULE, Toleration


@dataclass(frozen=True, eq=False)
class Wish:
    """One relaxation step of a group's requirements.

    Args:
        requirements: requirements on the node's labels, including the preference with the highest weight.
        tolerations: tolerated taints.
        relaxed: the last relaxed preference; empty for the first step.
        failed_claims: claims without room for it; claims only fill up, so they are not tried again.
        failed_pools: NodePools that could not create a claim for it; limits only get tighter.
    """

    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    relaxed: str = ""
    failed_claims: set[int] = field(default_factory=set)
    failed_pools: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Group:
    """A group of identical pods.

    Args:
        name: name of the group.
        index: index among the groups, which breaks ties as creation order does.
        requests: requests by resource, in billionths; each pod also counts as one of ``pods``.
        wishes: requirements of its pods, in the order in which Karpenter relaxes them.
        ignored: why Karpenter ignores these pods; empty if it does not.
    """

    name: str
    index: int
    requests: Mapping[str, int]
    wishes: tuple[Wish, ...]
    ignored: str = ""


def group(name: str, index: int, spec: PodSpec, *, tolerate_prefer_no_schedule: bool) -> Group:
    """Creates a group from the spec of its pods.

    Args:
        name: name of the group.
        index: index among the groups.
        spec: spec of one pod.
        tolerate_prefer_no_schedule: whether any NodePool has a PreferNoSchedule taint: only then Karpenter relaxes it as the last step.
    """
    wishes = tuple(_relaxations(spec, tolerate_prefer_no_schedule))
    return Group(name, index, {**requests(spec), "pods": NANO}, wishes, _ignored(spec))


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


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    """The terms of the required node affinity, one of which must hold."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def strict_requirements(spec: PodSpec, term: NodeSelectorTerm | None) -> Requirements:
    """The node selector and one term of the required affinity."""
    return requirements([*_selected(spec), *_expressed(term)])


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


def _relaxations(spec: PodSpec, tolerate_prefer_no_schedule: bool) -> Iterator[Wish]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required: Sequence[NodeSelectorTerm | None] = required_terms(spec) or (None,)
    preferred = _by_weight(affinity.preferred if affinity else ())
    tolerations = tuple(toleration.toleration for toleration in spec.tolerations)
    relaxed = ""
    for term in required:
        yield _wish(spec, term, preferred, tolerations, relaxed)
        relaxed = "the first terms of the required node affinity"
    while preferred:
        preferred = preferred[1:]
        yield _wish(spec, required[-1], preferred, tolerations, "preferred node affinity")
    if tolerate_prefer_no_schedule and TOLERATE_PREFER_NO_SCHEDULE not in tolerations:
        yield _wish(spec, required[-1], preferred, (*tolerations, TOLERATE_PREFER_NO_SCHEDULE), "PreferNoSchedule taints")


def _wish(
    spec: PodSpec,
    term: NodeSelectorTerm | None,
    preferred: Sequence[PreferredTerm],
    tolerations: tuple[Toleration, ...],
    relaxed: str,
) -> Wish:
    heaviest = _expressed(preferred[0].preference) if preferred else []
    asked = requirements([*_selected(spec), *heaviest, *_expressed(term)])
    return Wish(requirements=asked, tolerations=tolerations, relaxed=relaxed)


def _by_weight(terms: Sequence[PreferredTerm]) -> list[PreferredTerm]:
    heaviest_first = list(terms)
    sort_slice([-term.weight for term in heaviest_first], heaviest_first)
    return heaviest_first


def _selected(spec: PodSpec) -> list[tuple[str, Allowed]]:
    return [(label, one_of((value,))) for label, value in spec.node_selector.items()]


def _expressed(term: NodeSelectorTerm | None) -> list[tuple[str, Allowed]]:
    return [(expression.key, expression.allowed) for expression in term.match_expressions] if term else []


def _ignored(spec: PodSpec) -> str:
    """Why Karpenter ignores a pod before scheduling."""
    for label in _asked_labels(spec):
        if is_restricted(NORMALIZED.get(label, label)):
            return f"Karpenter ignores pods that select {label}: an unknown label in one of its reserved domains"
    first = next(_relaxations(spec, False))
    pool = first.requirements.get(NODE_POOL)
    if not pool.complement and not pool.values:
        return f"it requires a node without {NODE_POOL}, which Karpenter never creates"
    return ""


def _asked_labels(spec: PodSpec) -> Iterable[str]:
    yield from spec.node_selector
    for term in required_terms(spec):
        yield from (expression.key for expression in term.match_expressions)
