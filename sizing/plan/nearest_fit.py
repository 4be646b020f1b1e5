"""The nearest feasible variant of pods that a cluster cannot schedule: fewer pods, smaller pods, or higher limits.

Each result is verified by another placement, in both orders in which the pods may arrive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from penstock.sizing.catalog.instance_type import InstanceType
from penstock.sizing.catalog.labels import ZONE
from penstock.sizing.cluster import Cluster
from penstock.sizing.placement.batch import market_of
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.place import place
from penstock.sizing.placement.pools import pools
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NODES
from penstock.sizing.placement.scenario import PodGroup
from penstock.sizing.plan.nodes import Allocations, arrivals, decisions, left_out, requested, requested_storage_mib, scenario_of
from penstock.sizing.spark_pods import MIN_HEAP_MIB
from penstock.sizing.units import MIB

# The step of a search for a limit, in billionths: a core, a GiB, a node.
LIMIT_UNITS = {CPU: NANO, MEMORY: 1024 * MIB * NANO, NODES: NANO}
# Each step of a search places all pods, batch by batch, so its duration grows with pods * batches. Above the first threshold, limits are
# sufficient upper bounds without a search, and sizes are searched in coarse steps; above the second no limits are suggested.
MOST_EFFORT_TO_SEARCH = 12_500
MOST_EFFORT_TO_PLACE = 100 * MOST_EFFORT_TO_SEARCH
COARSE_STEPS = 32

Limits = Mapping[str, Mapping[str, int]]


class Wanted(NamedTuple):
    """Pods to place.

    Args:
        groups: drivers and executors.
        cluster: the environment.
        allocations: executor allocation of each group.
    """

    groups: Sequence[PodGroup]
    cluster: Cluster
    allocations: Allocations

    def left_out(self) -> Counter[str]:
        """Group -> unschedulable pods."""
        return left_out(self.groups, self.cluster, self.allocations)

    @property
    def effort(self) -> int:
        """The relative cost of a placement."""
        return sum(group.count for group in self.groups) * len(arrivals(self.groups, self.allocations, self.cluster.boot_s))

    def fits(self, group: PodGroup) -> bool:
        """Whether a modified group can be scheduled completely in place of the group with its name."""
        groups = [group if one.name == group.name else one for one in self.groups]
        return not self._replace(groups=groups).left_out()[group.name]

    def without_limits(self) -> Wanted:
        """The same pods without NodePool limits."""
        return self._replace(cluster=_with_pools(self.cluster, lambda pool: _limited(pool, {})))


def one_fits(group: PodGroup, cluster: Cluster) -> bool:
    """Whether one pod of a group can be scheduled on a dedicated node."""
    one = group.model_copy(update={"count": 1})
    return not place(scenario_of([one], cluster), cluster.catalog, cluster.node_settings, cluster.zones).unschedulable


def sized(group: PodGroup, cpu_millicores: int, memory_mib: int, storage_mib: int | None = None) -> PodGroup:
    """The group with pods of another size; without a value their ephemeral storage is unchanged."""
    data = group.model_dump(by_alias=True, exclude_unset=True)
    amounts = {"cpu": f"{cpu_millicores}m", "memory": f"{memory_mib}Mi"}
    limits = {"memory": amounts["memory"]}
    storage_mib = requested_storage_mib(group) if storage_mib is None else storage_mib
    if storage_mib:
        amounts[EPHEMERAL_STORAGE] = f"{storage_mib}Mi"
    data["pod"]["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    return PodGroup.model_validate(data)


def is_required(group: PodGroup, label: str) -> bool:
    """Whether the pods of a group must be spread over the values of a node label."""
    constraints = group.pod.spec.topology_spread_constraints
    return any(one.topology_key == label and one.when_unsatisfiable == "DoNotSchedule" for one in constraints)


def preferably_spread(group: PodGroup) -> PodGroup:
    """The group, whose pods are spread where that is possible."""
    data = group.model_dump(by_alias=True, exclude_unset=True)
    for constraint in data["pod"]["spec"].get("topologySpreadConstraints", ()):
        constraint["whenUnsatisfiable"] = "ScheduleAnyway"
        constraint.pop("minDomains", None)
    return PodGroup.model_validate(data)


def zones_without(group: PodGroup, cluster: Cluster) -> tuple[str, ...]:
    """The zones in which a group that must be spread over all of them can't have a node; empty if it need not."""
    if not is_required(group, ZONE):
        return ()
    return tuple(zone for zone in cluster.zones if not one_fits(_in_zone(group, zone), cluster))


