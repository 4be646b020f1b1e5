"""Whether a cluster carries a plan: unschedulable pods, the reason, and the nearest feasible plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.sizing.catalog.allocatable import allocatable_storage_mib, root_volume_gib
from penstock.sizing.catalog.labels import HOSTNAME
from penstock.sizing.cluster import Cluster
from penstock.sizing.errors import (
    DriverOnSpot,
    NoPoolTakesPod,
    NothingToLaunch,
    PodFitsNoNode,
    PoolLimitBinds,
    QuotaBinds,
    SpreadNotMet,
    StorageFitsNoNode,
)
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.resources import MEMORY
from penstock.sizing.placement.scenario import PodGroup
from penstock.sizing.plan.job_pods import DRIVER
from penstock.sizing.plan.nearest_fit import (
    LIMIT_UNITS,
    Limits,
    Wanted,
    is_required,
    largest_cpu_millicores,
    largest_memory_mib,
    largest_storage_mib,
    limits_that_suffice,
    most_pods,
    one_fits,
    preferably_spread,
    sized,
    smallest_type,
    with_root_volume,
    with_storage,
    zones_without,
)
from penstock.sizing.plan.nodes import requested, requested_storage_mib
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan
from penstock.sizing.units import cpu_text, memory_text
from penstock.sizing.violation import Violation, violated

# Source: EC2 service quotas L-1216C47A and L-34B43A08: "standard" instances are A, C, D, H, I, M, R, T and Z. The other families with these
# initials (DL, HPC, Inf, Mac, Trn) have separate quotas.
STANDARD_CATEGORIES = frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"})
# Source: Amazon EBS User Guide, "General Purpose SSD volumes"; as `penstock.infra.parts.nodes` allows.
LARGEST_VOLUME_GIB = 16 * 1024
# A tiny pod with the same selectors and tolerations distinguishes "no pool accepts it" from "it is too large".
_TINY = (1, 1)


def cluster_violations(wanted: Wanted, nodes: NodesPlan, slots: Mapping[str, int]) -> list[tuple[str, Violation]]:
    """The violations of pods that the cluster cannot schedule, all at once or on a first start.

    Args:
        wanted: the pods and the cluster.
        nodes: the nodes that Karpenter creates for them.
        slots: group of executors -> slots of one, for the nearest parallelism; without those whose parallelism follows from a load.

    Returns:
        The group or an empty text, and SIZ-010 to SIZ-014 and SIZ-017 to SIZ-019: unschedulable pods first, by group.
    """
    missing = Counter(nodes.one_batch.unschedulable) | Counter(nodes.staged.unschedulable)
    not_launched = dict(_not_launched(nodes.one_batch.groups))
    # Pods whose node cannot be launched are pending too; reported once.
    waiting = [group for group in wanted.groups if missing[group.name] and group.name not in not_launched]
    return [
        *((group.name, _unplaced(group, missing[group.name], wanted, nodes, slots)) for group in waiting),
        *_drivers_on_spot(nodes),
        *not_launched.items(),
        *(("", fault) for fault in _quotas(nodes, wanted.cluster)),
    ]


def broker_quota_violations(kafka: LoadKafka | None, cluster: Cluster) -> list[Violation]:
    """SIZ-011 if the number of brokers, fixed by the environment or required by the load, exceeds the account's quota."""
    quota, own = cluster.quotas.msk_brokers, cluster.kafka
    planned = kafka.cluster.brokers if kafka is not None and kafka.cluster is not None else 0
    brokers = 0 if own is None or own.kind not in ("standard", "express") else own.brokers or planned
    if quota is None or brokers <= quota:
        return []
    need, fix = f"{brokers} brokers", f"request a quota of at least {brokers} for this region, or use fewer brokers of a larger type"
    return [violated(QuotaBinds, path="spec.quotas.mskBrokers", given=str(quota), need=need, fix=fix)]


