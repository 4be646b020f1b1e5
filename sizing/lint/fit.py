"""Which NodePools fit a pod by its labels, its tolerations and the catalog, by Karpenter's own rules."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.catalog.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from penstock.sizing.lint.subject import LintedPods, LintedPool, Subject
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import NodeSelectorTerm
from penstock.sizing.placement.pools import pool_requirements
from penstock.sizing.placement.requirements import Requirements, one_of, requirements
from penstock.sizing.placement.taints import PREFER_NO_SCHEDULE, Taint, not_tolerated


def asked(pods: LintedPods) -> tuple[Requirements, ...]:
    """The label requirements of pods: one alternative per term of their required affinity."""
    selected = [(label, one_of((value,))) for label, value in pods.node_selector.items()]
    terms: tuple[NodeSelectorTerm, ...] = pods.terms or (NodeSelectorTerm(),)
    return tuple(requirements([*selected, *((one.key, one.allowed) for one in term.match_expressions)]) for term in terms)


def types_of(subject: Subject, pool: NodePool) -> int:
    """The instance types allowed by a NodePool, as a set of the market's."""
    return subject.market.compatible(pool_requirements(pool))


def selects(subject: Subject, pods: LintedPods, pool: NodePool) -> bool:
    """Whether nodes of a pool can have the labels that pods require, with an instance type that is available."""
    return any(True for _ in _joint(subject, pods, pool))


def untolerated(pods: LintedPods, pool: NodePool) -> Taint | None:
    """The first taint of a pool that these pods do not tolerate."""
    taints = (taint.taint for taint in pool.spec.template.spec.taints)
    hard = [taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE]
    return not_tolerated(hard, [toleration.toleration for toleration in pods.tolerations])


def pools_for(subject: Subject, pods: LintedPods) -> list[LintedPool]:
    """The pools that fit the pods, in the order in which Karpenter tries them."""
    fitting = [pool for pool in subject.pools if selects(subject, pods, pool.pool) and untolerated(pods, pool.pool) is None]
    return sorted(fitting, key=lambda pool: (pool.pool.spec.weight or 0, pool.name), reverse=True)


def may_be_spot(subject: Subject, pods: LintedPods, pool: NodePool) -> bool:
    """Whether a node of a pool for these pods can be spot; Karpenter prefers spot if it is allowed."""
    return any(_can_be(subject, both, SPOT) for both in _joint(subject, pods, pool))


def is_spot_only(subject: Subject, pool: NodePool) -> bool:
    """Whether a pool allows only spot, without a fallback."""
    own = pool_requirements(pool)
    return _can_be(subject, own, SPOT) and not _can_be(subject, own, ON_DEMAND)


def allows_spot(subject: Subject, pool: NodePool) -> bool:
    """Whether a pool allows spot among other capacity types."""
    return _can_be(subject, pool_requirements(pool), SPOT)


def _joint(subject: Subject, pods: LintedPods, pool: NodePool) -> Iterator[Requirements]:
    """The combined requirements of pool and pods, for each satisfiable alternative."""
    own = pool_requirements(pool)
    for wanted in asked(pods):
        if own.conflict(wanted) is None and subject.market.compatible(own.plus(wanted)):
            yield own.plus(wanted)


def _can_be(subject: Subject, wanted: Requirements, capacity_type: str) -> bool:
    only = requirements([(CAPACITY_TYPE, one_of((capacity_type,)))])
    return wanted.conflict(only) is None and bool(subject.market.compatible(wanted.plus(only)))
