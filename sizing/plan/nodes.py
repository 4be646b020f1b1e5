"""The nodes that Karpenter creates for the pods of a job, or of all jobs of an environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.sizing.catalog.allocatable import allocatable
from penstock.sizing.cluster import Cluster
from penstock.sizing.placement.batch import market_of
from penstock.sizing.placement.decision import Decision, NodeClaim
from penstock.sizing.placement.place import place
from penstock.sizing.placement.pools import pools
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from penstock.sizing.placement.scenario import BATCH_IDLE_S, Arrival, PodGroup, Scenario
from penstock.sizing.placement.staged import place_staged
from penstock.sizing.plan.job_pods import DRIVER
from penstock.sizing.planned_nodes import CapacityType, NodeExample, NodeGroup, NodesPlan, PlacedPods, PodsOnNode
from penstock.sizing.spark_settings import ALLOCATION_BATCH_DELAY_MS, ALLOCATION_BATCH_SIZE, SparkSettings, read_settings
from penstock.sizing.units import MIB

# Ours: start of the driver's container and JVM until it requests the first executors, with the image already on the node.
DRIVER_START_S = 20.0


class Allocation(NamedTuple):
    """Spark's executor allocation: the batch size and the delay between batches."""

    batch_size: int = ALLOCATION_BATCH_SIZE
    delay_s: float = ALLOCATION_BATCH_DELAY_MS / 1000


# Group of executors -> its allocation; missing groups use Spark's defaults.
Allocations = Mapping[str, Allocation]


def allocation(settings: SparkSettings) -> Allocation:
    """The executor allocation of a job."""
    return Allocation(settings.allocation_batch_size, settings.allocation_batch_delay_ms / 1000)


def allocation_of(conf: Mapping[str, str]) -> Allocation:
    """The executor allocation of a plan, from its settings.

    Args:
        conf: Spark settings, already validated by a plan.
    """
    settings, _ = read_settings(conf)
    return allocation(settings)


def plan_nodes(groups: Sequence[PodGroup], cluster: Cluster, allocations: Allocations) -> NodesPlan:
    """The nodes for pods in both orders.

    Args:
        groups: drivers and executors, each driver before its executors.
        cluster: the environment.
        allocations: executor allocation of each group.

    Returns:
        The nodes; unschedulable pods are listed with the reason.
    """
    scenario = scenario_of(groups, cluster)
    one_batch, staged = decisions(groups, cluster, allocations)
    seen = _Seen(groups, cluster, scenario)
    return NodesPlan(
        environment=cluster.name,
        region=cluster.region,
        catalog_date=cluster.catalog.date,
        one_batch=seen.placed(one_batch),
        staged=seen.placed(staged),
    )


def decisions(groups: Sequence[PodGroup], cluster: Cluster, allocations: Allocations) -> tuple[Decision, Decision]:
    """Karpenter's decisions for the pods: all in one batch, and in their order of arrival on a first start.

    Args:
        groups: see `plan_nodes`.
        cluster: the environment.
        allocations: see `plan_nodes`.
    """
    scenario, known = scenario_of(groups, cluster), (cluster.catalog, cluster.node_settings, cluster.zones)
    staged = scenario.model_copy(update={"arrivals": arrivals(groups, allocations, cluster.boot_s), "boot_s": cluster.boot_s})
    return place(scenario, *known), place_staged(staged, *known)


def left_out(groups: Sequence[PodGroup], cluster: Cluster, allocations: Allocations) -> Counter[str]:
    """Group -> unschedulable pods, in whichever of the two orders has more."""
    one_batch, staged = decisions(groups, cluster, allocations)
    return Counter(one_batch.unschedulable) | Counter(staged.unschedulable)


def arrivals(groups: Sequence[PodGroup], allocations: Allocations, boot_s: float) -> tuple[Arrival, ...]:
    """When the pods appear on a first start: drivers immediately, executors in Spark's batches once their driver runs.

    Args:
        groups: see `plan_nodes`.
        allocations: see `plan_nodes`.
        boot_s: time from a node claim to a ready node.
    """
    arriving: list[Arrival] = []
    for group in groups:
        if group.name.split("/")[-1] == DRIVER:
            arriving.append(_arrival(0.0, group.name, group.count))
            continue
        size, delay_s = allocations.get(group.name, Allocation())
        for index, asked in enumerate(range(0, group.count, size)):
            at_s = BATCH_IDLE_S + boot_s + DRIVER_START_S + index * delay_s
            arriving.append(_arrival(at_s, group.name, min(size, group.count - asked)))
    return tuple(sorted(arriving, key=lambda arrival: arrival.at_s))


