"""What a group of pods asks of a node, first with all that it prefers, then with less and less of it.

Source: karpenter v1.14.1 (``pkg/controllers/provisioning/scheduling/preferences.go``, ``pkg/scheduling/requirements.go``) and Kubernetes'
rule for the requests of a pod (``component-helpers/resource``).
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
    """One form of what a group asks for.

    Args:
        requirements: on the node's labels, with the heaviest preference as if it were required.
        tolerations: of taints.
        relaxed: what was given up to come here; empty at first.
        failed_claims: claims that had no room for it; a claim only gets fuller, so they need not be tried again.
        failed_pools: NodePools that could make no claim for it; limits only get tighter.
    """

    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    relaxed: str = ""
    failed_claims: set[int] = field(default_factory=set)
    failed_pools: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Group:
    """Pods that are all alike.

    Args:
        name: of the group.
        index: its place among the groups: it breaks ties, as the order of creation does.
        requests: by resource, in billionths; each pod takes one of ``pods`` too.
        wishes: what its pods ask for, in the order in which Karpenter relaxes it.
        ignored: why Karpenter does not look at these pods at all; empty if it does.
    """

    name: str
    index: int
    requests: Mapping[str, int]
    wishes: tuple[Wish, ...]
    ignored: str = ""


def group(name: str, index: int, spec: PodSpec, *, tolerate_prefer_no_schedule: bool) -> Group:
    """A group from the spec of its pods.

    Args:
        name: of the group.
        index: its place among the groups.
        spec: of one pod.
        tolerate_prefer_no_schedule: whether some NodePool has a PreferNoSchedule taint: only then Karpenter relaxes that last.
    """
    wishes = tuple(_relaxations(spec, tolerate_prefer_no_schedule))
    return Group(name, index, {**requests(spec), "pods": NANO}, wishes, _ignored(spec))


def requests(spec: PodSpec) -> dict[str, int]:
    """What a pod requests, in billionths: its containers together, or an init container where that takes more."""
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
    """The terms of the required node affinity, of which one must hold."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def strict_requirements(spec: PodSpec, term: NodeSelectorTerm | None) -> Requirements:
    """The node selector and one term of the required affinity."""
    return requirements([*_selected(spec), *_expressed(term)])


def _take(container: Container, total: dict[str, int], beside: dict[str, int], most: dict[str, int]) -> None:
    """Counts an init container: one that stays beside the others, or one that runs before them."""
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
    """Why Karpenter passes a pod over before it schedules."""
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
