"""NodePool limits derived from the plans of the jobs that use the pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.infra.errors import LimitsChangePlan
from penstock.sizing.cluster import Cluster
from penstock.sizing.placement.batch import groups_of, market_of
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.market import Market, bits
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import Pool, pools
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.resources import CPU, MEMORY
from penstock.sizing.placement.scenario import PodGroup
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nodes import Allocations, allocation_of, decisions, requested, scenario_of
from penstock.sizing.plan.workload import Workload
from penstock.sizing.units import MIB

_MIB_OF_GIB = 1024
_MILLICORES_OF_CORE = 1000


class PoolLimits(NamedTuple):
    """Limits on the sum of a pool's nodes.

    Args:
        cpu_cores: vCPUs, whole.
        memory_gib: memory of the instances, whole GiB.
    """

    cpu_cores: int
    memory_gib: int

    @property
    def quantities(self) -> dict[str, str]:
        """As Kubernetes quantities."""
        return {CPU: str(self.cpu_cores), MEMORY: f"{self.memory_gib}Gi"}


class Size(NamedTuple):
    """Resources of an instance, of several, or of pods.

    Args:
        cpu_millicores: CPU.
        memory_mib: memory.
    """

    cpu_millicores: int
    memory_mib: int

    def plus(self, other: Size, times: int = 1) -> Size:
        """The sum.

        Args:
            other: the amount to add.
            times: number of times that it is added.
        """
        return Size(self.cpu_millicores + times * other.cpu_millicores, self.memory_mib + times * other.memory_mib)

    def at_least(self, other: Size) -> Size:
        """The maximum per resource."""
        return Size(max(self.cpu_millicores, other.cpu_millicores), max(self.memory_mib, other.memory_mib))

    def share(self, of_one: float) -> Size:
        """A share of the amount, rounded up.

        Args:
            of_one: 0 or more.
        """
        return Size(_up(self.cpu_millicores * of_one), _up(self.memory_mib * of_one))


_NOTHING = Size(0, 0)


class _Need(NamedTuple):
    """The demand on a pool: its claims at their largest, the largest of these, and the requests of their pods."""

    claims: Size = _NOTHING
    largest: Size = _NOTHING
    pods: Size = _NOTHING

    def at_least(self, other: _Need) -> _Need:
        return _Need(*(mine.at_least(theirs) for mine, theirs in zip(self, other, strict=True)))


def pool_limits(jobs: Mapping[str, Workload], cluster: Cluster, headroom: float) -> dict[str, PoolLimits]:
    """The limits of those pools that have none of their own.

    Per resource, in cores and GiB, rounded up::

        limit = sum over the pool's claims of the largest instance that a claim may become
              + the largest of these instances once more
              + headroom * requests of the pods in the pool

    The first term matches Karpenter: it subtracts the largest type that a new claim may become from the limit, whichever EC2 launches in
    the end, and excludes types that are larger than the remainder. So the plan is the same as without limits. The second term allows one
    node
    to be replaced before it is removed. The third is room for more replacements at a time, and for growth. Pods arrive in one batch or
    staged;
    each term is the maximum of the two. Memory is that of the data sheet, because a registered node counts with the memory that it
    reports,
    which is more than Karpenter's estimate. A pool that no job of the environment uses may not start any node.

    That the plan does not change is also verified: both placements are repeated with the limits.

    Args:
        jobs: name -> plan of what runs, as `penstock.sizing.plan.workload.workloads`.
        cluster: that they share.
        headroom: share of the pods' requests, 0 or more.

    Returns:
        Pool -> its limits.

    Raises:
        LimitsChangePlan: INF-030, for limits that would change the placement of the pods.
    """
    unlimited = [pool.name for pool in cluster.node_pools if not pool.spec.limits]
    if not unlimited or not jobs:
        return dict.fromkeys(unlimited, PoolLimits(0, 0))
    groups = [group for name, plan in jobs.items() for group in pod_groups(plan.pods, plan.spark_conf, cluster, name)]
    allocations = {f"{name}/{EXECUTOR}": allocation_of(plan.spark_conf) for name, plan in jobs.items()}
    orders = decisions(groups, cluster, allocations)
    largest = _Largest(groups, cluster)
    needs = [_needs(decision, largest, groups) for decision in orders]
    limits = {}
    for pool in unlimited:
        one_batch, staged = (need.get(pool, _Need()) for need in needs)
        limits[pool] = _limits(one_batch.at_least(staged), headroom)
    _check(limits, groups, cluster, allocations, orders)
    return limits


def limited(cluster: Cluster, limits: Mapping[str, PoolLimits]) -> Cluster:
    """The cluster with limits on its pools.

    Args:
        cluster: the cluster.
        limits: pool -> limits; other pools keep their own.
    """
    return cluster.model_copy(update={"node_pools": tuple(_with(pool, limits.get(pool.name)) for pool in cluster.node_pools)})


class _Largest:
    """The largest instance that a claim may become if its first pod is of the given group: what Karpenter subtracts from the limits."""

    def __init__(self, groups: Sequence[PodGroup], cluster: Cluster) -> None:
        scenario = scenario_of(groups, cluster)
        self._market = market_of(scenario, cluster.catalog, cluster.node_settings, cluster.zones)
        self._pools = {pool.name: pool for pool in pools(cluster.node_pools, cluster.daemon_sets, self._market)}
        self._groups = {group.name: group for group in groups_of(scenario)}
        self._found: dict[tuple[str, str], Size] = {}

    def of(self, pool: str, groups: Iterable[str]) -> Size:
        """For a claim of a pool, the first pod of which may be of any of its groups."""
        size = _NOTHING
        for group in groups:
            if (pool, group) not in self._found:
                self._found[pool, group] = _largest(self._market, self._pools[pool], self._groups[group])
            size = size.at_least(self._found[pool, group])
        return size


def _largest(market: Market, pool: Pool, group: Group) -> Size:
    types = 0
    for wish in group.wishes:
        if pool.requirements.conflict(wish.requirements) is None:
            types |= pool.types & market.compatible(pool.requirements.plus(wish.requirements))
    size = _NOTHING
    for index in bits(pool.fitting(market, types, group.requests)):
        instance, room = market.types[index], market.allocatable[index]
        size = size.at_least(Size(room.capacity_cpu_millicores, max(instance.memory_mib, room.capacity_mib)))
    return size


def _needs(decision: Decision, largest: _Largest, groups: Sequence[PodGroup]) -> dict[str, _Need]:
    asked = {group.name: Size(*requested(group)) for group in groups}
    needs: dict[str, _Need] = {}
    for claim in decision.node_claims:
        need, machine = needs.get(claim.node_pool, _Need()), largest.of(claim.node_pool, claim.pods)
        pods = need.pods
        for group, count in claim.pods.items():
            pods = pods.plus(asked[group], count)
        needs[claim.node_pool] = _Need(need.claims.plus(machine), need.largest.at_least(machine), pods)
    return needs


def _limits(need: _Need, headroom: float) -> PoolLimits:
    size = need.claims.plus(need.largest).plus(need.pods.share(headroom))
    return PoolLimits(-(-size.cpu_millicores // _MILLICORES_OF_CORE), -(-size.memory_mib // _MIB_OF_GIB))


def _check(
    limits: Mapping[str, PoolLimits],
    groups: Sequence[PodGroup],
    cluster: Cluster,
    allocations: Allocations,
    orders: tuple[Decision, Decision],
) -> None:
    for order, meant, limited_decision in zip(
        ("one batch", "staged"), orders, decisions(groups, limited(cluster, limits), allocations), strict=True
    ):
        if limited_decision != meant:
            given = "; ".join(f"{pool}: cpu {limit.cpu_cores}, memory {limit.memory_gib}Gi" for pool, limit in limits.items())
            need = f"the same nodes as without limits ({order}: {len(meant.node_claims)}, with limits {len(limited_decision.node_claims)})"
            raise LimitsChangePlan(
                path="spec.nodes.pools", given=given, need=need, fix="set limits of the pools explicitly, and report a bug"
            )


def _with(pool: NodePool, limits: PoolLimits | None) -> NodePool:
    if limits is None:
        return pool
    amounts = {CPU: limits.cpu_cores * NANO, MEMORY: limits.memory_gib * _MIB_OF_GIB * MIB * NANO}
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"limits": amounts})})


def _up(amount: float) -> int:
    return -int(-amount // 1)
