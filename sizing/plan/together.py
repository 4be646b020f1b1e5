"""All jobs of an environment together: shared nodes, one Kafka, one bill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.billed import Bill
from penstock.sizing.kafka.brokers import cheapest, option_of
from penstock.sizing.kafka.brokers import cluster_violations as broker_violations
from penstock.sizing.kafka.demand import BROKER_QUOTA, KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.kafka.partitions import most_partitions
from penstock.sizing.kafka.serverless import serverless_use
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.plan.cluster_feasibility import broker_quota_violations, cluster_violations
from penstock.sizing.plan.cluster_plan import bill_of
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nearest_fit import Wanted
from penstock.sizing.plan.nodes import allocation_of, plan_nodes
from penstock.sizing.plan.root_volume import planned_root_volume, root_volume_violations
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.violation import Violation, violation_of


class Together(BaseModel):
    """The combined resources of jobs that share an environment.

    Args:
        executors: executors of all jobs.
        pods: pods of all jobs, drivers included.
        partitions: partitions of all topics that any job reads or writes, counting a shared topic once.
        nodes: nodes that run all pods.
        cost: cost of the environment with these jobs; None: the region's prices are unknown.
        kafka: combined demand of the jobs with a load on one cluster; None: no job has one.
        feasible: whether the environment carries all jobs.
        violations: the violations otherwise.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    executors: int
    pods: int
    partitions: int
    nodes: NodesPlan
    cost: Bill | None
    kafka: LoadKafka | None
    feasible: bool
    violations: tuple[Violation, ...] = ()


def plan_together(jobs: Mapping[str, Plan], cluster: Cluster) -> Together:
    """Plans jobs together.

    Args:
        jobs: name -> plan; pods arrive in this order, as far as Karpenter respects it.
        cluster: the shared cluster.
    """
    groups = [group for name, plan in jobs.items() for group in pod_groups(plan.pods, plan.spark_conf, cluster, name)]
    allocations = {f"{name}/{EXECUTOR}": allocation_of(plan.spark_conf) for name, plan in jobs.items()}
    nodes = plan_nodes(groups, cluster, allocations)
    disks = {f"{name}/{EXECUTOR}": plan.executor_disk for name, plan in jobs.items()}
    nodes = nodes.model_copy(update={"root_volume": planned_root_volume(nodes, disks, cluster)})
    given = {name: plan for name, plan in jobs.items() if plan.parallelism.source != "load"}
    slots = {f"{name}/{EXECUTOR}": plan.pods.executor.slots or 1 for name, plan in given.items()}
    faults: list[Violation] = [fault for _, fault in cluster_violations(Wanted(groups, cluster, allocations), nodes, slots)]
    faults += [fault for _, fault in root_volume_violations(nodes, disks, cluster)]
    partitions = sum(most_partitions(plan.kafka.topics for plan in jobs.values()).values())
    kafka, out_of_reach = _kafka([plan.kafka.load for plan in jobs.values() if plan.kafka.load], partitions, cluster)
    faults += [*out_of_reach, *broker_quota_violations(kafka, cluster)]
    return Together(
        executors=sum(plan.totals.executors for plan in jobs.values()),
        pods=sum(plan.totals.pods for plan in jobs.values()),
        partitions=partitions,
        nodes=nodes,
        cost=bill_of(nodes, [plan.state.checkpoint for plan in jobs.values()], [kafka] if kafka else [], cluster, partitions),
        kafka=kafka,
        feasible=not faults and all(plan.feasible for plan in jobs.values()),
        violations=tuple(faults),
    )


def _kafka(loads: Sequence[LoadKafka], partitions: int, cluster: Cluster) -> tuple[LoadKafka | None, list[Violation]]:
    """One cluster for all loads, and SIZ-040 or SIZ-041 if none, or the given one, does not carry them.

    A load does not define its distribution over topics, so a topic read by several jobs counts once per job, which is conservative.
    """
    if not loads or cluster.kafka is None:
        return None, []
    average_in_mibps = sum(load.average_in_mibps for load in loads)
    demand = KafkaDemand(
        peak_in_mibps=sum(load.peak_in_mibps for load in loads),
        peak_out_mibps=sum(load.peak_out_mibps for load in loads),
        average_in_mibps=average_in_mibps,
        partitions=partitions,
        replication=max(load.replication for load in loads),
        # The storage is then the total of the jobs' topics.
        retention_h=_retention_h(loads, average_in_mibps),
        zones=2 if len(cluster.zones) == 2 else 3,
        broker_quota=max(3, min(BROKER_QUOTA, cluster.quotas.msk_brokers or BROKER_QUOTA)),
    )
    bare = LoadKafka(
        peak_in_mibps=demand.peak_in_mibps,
        peak_out_mibps=demand.peak_out_mibps,
        average_in_mibps=average_in_mibps,
        partitions=partitions,
        replication=demand.replication,
        retention_h=demand.retention_h,
    )
    try:
        return _served(bare, demand, cluster)
    except KafkaOutOfReach as fault:
        return bare, [violation_of(fault)]


def _retention_h(loads: Sequence[LoadKafka], average_in_mibps: float) -> float:
    """The average retention of all topics, weighted by ingress."""
    if not average_in_mibps:
        return max(load.retention_h for load in loads)
    return sum(load.average_in_mibps * load.retention_h for load in loads) / average_in_mibps


def _served(bare: LoadKafka, demand: KafkaDemand, cluster: Cluster) -> tuple[LoadKafka, list[Violation]]:
    kafka = cluster.kafka
    if kafka is None or kafka.kind == "external":
        return bare, []
    if kafka.kind == "serverless":
        return bare.model_copy(update={"serverless": serverless_use(demand)}), []
    option = cheapest(demand, kafka.kind) if kafka.broker_type is None else option_of(demand, kafka.broker_type)
    faults = [] if kafka.brokers is None else broker_violations(demand, option.broker_type, kafka.brokers)
    return bare.model_copy(update={"cluster": option}), list(faults)