def requested(group: PodGroup) -> tuple[int, int]:
    """The requests of one pod of a job: millicores and MiB."""
    requests = group.pod.spec.containers[0].resources.requests
    return requests[CPU] * 1000 // NANO, requests[MEMORY] // NANO // MIB


def requested_storage_mib(group: PodGroup) -> int:
    """The ephemeral storage that one pod of a job requests, in MiB."""
    return group.pod.spec.containers[0].resources.requests.get(EPHEMERAL_STORAGE, 0) // NANO // MIB


def _arrival(at_s: float, group: str, count: int) -> Arrival:
    # Not validated: a delay in Spark may exceed the maximum of a scenario.
    return Arrival.model_construct(at_s=at_s, group=group, count=count)


def scenario_of(groups: Sequence[PodGroup], cluster: Cluster) -> Scenario:
    """The pods in the cluster, ready for placement; spot prices are the catalog's, or the cluster's share of the on-demand prices."""
    known = bool(cluster.catalog.spot)
    return Scenario.model_construct(
        name=cluster.name,
        node_pools=cluster.node_pools,
        daemon_sets=cluster.daemon_sets,
        pods=tuple(groups),
        spot_model="catalog" if known else "ratio",
        spot_ratio=None if known else cluster.spot_ratio,
    )


class _Seen:
    """Decisions in the form of the plan: identical nodes grouped, each with a detailed example."""

    def __init__(self, groups: Sequence[PodGroup], cluster: Cluster, scenario: Scenario) -> None:
        self._groups = groups
        self._cluster = cluster
        self._market = market_of(scenario, cluster.catalog, cluster.node_settings, cluster.zones)
        self._pools = {pool.name: pool for pool in pools(cluster.node_pools, cluster.daemon_sets, self._market)}

    def placed(self, decision: Decision) -> PlacedPods:
        alike: dict[object, list[NodeClaim]] = {}
        for claim in decision.node_claims:
            alike.setdefault((claim.node_pool, tuple(claim.pods.items()), claim.instance_types, claim.launch), []).append(claim)
        return PlacedPods(
            groups=tuple(self._group(claims[-1], len(claims)) for claims in alike.values()),
            nodes=len(decision.node_claims),
            unschedulable=decision.unschedulable,
            reasons=_reasons(decision),
        )

    def _group(self, claim: NodeClaim, count: int) -> NodeGroup:
        launch = claim.launch
        return NodeGroup(
            count=count,
            node_pool=claim.node_pool,
            pods=tuple(_on_node(group, claim.pods[group.name]) for group in self._groups if claim.pods.get(group.name)),
            capacity_type=_capacity_type(launch.capacity_type),
            allocation_strategy=launch.allocation_strategy,
            may_become=len(claim.instance_types),
            launch_types=launch.instance_types,
            example=None if claim.cheapest_type is None else self._example(claim.cheapest_type, claim.node_pool),
            error=launch.error,
            at_s=claim.at_s,
        )

    def _example(self, name: str, pool: str) -> NodeExample | None:
        instance = self._cluster.catalog.get(name)
        if instance is None:
            return None
        room = allocatable(instance, self._cluster.node_settings)
        taken = self._daemon_sets(name, pool)
        return NodeExample(
            instance_type=name,
            vcpu=instance.vcpu,
            memory_mib=instance.memory_mib,
            allocatable_cpu_millicores=room.cpu_millicores,
            allocatable_memory_mib=room.memory_mib,
            daemon_sets_cpu_millicores=taken.get(CPU, 0) * 1000 // NANO,
            daemon_sets_memory_mib=taken.get(MEMORY, 0) // NANO // MIB,
            on_demand_usd_per_h=instance.on_demand_usd_per_h,
        )

    def _daemon_sets(self, name: str, pool: str) -> Mapping[str, int]:
        """Requests of the DaemonSets on a node of this type, by resource."""
        bit = 1 << self._market.index[name]
        return next((overhead.requests for overhead in self._pools[pool].overheads if overhead.types & bit), {})


def _capacity_type(text: str) -> CapacityType:
    capacity_types: dict[str, CapacityType] = {"spot": "spot", "on-demand": "on-demand", "reserved": "reserved"}
    return capacity_types.get(text, "")


def _reasons(decision: Decision) -> dict[str, str]:
    """Group -> why it is unschedulable, all pools in one sentence."""
    by_group: dict[str, list[str]] = {}
    for reason in decision.reasons:
        by_group.setdefault(reason.group, []).append(f"{reason.pool}: {reason.why}" if reason.pool else reason.why)
    return {group: "; ".join(whys) for group, whys in by_group.items()}


def _on_node(group: PodGroup, count: int) -> PodsOnNode:
    cpu_millicores, memory_mib = requested(group)
    return PodsOnNode(group=group.name, count=count, cpu_millicores=cpu_millicores, memory_mib=memory_mib)
