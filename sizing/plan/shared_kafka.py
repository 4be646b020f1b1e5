"""The Kafka cluster that carries the loads of several jobs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sizing.cluster import Cluster
from penstock.sizing.kafka.brokers import cheapest, option_of
from penstock.sizing.kafka.brokers import cluster_violations as broker_violations
from penstock.sizing.kafka.demand import BROKER_QUOTA, KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.kafka.serverless import serverless_use
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.violation import Violation, violation_of


def shared_kafka(loads: Sequence[LoadKafka], partitions: int, cluster: Cluster) -> tuple[LoadKafka | None, list[Violation]]:
    """One cluster for all loads, and SIZ-040 or SIZ-041 if none, or the given one, does not carry them.

    A load does not define its distribution over topics, so a topic read by several jobs counts once per job, which is conservative.

    Args:
        loads: of jobs.
        partitions: of all topics, without replicas.
        cluster: the environment.

    Returns:
        None without loads, or without brokers; and the violations.
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