def _in_zone(group: PodGroup, zone: str) -> PodGroup:
    data = group.model_dump(by_alias=True, exclude_unset=True)
    spec = data["pod"]["spec"]
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), ZONE: zone}
    return PodGroup.model_validate(data)


def with_storage(group: PodGroup, storage_mib: int) -> PodGroup:
    """The group with pods of the same size that request another amount of ephemeral storage; 0: none."""
    return sized(group, *requested(group), storage_mib)


def most_pods(wanted: Wanted, group: PodGroup, placed: int) -> int:
    """The number of pods of a group that can be scheduled together with the others; 0: none.

    Args:
        wanted: all pods.
        group: a group that cannot be scheduled completely.
        placed: how many of its pods were scheduled.
    """

    def fits(count: int) -> bool:
        return wanted.fits(group.model_copy(update={"count": count}))

    # Scheduled pods usually stay schedulable without the others; on a first start, however, they may arrive in other batches.
    return placed if not placed or fits(placed) else _most(placed, fits)


def largest_memory_mib(wanted: Wanted, group: PodGroup) -> int:
    """The maximum memory with which all pods of a group can be scheduled, with their CPU unchanged; 0: none that a JVM can start with."""
    cpu, mib = requested(group)
    largest = _largest(wanted, mib, lambda less: sized(group, cpu, less))
    return largest if largest >= MIN_HEAP_MIB else 0


def largest_cpu_millicores(wanted: Wanted, group: PodGroup) -> int:
    """The maximum CPU with which all pods of a group can be scheduled, with their memory unchanged; 0: none."""
    cpu, mib = requested(group)
    return _largest(wanted, cpu, lambda less: sized(group, less, mib))


def largest_storage_mib(wanted: Wanted, group: PodGroup) -> int:
    """The maximum ephemeral storage that one pod of a group can request, with its CPU and memory unchanged."""
    free = wanted.without_limits().cluster
    return _most(requested_storage_mib(group), lambda less: one_fits(with_storage(group, less), free))


def with_root_volume(cluster: Cluster, gib: int) -> Cluster:
    """The cluster with a root volume of another size."""
    return cluster.model_copy(update={"node_settings": cluster.node_settings.model_copy(update={"root_volume_gib": gib})})


def smallest_type(wanted: Wanted, group: PodGroup) -> InstanceType | None:
    """The cheapest type of the catalog that fits a pod, if a pool that accepts the pod allowed it."""
    opened = _with_pools(wanted.cluster, _of_any_type)
    one = group.model_copy(update={"count": 1})
    decision = place(scenario_of([one], opened), opened.catalog, opened.node_settings, opened.zones)
    return next((opened.catalog.get(claim.cheapest_type) for claim in decision.node_claims if claim.cheapest_type), None)


def limits_that_suffice(wanted: Wanted) -> Limits:
    """Higher limits with which all pods that are schedulable without limits can be scheduled.

    Returns:
        Pool -> resource -> limit in billionths, only those to raise. If a search is short enough, each is the minimum in whole cores,
        GiB and nodes, given the others; empty if not even one placement is affordable.
    """
    if wanted.effort > MOST_EFFORT_TO_PLACE:
        return {}
    enough = _certain(wanted)
    if wanted.effort > MOST_EFFORT_TO_SEARCH:
        return enough if _limited_to(wanted, enough).left_out() == wanted.without_limits().left_out() else {}
    never = _limited_to(wanted, enough).left_out()

    def suffice(limits: Limits) -> bool:
        return not _limited_to(wanted, limits).left_out() - never

    reduced = {pool: dict(limits) for pool, limits in enough.items()}
    for pool in wanted.cluster.node_pools:
        for name in list(reduced.get(pool.name, {})):
            least = _least(reduced, pool, name, suffice)
            if least is None:
                del reduced[pool.name][name]
            else:
                reduced[pool.name][name] = least
    return {pool: limits for pool, limits in reduced.items() if limits}


