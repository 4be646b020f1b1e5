"""The AWS usage of a plan: from pods, nodes, state and load to the quantities of a bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from penstock.sizing.cluster import Cluster, KafkaCluster
from penstock.sizing.cost.month import gib_per_month, per_month
from penstock.sizing.cost.usage import (
    BucketUsage,
    ClusterUsage,
    ExpressKafka,
    KafkaUsage,
    NatUsage,
    NodeUsage,
    RootVolume,
    ServerlessKafka,
    StandardKafka,
    Usage,
    ZoneTraffic,
    crossing_gib_per_month,
)
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan, PlacedPods
from penstock.sizing.state.checkpoint import CheckpointTraffic

_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_LABELS = {("driver",): "driver", ("executor",): "executors", ("driver", "executor"): "driver and executors"}


def usage_of(
    nodes: NodesPlan, checkpoints: Sequence[CheckpointTraffic], kafka: Sequence[LoadKafka], cluster: Cluster, topics: int
) -> Usage:
    """The AWS usage of jobs that have an environment to themselves.

    Args:
        nodes: those of a first start run all the time.
        checkpoints: checkpoint traffic of each job.
        kafka: Kafka of each job with a load.
        cluster: the environment.
        topics: partitions of all topics, without replicas.
    """
    return Usage(
        nodes=tuple(_nodes(nodes.staged.groups, cluster, _root_volume(nodes, cluster))),
        clusters=_control_planes(cluster),
        kafka=tuple(_kafka(kafka, cluster.kafka, topics)),
        buckets=(_checkpoints(checkpoints),),
        nat=NatUsage(gateways=cluster.nat_gateways) if cluster.nat_gateways else None,
        traffic=tuple(_traffic(kafka, cluster)),
    )


def _control_planes(cluster: Cluster) -> tuple[ClusterUsage, ...]:
    support: Literal["standard", "extended"] = "extended" if cluster.extended_support else "standard"
    return (ClusterUsage(label="cluster", support=support),) if cluster.control_plane_billed else ()


def assumptions_of(nodes: PlacedPods, kafka: Sequence[LoadKafka], cluster: Cluster, *, bounded: bool = False) -> tuple[str, ...]:
    """What the amounts exclude, as sentences.

    Args:
        nodes: nodes that run all the time.
        kafka: see `usage_of`.
        cluster: the environment.
        bounded: whether any job is a bounded run.
    """
    once = "the control plane and NAT gateways are" if cluster.control_plane_billed else "NAT gateways are"
    assumptions = [
        f"nodes as after a first start; {once} charged once, regardless of the number of jobs",
        "not included: the jobs' writes to S3 and Kafka, cross-zone shuffles, NAT gateway traffic, logs",
    ]
    if not cluster.control_plane_billed:
        assumptions.append("not included: the control plane, which is that of an existing cluster, and what else runs in it")
    if bounded:
        assumptions.append("a bounded run: its nodes are counted as running all the time, but are charged only while it runs")
    waiting = sum(nodes.unschedulable.values())
    if waiting:
        assumptions.append(f"{waiting} {'pod that finds' if waiting == 1 else 'pods that find'} no node: not included in the cost")
    return (*assumptions, *_of_kafka(kafka, cluster.kafka))


def _of_kafka(jobs: Sequence[LoadKafka], brokers: KafkaCluster | None) -> Iterator[str]:
    if brokers is None:
        return
    if brokers.kind == "external":
        yield "Kafka is outside of the environment and not included in the cost"
    elif brokers.kind == "serverless":
        if not jobs:
            yield "Kafka without storage and traffic: no load is specified"
    elif not jobs and not (brokers.broker_type and brokers.brokers):
        yield "Kafka brokers are not included in the cost: no load is specified, and the environment does not specify them"
    elif not jobs:
        yield "Kafka without storage and traffic: no load is specified"
    elif not any(job.cluster for job in jobs):
        yield "Kafka brokers are not included in the cost: no cluster of that kind carries the load"


def _root_volume(nodes: NodesPlan, cluster: Cluster) -> RootVolume:
    volume = nodes.root_volume
    return RootVolume(gib=cluster.node_settings.root_volume_gib, iops=volume.iops, mibps=volume.mibps)


def _nodes(groups: Iterable[NodeGroup], cluster: Cluster, root_volume: RootVolume) -> Iterator[NodeUsage]:
    both = {pool.name for pool in cluster.node_pools if _allows_both(pool)}
    alike: Counter[tuple[str, str, tuple[str, ...], bool]] = Counter()
    for group in groups:
        if group.launch_types:
            alike[(_label(group), group.capacity_type, group.launch_types, group.node_pool in both)] += group.count
    seen: Counter[str] = Counter()
    for (label, capacity_type, types, or_on_demand), count in alike.items():
        seen[label] += 1
        spot = capacity_type == "spot"
        yield NodeUsage(
            # Labels identify the lines of a bill; a duplicate gets a number.
            label=label if seen[label] == 1 else f"{label} ({seen[label]})",
            instance_types=types,
            capacity_type="spot" if spot else "on-demand",
            count=count,
            zones=cluster.zones,
            or_on_demand=spot and or_on_demand,
            root_volume=root_volume,
        )


def _label(group: NodeGroup) -> str:
    kinds = tuple(sorted({pods.group.split("/")[-1] for pods in group.pods}))
    return _LABELS.get(kinds, ", ".join(kinds))


def _allows_both(pool: NodePool) -> bool:
    """Whether a pool allows on-demand as well as spot."""
    asked = [one for one in pool.spec.template.spec.requirements if one.key == _CAPACITY_TYPE]
    return all(one.allowed.has("on-demand") and one.allowed.has("spot") for one in asked)


def _checkpoints(traffic: Iterable[CheckpointTraffic]) -> BucketUsage:
    each = list(traffic)
    return BucketUsage(
        label="checkpoints",
        stored_gib=sum(one.storage_bytes for one in each) / 1024**3,
        put_requests_per_month=per_month(sum(one.requests_per_day for one in each)),
    )


def _kafka(jobs: Sequence[LoadKafka], brokers: KafkaCluster | None, topics: int) -> Iterator[KafkaUsage]:
    """The brokers: one cluster for all jobs, as their loads require or as the environment fixes it."""
    if brokers is None or brokers.kind == "external":
        return
    in_gib = gib_per_month(sum(job.average_in_mibps for job in jobs))
    out_gib = gib_per_month(sum(job.average_in_mibps * job.peak_out_mibps / job.peak_in_mibps for job in jobs if job.peak_in_mibps))
    if brokers.kind == "serverless":
        kept_gib = sum(job.serverless.storage_gib for job in jobs if job.serverless)
        partitions = sum(job.serverless.partitions for job in jobs if job.serverless) or topics
        if not partitions:
            return
        yield ServerlessKafka(partitions=partitions, storage_gib=kept_gib, in_gib_per_month=in_gib, out_gib_per_month=out_gib)
        return
    planned = next((job.cluster for job in jobs if job.cluster), None)
    name, count = brokers.broker_type, brokers.brokers
    if planned is not None:
        name, count = name or planned.broker_type, count or planned.brokers
    if name is None or count is None:
        return
    stored = [job.cluster.storage for job in jobs if job.cluster]
    if brokers.kind == "express":
        gib = sum(one.express_gib for one in stored)
        yield ExpressKafka(broker_type=name, brokers=count, storage_gib=gib, in_gib_per_month=in_gib)
        return
    yield StandardKafka(
        broker_type=name,
        brokers=count,
        storage_gib=sum(one.ebs_gib for one in stored),
        tiered_gib=sum(one.tiered_gib for one in stored),
        throughput_mibps=count * (planned.provisioned_mibps if planned is not None else 0),
    )


def _traffic(jobs: Sequence[LoadKafka], cluster: Cluster) -> Iterator[ZoneTraffic]:
    """Traffic of executors that read from brokers in other zones; the zones of external brokers are unknown."""
    rate_mibps = sum(job.average_in_mibps for job in jobs)
    if rate_mibps and cluster.kafka is not None and cluster.kafka.kind != "external":
        gib = crossing_gib_per_month(rate_mibps, len(cluster.zones), rack_aware=cluster.kafka.rack_aware)
        yield ZoneTraffic(label="reads from Kafka", gib_per_month=gib)