def _unplaced(group: PodGroup, missing: int, wanted: Wanted, nodes: NodesPlan, slots: Mapping[str, int]) -> Violation:
    free = wanted.without_limits().cluster
    if one_fits(group, free):
        zones = zones_without(group, free)
        return _not_spread(group, zones, wanted) if zones else _limited(group, missing, wanted, slots)
    without = with_storage(group, 0)
    if one_fits(without, free):
        return _too_much_storage(group, wanted)
    if not one_fits(sized(without, *_TINY), free):
        return _no_pool(group, nodes, wanted.cluster)
    # Where its storage does not fit either, that is for the plan of a smaller pod.
    return _too_large(group if one_fits(sized(group, *_TINY), free) else without, wanted)


def _limited(group: PodGroup, missing: int, wanted: Wanted, slots: Mapping[str, int]) -> Violation:
    placed = group.count - missing
    own = {pool.name: pool.spec.limits for pool in wanted.cluster.node_pools if pool.spec.limits}
    cpu, mib = requested(group)
    given = f"{group.count} pods of {cpu_text(cpu)} and {memory_text(mib)}"
    need = f"capacity for {missing} more than the {placed} that are scheduled; the limits are {_limits_text(own)}"
    fixes = [f"limits of {_limits_text(limits_that_suffice(wanted)) or 'the larger pools'}"]
    most = most_pods(wanted, group, placed) if group.name in slots else 0
    if most:
        executors = "1 executor" if most == 1 else f"{most} executors"
        fixes.insert(0, f"a parallelism of at most {most * slots[group.name]} ({executors})")
    if is_required(group, HOSTNAME) and wanted.fits(preferably_spread(group)):
        fixes.insert(0, "spread.nodes: preferred")
    return violated(PoolLimitBinds, path=group.name, given=given, need=need, fix=", or ".join(fixes))


def _not_spread(group: PodGroup, zones: Sequence[str], wanted: Wanted) -> Violation:
    cluster = wanted.cluster
    given = f"{group.count} executors, spread.zones: required"
    need = f"nodes for executors in each zone of {cluster.name}: {', '.join(cluster.zones)}; there can be none in {', '.join(zones)}"
    fixes = [f"allow {' and '.join(zones)} in a NodePool of the executors"]
    if wanted.fits(preferably_spread(group)):
        fixes.insert(0, "spread.zones: preferred")
    return violated(SpreadNotMet, path=group.name, given=given, need=need, fix=", or ".join(fixes))


def _no_pool(group: PodGroup, nodes: NodesPlan, cluster: Cluster) -> Violation:
    spec = group.pod.spec
    selector = ", ".join(f"{key}={value}" for key, value in spec.node_selector.items()) or "no node selector"
    need = nodes.one_batch.reasons.get(group.name, "a NodePool with these labels and only taints that the pod tolerates")
    names = ", ".join(pool.name for pool in cluster.node_pools)
    fix = f"use a node selector and tolerations that match one of the pools {names}, or add a pool for these pods"
    return violated(NoPoolTakesPod, path=group.name, given=selector, need=need, fix=fix)


def _too_large(group: PodGroup, wanted: Wanted) -> Violation:
    cpu, mib = requested(group)
    given = f"{cpu_text(cpu)} and {memory_text(mib)} per pod"
    bigger = smallest_type(wanted, group)
    allow = f", or allow {bigger.name} ({bigger.vcpu} vCPUs, {memory_text(bigger.memory_mib)})" if bigger else ""
    beside = "on the allowed types after DaemonSets and within the limits of their pools"
    most_mib = largest_memory_mib(wanted, group)
    if most_mib:
        need = f"at most {most_mib} MiB per pod with {cpu_text(cpu)}, {beside}"
        return violated(PodFitsNoNode, path=group.name, given=given, need=need, fix=f'memory <= "{most_mib}m"{allow}')
    most_cpu = largest_cpu_millicores(wanted, group)
    if most_cpu:
        need = f"at most {most_cpu}m of CPU per pod with {memory_text(mib)}, {beside}"
        return violated(PodFitsNoNode, path=group.name, given=given, need=need, fix=f'cores <= "{most_cpu}m"{allow}')
    need = "a smaller pod: reducing only memory or only CPU is not enough"
    return violated(PodFitsNoNode, path=group.name, given=given, need=need, fix=f"reduce both{allow}")


