"""What a pod asks of its node: first with all preferences, then successively relaxed.

Source: karpenter v1.14.1 (``pkg/controllers/provisioning/scheduling/preferences.go``, ``pkg/scheduling/requirements.go``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.sizing.placement.go_sort import sort_slice
from penstock.sizing.placement.pod_manifests import NodeSelectorTerm, PodSpec, PreferredTerm
from penstock.sizing.placement.requirements import Allowed, Requirements, one_of, requirements
from penstock.sizing.placement.taints import TOLERATE_PREFER_NO_SCHEDULE, Toleration
from penstock.sizing.placement.topology_manifests import PodAffinity, PodAffinityTerm
from penstock.sizing.placement.topology_rules import Kind, Labelled, Rule, affinity_rule, spread_rule


@dataclass(frozen=True, eq=False)
class Wish:
    """One relaxation step of a group's requirements.

    Args:
        requirements: requirements on the node's labels, including the preference with the highest weight.
        tolerations: tolerated taints.
        strict: the required ones among `requirements`; only they restrict the domains that a topology spread counts.
        rules: topology rules, including preferences that are not relaxed yet.
        relaxed: the last relaxed preference; empty for the first step.
        failed_claims: claims without room for it; claims only fill up, so they are not tried again.
        failed_pools: NodePools that could not create a claim for it; limits only get tighter.
    """

    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    strict: Requirements
    rules: tuple[Rule, ...] = ()
    relaxed: str = ""
    failed_claims: set[int] = field(default_factory=set)
    failed_pools: set[str] = field(default_factory=set)


def relaxations(spec: PodSpec, pod: Labelled, *, tolerate_prefer_no_schedule: bool) -> Iterator[Wish]:
    """The steps, in the order in which Karpenter tries them.

    Args:
        spec: spec of one pod.
        pod: its labels and namespace.
        tolerate_prefer_no_schedule: whether PreferNoSchedule taints are tolerated in the last step.
    """
    left = _Left(spec, pod)
    yield left.wish("")
    while left.terms[1:]:
        left.terms = left.terms[1:]
        yield left.wish("the first terms of the required node affinity")
    while left.attracted:
        left.attracted = left.attracted[1:]
        yield left.wish("preferred pod affinity")
    while left.repelled:
        left.repelled = left.repelled[1:]
        yield left.wish("preferred pod anti-affinity")
    while left.preferred:
        left.preferred = left.preferred[1:]
        yield left.wish("preferred node affinity")
    while left.drop_spread():
        yield left.wish("a topology spread constraint with ScheduleAnyway")
    if tolerate_prefer_no_schedule and TOLERATE_PREFER_NO_SCHEDULE not in left.tolerations:
        left.tolerations = (*left.tolerations, TOLERATE_PREFER_NO_SCHEDULE)
        yield left.wish("PreferNoSchedule taints")


class _Left:
    """A pod with the preferences that are left."""

    def __init__(self, spec: PodSpec, pod: Labelled) -> None:
        affinity = spec.affinity
        self._spec, self._pod = spec, pod
        self.terms: Sequence[NodeSelectorTerm | None] = required_terms(spec) or (None,)
        self.preferred = _by_weight(affinity.node_affinity.preferred if affinity and affinity.node_affinity else ())
        self.attracted = _heaviest_first(affinity.pod_affinity if affinity else None)
        self.repelled = _heaviest_first(affinity.pod_anti_affinity if affinity else None)
        self.spreads = list(spec.topology_spread_constraints)
        self.tolerations = tuple(toleration.toleration for toleration in spec.tolerations)

    def drop_spread(self) -> bool:
        """Removes the first constraint with ScheduleAnyway; the last takes its place, as in Karpenter."""
        for index, constraint in enumerate(self.spreads):
            if constraint.when_unsatisfiable == "ScheduleAnyway":
                self.spreads[index] = self.spreads[-1]
                self.spreads.pop()
                return True
        return False

    def wish(self, relaxed: str) -> Wish:
        heaviest = _expressed(self.preferred[0].preference) if self.preferred else []
        asked = requirements([*_selected(self._spec), *heaviest, *_expressed(self.terms[0])])
        strict = strict_requirements(self._spec, self.terms[0])
        return Wish(requirements=asked, tolerations=self.tolerations, strict=strict, rules=self._rules(), relaxed=relaxed)

    def _rules(self) -> tuple[Rule, ...]:
        alternatives = tuple(strict_requirements(self._spec, term) for term in self.terms)
        return (
            *(spread_rule(constraint, self._pod, alternatives, self.tolerations) for constraint in self.spreads),
            *required_rules("pod affinity", self._spec, self._pod, self.tolerations),
            *(affinity_rule("pod affinity", term, self._pod, self.tolerations) for term in self.attracted),
            *required_rules("pod anti-affinity", self._spec, self._pod, self.tolerations),
            *(affinity_rule("pod anti-affinity", term, self._pod, self.tolerations) for term in self.repelled),
        )


def required_rules(kind: Kind, spec: PodSpec, pod: Labelled, tolerations: tuple[Toleration, ...] | None = None) -> tuple[Rule, ...]:
    """The rules of a pod's required affinity or anti-affinity to other pods.

    Args:
        kind: affinity or anti-affinity.
        spec: spec of the pod.
        pod: its labels and namespace.
        tolerations: those of a relaxation step; None: the pod's own.
    """
    if tolerations is None:
        tolerations = tuple(toleration.toleration for toleration in spec.tolerations)
    affinity = spec.affinity
    both = (affinity.pod_affinity if kind == "pod affinity" else affinity.pod_anti_affinity) if affinity else None
    return tuple(affinity_rule(kind, term, pod, tolerations) for term in both.required) if both else ()


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    """The terms of the required node affinity, one of which must hold."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def strict_requirements(spec: PodSpec, term: NodeSelectorTerm | None) -> Requirements:
    """The node selector and one term of the required affinity."""
    return requirements([*_selected(spec), *_expressed(term)])


def _heaviest_first(affinity: PodAffinity | None) -> Sequence[PodAffinityTerm]:
    weighted = sorted(affinity.preferred if affinity else (), key=lambda each: -each.weight)
    return [each.pod_affinity_term for each in weighted]


def _by_weight(terms: Sequence[PreferredTerm]) -> list[PreferredTerm]:
    heaviest_first = list(terms)
    sort_slice([-term.weight for term in heaviest_first], heaviest_first)
    return heaviest_first


def _selected(spec: PodSpec) -> list[tuple[str, Allowed]]:
    return [(label, one_of((value,))) for label, value in spec.node_selector.items()]


def _expressed(term: NodeSelectorTerm | None) -> list[tuple[str, Allowed]]:
    return [(expression.key, expression.allowed) for expression in term.match_expressions] if term else []
