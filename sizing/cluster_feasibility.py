"""Whether a cluster carries a plan: what of the pods finds no node, why, and the nearest that would."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sizing.catalog.instance_type import InstanceType
from sizing.cluster import Cluster
from sizing.errors import DriverOnSpot, Infeasible, NoPoolTakesPod, NothingToLaunch, PodFitsNoNode, PoolLimitBinds, QuotaBinds
from sizing.job_pods import DRIVER
from sizing.nodes import requested, scenario_of
from sizing.placement.manifests import NodePool
from sizing.placement.place import place
from sizing.placement.scenario import PodGroup
from sizing.planned_nodes import NodeGroup, NodesPlan
from sizing.units import cpu_text, memory_text

# Source: EC2 service quotas L-1216C47A and L-34B43A08: the families that "standard" instances are counted over.
STANDARD_FAMILIES = frozenset("acdhimrtz")
# A tiny pod with the same selectors and tolerations tells "no pool takes it" from "it is too large".
_TINY = (1, 1)


def cluster_violations(
    groups: Sequence[PodGroup], nodes: NodesPlan, cluster: Cluster, slots: Mapping[str, int]
) -> list[tuple[str, Infeasible]]:
    """What of the pods the cluster does not carry.

    Args:
        groups: drivers and executors.
        nodes: what Karpenter makes of them.
        cluster: the environment.
        slots: group of executors -> slots of one, for the nearest parallelism.

    Returns:
        The group or an empty text, and SIZ-010 to SIZ-014 and SIZ-017, the executors' and drivers' first.
    """
    left_out = [group for group in groups if nodes.one_batch.unschedulable.get(group.name)]
    return [
        *((group.name, _unplaced(group, groups, nodes, cluster, slots)) for group in left_out),
        *_driver_on_spot(nodes),
        *_not_launched(nodes),
        *(("", fault) for fault in _quotas(nodes.one_batch.groups, cluster)),
    ]


def _unplaced(
    group: PodGroup, groups: Sequence[PodGroup], nodes: NodesPlan, cluster: Cluster, slots: Mapping[str, int]
) -> Infeasible:
    free = cluster.model_copy(update={"node_pools": tuple(_without_limits(pool) for pool in cluster.node_pools)})
    if _one_fits(group, free):
        return _limited(group, groups, nodes, cluster, free, slots)
    if not _one_fits(_sized(group, *_TINY), free):
        return _no_pool(group, nodes, cluster)
    return _too_large(group, free)


def _limited(
    group: PodGroup, groups: Sequence[PodGroup], nodes: NodesPlan, cluster: Cluster, free: Cluster, slots: Mapping[str, int]
) -> PoolLimitBinds:
    left_out = nodes.one_batch.unschedulable[group.name]
    placed = group.count - left_out
    limits = "; ".join(f"{pool.name}: {_limits_text(pool)}" for pool in cluster.node_pools if pool.spec.limits)
    cpu, mib = requested(group)
    given = f"{group.count} pods of {cpu_text(cpu)} and {memory_text(mib)}"
    need = f"room for {left_out} more than the {placed} that find a node; the limits are {limits}"
    fixes = [_enough(groups, free)]
    if group.name in slots and placed:
        fixes.insert(0, f"a parallelism of at most {placed * slots[group.name]}")
    return PoolLimitBinds(path=group.name, given=given, need=need, fix=", or ".join(fixes))


def _enough(groups: Sequence[PodGroup], free: Cluster) -> str:
    """Limits that take all the pods, by pool: each claim counts as the largest type that it may become."""
    decision = place(scenario_of(groups, free), free.catalog, free.node_settings, free.zones)
    wanted: dict[str, tuple[int, int]] = {}
    for claim in decision.node_claims:
        types = [known for name in claim.instance_types if (known := free.catalog.get(name))]
        cpu, mib = wanted.get(claim.node_pool, (0, 0))
        wanted[claim.node_pool] = (cpu + max(one.vcpu for one in types), mib + max(one.memory_mib for one in types))
    return "limits of " + "; ".join(f"{pool}: cpu {cpu}, memory {-(-mib // 1024)}Gi" for pool, (cpu, mib) in sorted(wanted.items()))


def _no_pool(group: PodGroup, nodes: NodesPlan, cluster: Cluster) -> NoPoolTakesPod:
    spec = group.pod.spec
    selector = ", ".join(f"{key}={value}" for key, value in spec.node_selector.items()) or "no node selector"
    need = nodes.one_batch.reasons.get(group.name, "a NodePool with these labels whose taints the pod tolerates")
    pools = ", ".join(pool.name for pool in cluster.node_pools)
    fix = f"a node selector and tolerations that one of the pools {pools} meets, or a pool for these pods"
    return NoPoolTakesPod(path=group.name, given=selector, need=need, fix=fix)


def _too_large(group: PodGroup, free: Cluster) -> PodFitsNoNode:
    cpu, mib = requested(group)
    most_mib = _most(mib, lambda less: _one_fits(_sized(group, cpu, less), free))
    given = f"{cpu_text(cpu)} and {memory_text(mib)} a pod"
    bigger = _smallest_that_fits(group, free)
    allow = f", or allow {bigger.name} ({bigger.vcpu} vCPUs, {memory_text(bigger.memory_mib)})" if bigger else ""
    if most_mib:
        need = f"at most {most_mib} MiB a pod with {cpu_text(cpu)}, beside the DaemonSets of the largest allowed type"
        return PodFitsNoNode(path=group.name, given=given, need=need, fix=f'memory <= "{most_mib}m"{allow}')
    most_cpu = _most(cpu, lambda less: _one_fits(_sized(group, less, mib), free))
    if most_cpu:
        need = f"at most {most_cpu}m of CPU a pod with {memory_text(mib)}, beside the DaemonSets of the largest allowed type"
        return PodFitsNoNode(path=group.name, given=given, need=need, fix=f'cores <= "{most_cpu}m"{allow}')
    need = "a smaller pod: neither its CPU nor its memory fits any allowed type"
    return PodFitsNoNode(path=group.name, given=given, need=need, fix=f"less of both{allow}")


def _smallest_that_fits(group: PodGroup, free: Cluster) -> InstanceType | None:
    """The cheapest type of the catalogue that carries the pod, were it allowed in one of the pools that take the pod."""
    open_cluster = free.model_copy(update={"node_pools": tuple(_any_type(pool) for pool in free.node_pools)})
    one = group.model_copy(update={"count": 1})
    decision = place(scenario_of([one], open_cluster), free.catalog, free.node_settings, free.zones)
    return next((free.catalog.get(claim.cheapest_type) for claim in decision.node_claims if claim.cheapest_type), None)


def _any_type(pool: NodePool) -> NodePool:
    """The pool with no say on the machine but its architecture and how it is bought."""
    of_machines = ("karpenter.k8s.aws/", "node.kubernetes.io/")
    kept = tuple(one for one in pool.spec.template.spec.requirements if not one.key.startswith(of_machines))
    node = pool.spec.template.spec.model_copy(update={"requirements": kept})
    template = pool.spec.template.model_copy(update={"spec": node})
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"template": template})})


def _driver_on_spot(nodes: NodesPlan) -> Iterator[tuple[str, Infeasible]]:
    for group in nodes.one_batch.groups:
        drivers = [pods.group for pods in group.pods if pods.group.split("/")[-1] == DRIVER]
        if group.capacity_type == "spot" and drivers:
            need = "on-demand capacity: the loss of a driver's node restarts the query and all that it holds"
            fix = "send it to a pool of karpenter.sh/capacity-type on-demand, or give it that label as a node selector"
            yield drivers[0], DriverOnSpot(path=drivers[0], given=f"pool {group.node_pool}, spot", need=need, fix=fix)


def _not_launched(nodes: NodesPlan) -> Iterator[tuple[str, Infeasible]]:
    for group in nodes.one_batch.groups:
        if group.error:
            names = ", ".join(pods.group for pods in group.pods)
            fix = "loosen the requirements of the pool"
            yield group.pods[0].group, NothingToLaunch(path=names, given=f"pool {group.node_pool}", need=group.error, fix=fix)


def _quotas(groups: Iterable[NodeGroup], cluster: Cluster) -> Iterator[QuotaBinds]:
    """Where even the smallest machines that may come are above a quota."""
    quotas = {"on-demand": cluster.quotas.on_demand_vcpus, "spot": cluster.quotas.spot_vcpus}
    for capacity_type, quota in quotas.items():
        least = sum(group.count * _fewest_vcpus(group, cluster) for group in groups if group.capacity_type == capacity_type)
        if quota is not None and least > quota:
            name = "onDemandVcpus" if capacity_type == "on-demand" else "spotVcpus"
            need = f"{least} {capacity_type} vCPUs at least, as the smallest machines that may come"
            fix = f"a quota of {least} or more for this region, or fewer executors"
            yield QuotaBinds(path=f"spec.quotas.{name}", given=str(quota), need=need, fix=fix)


def _fewest_vcpus(group: NodeGroup, cluster: Cluster) -> int:
    types = [one for name in group.launch_types if (one := cluster.catalog.get(name))]
    known = [one.vcpu for one in types if (one.category or "")[:1] in STANDARD_FAMILIES]
    return min(known, default=0)


def _one_fits(group: PodGroup, cluster: Cluster) -> bool:
    one = group.model_copy(update={"count": 1})
    return not place(scenario_of([one], cluster), cluster.catalog, cluster.node_settings, cluster.zones).unschedulable


def _most(too_much: int, fits: Callable[[int], bool]) -> int:
    """The largest value below one that does not fit, 0 if none from 1 on fits."""
    return bisect_right(range(1, too_much), False, key=lambda value: not fits(value))


def _sized(group: PodGroup, cpu_millicores: int, memory_mib: int) -> PodGroup:
    data = group.model_dump(by_alias=True, exclude_unset=True)
    amounts = {"cpu": f"{cpu_millicores}m", "memory": f"{memory_mib}Mi"}
    data["pod"]["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {"memory": amounts["memory"]}}
    return PodGroup.model_validate({**data, "count": 1})


def _without_limits(pool: NodePool) -> NodePool:
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"limits": {}})})


def _limits_text(pool: NodePool) -> str:
    written = pool.spec.model_dump(by_alias=True)["limits"]
    return ", ".join(f"{name} {_limit_text(name, amount)}" for name, amount in written.items())


def _limit_text(name: str, amount: str) -> str:
    return memory_text(int(amount) // 1024**2) if name == "memory" and amount.isdigit() else amount
