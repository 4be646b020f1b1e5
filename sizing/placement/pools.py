"""NodePools as the scheduler sees them: the requirements on their nodes, and the overhead of DaemonSets.

Source: karpenter v1.14.1 (``nodeclaimtemplate.go``, ``scheduler.go``: buildDaemonOverheadGroups, and ``utils/nodepool``: OrderByWeight).
Karpenter permanently drops the terms of a DaemonSet's required affinity once one instance type does not meet them, in random order; here
each type is compared with each term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.sizing.catalog.labels import NODE_CLASS, NODE_POOL
from penstock.sizing.placement.market import Market
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet, PodSpec
from penstock.sizing.placement.pods import requests
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.requirements import Requirements, one_of, requirements
from penstock.sizing.placement.taints import TOLERATE_PREFER_NO_SCHEDULE, Taint, not_tolerated
from penstock.sizing.placement.wishes import required_terms, strict_requirements

# Labels that every Karpenter node gets once it exists: a DaemonSet may select them.
READY_LABELS = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}


@dataclass(frozen=True, eq=False)
class Overhead:
    """The overhead of DaemonSets on some instance types.

    Args:
        types: the types.
        requests: requests by resource, in billionths, including one of ``pods`` per DaemonSet.
    """

    types: int
    requests: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Pool:
    """A NodePool, ready for scheduling.

    Args:
        name: name of the NodePool.
        requirements: requirements on its nodes, including its own labels.
        taints: taints of its nodes.
        types: allowed instance types.
        overheads: the DaemonSets' requests, by disjoint sets of types whose union is `types`.
        limits: limits by resource, in billionths.
    """

    name: str
    requirements: Requirements
    taints: tuple[Taint, ...]
    types: int
    overheads: tuple[Overhead, ...]
    limits: Mapping[str, int]
    tolerated: dict[object, bool] = field(default_factory=dict)

    def fitting(self, market: Market, types: int, totals: Mapping[str, int]) -> int:
        """The subset of `types` that fits pods with requests of `totals` in addition to the DaemonSets."""
        fitting_types = 0
        for overhead in self.overheads:
            mine = overhead.types & types
            if mine:
                fitting_types |= mine & market.fits(_sum(totals, overhead.requests))
        return fitting_types


def pools(node_pools: Iterable[NodePool], daemon_sets: Sequence[DaemonSet], market: Market) -> list[Pool]:
    """The NodePools in the order in which Karpenter tries them: by weight, then by name, both descending."""
    ordered = sorted(node_pools, key=lambda pool: (pool.spec.weight or 0, pool.name), reverse=True)
    return [_pool(pool, daemon_sets, market) for pool in ordered]


def pool_requirements(pool: NodePool) -> Requirements:
    """The label requirements of a NodePool."""
    template = pool.spec.template
    labels = {
        **template.metadata.labels,
        NODE_POOL: pool.name,
        NODE_CLASS: template.spec.node_class_ref.name,
        **READY_LABELS,
    }
    own = [(requirement.key, requirement.allowed) for requirement in template.spec.requirements]
    return requirements([*own, *((label, one_of((value,))) for label, value in labels.items())])


def tolerates_as_daemon(spec: PodSpec, taints: Sequence[Taint]) -> bool:
    """Whether a DaemonSet's pods tolerate taints; PreferNoSchedule is always ignored."""
    tolerations = [toleration.toleration for toleration in spec.tolerations]
    return not_tolerated(taints, [*tolerations, TOLERATE_PREFER_NO_SCHEDULE]) is None


def _pool(pool: NodePool, daemon_sets: Sequence[DaemonSet], market: Market) -> Pool:
    asked = pool_requirements(pool)
    taints = tuple(taint.taint for taint in pool.spec.template.spec.taints)
    types = market.compatible(asked)
    if not enough_values(market, types, asked):
        types = 0
    overheads = [Overhead(types, {})]
    for daemon_set in daemon_sets:
        spec = daemon_set.spec.template.spec
        if tolerates_as_daemon(spec, taints):
            overheads = _with(overheads, _types_of(spec, asked, market), {**requests(spec), "pods": NANO})
    return Pool(pool.name, asked, taints, types, tuple(overheads), pool.spec.limits)


def enough_values(market: Market, types: int, asked: Requirements) -> bool:
    """Whether types have as many distinct values of each label as ``minValues`` requires."""
    wanted = [(label, values.min_values) for label, values in asked.by_label.items() if values.min_values is not None]
    return not types or all(len(market.values(types, label)) >= least for label, least in wanted)


def _types_of(spec: PodSpec, asked: Requirements, market: Market) -> int:
    """The types of a pool that a DaemonSet's pods run on."""
    matching_types = 0
    for term in required_terms(spec) or (None,):
        wanted = strict_requirements(spec, term)
        if asked.conflict(wanted) is None:
            matching_types |= market.matching(wanted)
    return matching_types


def _with(overheads: Sequence[Overhead], types: int, more: Mapping[str, int]) -> list[Overhead]:
    """The overheads with one more DaemonSet on some of the types."""
    divided = []
    for overhead in overheads:
        if overhead.types & types:
            divided.append(Overhead(overhead.types & types, _sum(overhead.requests, more)))
        if overhead.types & ~types:
            divided.append(Overhead(overhead.types & ~types, overhead.requests))
    return divided


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total.get(name, 0) + amount
    return total