def _too_much_storage(group: PodGroup, wanted: Wanted) -> Violation:
    storage_mib, own_gib = requested_storage_mib(group), wanted.cluster.node_settings.root_volume_gib
    most_mib = largest_storage_mib(wanted, group)
    # DaemonSets may request some of it too.
    needed_gib = root_volume_gib(storage_mib + allocatable_storage_mib(own_gib) - most_mib)
    fixes = []
    if needed_gib <= LARGEST_VOLUME_GIB and one_fits(group, with_root_volume(wanted.without_limits().cluster, needed_gib)):
        fixes.append(f'rootVolume: "{needed_gib}Gi" or more for the nodes')
    if group.name.split("/")[-1] != DRIVER:
        fixes.append("more executors")
    need = f"at most {most_mib:,} MiB per pod on a root volume of {own_gib:,} GiB, after what the kubelet and DaemonSets reserve"
    given = f"{storage_mib:,} MiB of ephemeral storage per pod"
    return violated(StorageFitsNoNode, path=group.name, given=given, need=need, fix=", or ".join(fixes) or "less state")


def _drivers_on_spot(nodes: NodesPlan) -> Iterator[tuple[str, Violation]]:
    """SIZ-014 for each driver that runs on spot in either order."""
    spot = [group for group in (*nodes.one_batch.groups, *nodes.staged.groups) if group.capacity_type == "spot"]
    pools = {pods.group: group.node_pool for group in spot for pods in group.pods if pods.group.split("/")[-1] == DRIVER}
    for driver, pool in pools.items():
        need = "on-demand capacity: losing the driver's node restarts the query"
        fix = "use a pool with karpenter.sh/capacity-type on-demand, or add that label to the driver's node selector"
        yield driver, violated(DriverOnSpot, path=driver, given=f"pool {pool}, spot", need=need, fix=fix)


def _not_launched(groups: Iterable[NodeGroup]) -> Iterator[tuple[str, Violation]]:
    for group in groups:
        for pods in group.pods if group.error else ():
            fix = "relax the requirements of the pool"
            yield pods.group, violated(NothingToLaunch, path=pods.group, given=f"pool {group.node_pool}", need=group.error, fix=fix)


def _quotas(nodes: NodesPlan, cluster: Cluster) -> Iterator[Violation]:
    """SIZ-011 if even the smallest possible machines exceed a quota."""
    quotas = {"on-demand": cluster.quotas.on_demand_vcpus, "spot": cluster.quotas.spot_vcpus}
    for capacity_type, quota in quotas.items():
        least = max(_least_vcpus(placed.groups, capacity_type, cluster) for placed in (nodes.one_batch, nodes.staged))
        if quota is not None and least > quota:
            name = "onDemandVcpus" if capacity_type == "on-demand" else "spotVcpus"
            need = f"at least {least} {capacity_type} vCPUs, with the smallest instance types that may be launched"
            fix = f"request a quota of at least {least} for this region, or use fewer executors"
            yield violated(QuotaBinds, path=f"spec.quotas.{name}", given=str(quota), need=need, fix=fix)


def _least_vcpus(groups: Iterable[NodeGroup], capacity_type: str, cluster: Cluster) -> int:
    return sum(group.count * _fewest_vcpus(group, cluster) for group in groups if group.capacity_type == capacity_type)


def _fewest_vcpus(group: NodeGroup, cluster: Cluster) -> int:
    """The minimum vCPUs of a node that count against the quota of standard instances: 0 if the node may be of another kind."""
    types = [one for name in group.launch_types if (one := cluster.catalog.get(name))]
    return min((one.vcpu if one.category in STANDARD_CATEGORIES else 0 for one in types), default=0)


def _limits_text(limits: Limits) -> str:
    return "; ".join(f"{pool}: {', '.join(_limit_text(*limit) for limit in amounts.items())}" for pool, amounts in limits.items())


def _limit_text(name: str, amount: int) -> str:
    count = amount / LIMIT_UNITS.get(name, NANO)
    return f"{name} {count:g}{'Gi' if name == MEMORY else ''}"