def _least(limits: Limits, pool: NodePool, name: str, suffice: Callable[[Limits], bool]) -> int | None:
    """The minimum sufficient limit given the others; None: the pool's current one suffices."""
    unit, own, enough = LIMIT_UNITS[name], pool.spec.limits[name], limits[pool.name][name]

    def with_limit(amount: int) -> bool:
        return suffice({**limits, pool.name: {**limits[pool.name], name: amount}})

    if with_limit(own):
        return None
    units = range(own // unit + 1, enough // unit + 1)
    return units[bisect_left(units[:-1], True, key=lambda count: with_limit(count * unit))] * unit


def _certain(wanted: Wanted) -> Limits:
    """Limits that are certain to suffice: each claim created without limits counts as the largest type of its pool."""
    free = wanted.without_limits()
    cluster, scenario = free.cluster, scenario_of(free.groups, free.cluster)
    market = market_of(scenario, cluster.catalog, cluster.node_settings, cluster.zones)
    largest = {
        pool.name: {**{name: market.capacities[name].largest(pool.types) for name in (CPU, MEMORY)}, NODES: NANO}
        for pool in pools(cluster.node_pools, cluster.daemon_sets, market)
    }
    both = decisions(free.groups, cluster, free.allocations)
    one_batch, staged = (Counter(claim.node_pool for claim in decision.node_claims) for decision in both)
    claims = one_batch | staged
    limits: dict[str, dict[str, int]] = {}
    for pool in wanted.cluster.node_pools:
        for name, own in pool.spec.limits.items():
            if name in LIMIT_UNITS and claims[pool.name]:
                whole = -(-claims[pool.name] * largest[pool.name][name] // LIMIT_UNITS[name]) * LIMIT_UNITS[name]
                if whole > own:
                    limits.setdefault(pool.name, {})[name] = whole
    return limits


def _largest(wanted: Wanted, too_much: int, group_of: Callable[[int], PodGroup]) -> int:
    """The largest value with which all pods can be scheduled; checks a single pod without limits first, usually the deciding case."""
    free = wanted.without_limits().cluster
    alone = _most(too_much, lambda value: one_fits(group_of(value), free))
    if not alone or wanted.fits(group_of(alone)):
        return alone
    step = 1 if wanted.effort <= MOST_EFFORT_TO_SEARCH else max(1, alone // COARSE_STEPS)
    return step * _most(-(-alone // step), lambda steps: wanted.fits(group_of(step * steps)))


def _most(too_much: int, fits: Callable[[int], bool]) -> int:
    """The largest fitting value below one that does not fit, or 0 if none from 1 on fits."""
    return bisect_right(range(1, too_much), False, key=lambda value: not fits(value))


def _limited_to(wanted: Wanted, limits: Limits) -> Wanted:
    cluster = _with_pools(wanted.cluster, lambda pool: _limited(pool, {**pool.spec.limits, **limits.get(pool.name, {})}))
    return wanted._replace(cluster=cluster)


def _with_pools(cluster: Cluster, change: Callable[[NodePool], NodePool]) -> Cluster:
    return cluster.model_copy(update={"node_pools": tuple(change(pool) for pool in cluster.node_pools)})


def _limited(pool: NodePool, limits: Mapping[str, int]) -> NodePool:
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"limits": dict(limits)})})


def _of_any_type(pool: NodePool) -> NodePool:
    """The pool without requirements on the machine other than architecture and capacity type."""
    of_machines = ("karpenter.k8s.aws/", "node.kubernetes.io/")
    kept = tuple(one for one in pool.spec.template.spec.requirements if not one.key.startswith(of_machines))
    node = pool.spec.template.spec.model_copy(update={"requirements": kept})
    template = pool.spec.template.model_copy(update={"spec": node})
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"template": template})})
