"""Topology rules of pods: what a spread constraint or an affinity term asks for, and which pods and nodes it counts.

Source: karpenter v1.14.1 (``topology.go``: newForTopologies and newForAffinities, ``topologygroup.go``: Hash and hashSelector,
``topologynodefilter.go``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.sizing.placement.requirements import Requirements
from penstock.sizing.placement.taints import Taint, Toleration, not_tolerated
from penstock.sizing.placement.topology_manifests import LabelSelector, PodAffinityTerm, TopologySpreadConstraint

DEFAULT_NAMESPACE = "default"
# Affinities have no skew; Karpenter uses the largest int32.
_NO_SKEW = 2**31 - 1

Kind = Literal["topology spread", "pod affinity", "pod anti-affinity"]


@dataclass(frozen=True)
class Labelled:
    """The labels and the namespace of a group's pods, by which topologies select them."""

    labels: tuple[tuple[str, str], ...] = ()
    namespace: str = DEFAULT_NAMESPACE


@dataclass(frozen=True)
class Selector:
    """A label selector.

    Args:
        expressions: key, operator and values of each requirement that must hold.
        nothing: whether it was omitted. It then selects no pod, but Karpenter counts all running pods of the namespace.
    """

    expressions: frozenset[tuple[str, str, frozenset[str]]] = frozenset()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet all requirements."""
        return all(_meets(labels.get(key), operator, values) for key, operator, values in self.expressions)


@dataclass(frozen=True)
class NodeFilter:
    """The nodes whose pods a spread constraint counts.

    Args:
        alternatives: the pod's node selector with each term of its required node affinity, one of which must hold.
        honors_affinity: whether `alternatives` is used.
        honors_taints: whether only nodes with tolerated taints count.
        tolerations: the pod's tolerations.
    """

    alternatives: tuple[Requirements, ...]
    honors_affinity: bool
    honors_taints: bool
    tolerations: tuple[Toleration, ...]

    def matches(self, taints: Sequence[Taint], requirements: Requirements) -> bool:
        """Whether pods on a node with these taints and labels count."""
        if self.honors_taints and not_tolerated(taints, self.tolerations) is not None:
            return False
        if not self.honors_affinity:
            return True
        return any(requirements.conflict(each, undefined_well_known=False) is None for each in self.alternatives)

    @property
    def identity(self) -> Hashable:
        """Karpenter's hash covers the labels of the requirements, but not their values, and equal elements cancel out."""
        alternatives = _odd(frozenset(each.by_label) for each in self.alternatives)
        return alternatives, self.honors_affinity, self.honors_taints, _odd(self.tolerations)


@dataclass(frozen=True)
class Rule:
    """One topology spread constraint, affinity or anti-affinity term of a pod.

    Args:
        kind: its kind.
        key: the node label whose values are the domains.
        namespaces: the namespaces of the counted pods.
        selector: the counted pods.
        max_skew: largest skew of a spread.
        min_domains: fewer domains make the global minimum 0; None: any number.
        nodes: the counted nodes; None: all.
        tolerations: of the pod: a domain that only exists on nodes with other taints is unknown to an affinity.
    """

    kind: Kind
    key: str
    namespaces: frozenset[str]
    selector: Selector
    max_skew: int
    min_domains: int | None
    nodes: NodeFilter | None
    tolerations: tuple[Toleration, ...]

    def __str__(self) -> str:
        least = f", minDomains {self.min_domains}" if self.min_domains is not None else ""
        skew = f" with maxSkew {self.max_skew}{least}" if self.kind == "topology spread" else ""
        return f"{self.kind} over {self.key}{skew}"

    @property
    def identity(self) -> Hashable:
        """Rules with the same identity share their counts, as under Karpenter's hash, which leaves out `min_domains`."""
        nodes = self.nodes.identity if self.nodes else None
        return self.kind, self.key, self.namespaces, self.selector, self.max_skew, nodes

    @property
    def honors_taints(self) -> bool:
        """Whether domains that only exist on nodes with untolerated taints are left out."""
        return self.nodes is None or self.nodes.honors_taints

    def selects(self, pod: Labelled) -> bool:
        """Whether it counts a pod."""
        return not self.selector.nothing and pod.namespace in self.namespaces and self.selector.matches(dict(pod.labels))

    def counts(self, pod: Labelled, taints: Sequence[Taint], requirements: Requirements) -> bool:
        """Whether it counts a pod on a node with these taints and labels."""
        return self.selects(pod) and (self.nodes is None or self.nodes.matches(taints, requirements))

    def counts_running(self, pod: Labelled, taints: Sequence[Taint], requirements: Requirements) -> bool:
        """The same for a pod that runs already; without a selector, all pods of the namespace count."""
        in_namespace = self.selector.nothing and pod.namespace in self.namespaces
        return (in_namespace or self.selects(pod)) and (self.nodes is None or self.nodes.matches(taints, requirements))


def spread_rule(
    constraint: TopologySpreadConstraint, pod: Labelled, alternatives: tuple[Requirements, ...], tolerations: tuple[Toleration, ...]
) -> Rule:
    """The rule of a topology spread constraint.

    Args:
        constraint: the constraint.
        pod: labels and namespace of its pod.
        alternatives: the pod's node selector with each term of its required node affinity.
        tolerations: the pod's tolerations.
    """
    labels = dict(pod.labels)
    own = frozenset((key, "In", frozenset({labels[key]})) for key in constraint.match_label_keys if key in labels)
    selector = _selector(constraint.label_selector)
    honors_affinity, honors_taints = constraint.node_affinity_policy == "Honor", constraint.node_taints_policy == "Honor"
    return Rule(
        kind="topology spread",
        key=constraint.topology_key,
        namespaces=frozenset({pod.namespace}),
        selector=Selector(selector.expressions | own, selector.nothing),
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains,
        nodes=NodeFilter(alternatives, honors_affinity, honors_taints, tolerations),
        tolerations=tolerations,
    )


def affinity_rule(kind: Kind, term: PodAffinityTerm, pod: Labelled, tolerations: tuple[Toleration, ...]) -> Rule:
    """The rule of an affinity or anti-affinity term of a pod."""
    namespaces = frozenset(term.namespaces or (pod.namespace,))
    return Rule(kind, term.topology_key, namespaces, _selector(term.label_selector), _NO_SKEW, None, None, tolerations)


def _selector(given: LabelSelector | None) -> Selector:
    if given is None:
        return Selector(nothing=True)
    # Karpenter hashes matchLabels apart from matchExpressions: the operator "=" keeps the two apart here.
    labels = {(key, "=", frozenset({value})) for key, value in given.match_labels.items()}
    expressions = {(each.key, each.operator, frozenset(each.values)) for each in given.match_expressions}
    return Selector(frozenset(labels | expressions))


def _meets(value: str | None, operator: str, values: frozenset[str]) -> bool:
    if operator in ("In", "="):
        return value in values
    if operator == "NotIn":
        return value not in values
    return (value is not None) == (operator == "Exists")


def _odd(elements: Iterable[Hashable]) -> frozenset[Hashable]:
    return frozenset(element for element, times in Counter(elements).items() if times % 2)
