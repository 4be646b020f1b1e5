"""The input of a bill: quantities of AWS services, without prices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.cost.month import gib_per_month

_Name = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

# Source: Amazon EBS User Guide, "General Purpose SSD volumes": included with every gp3 volume at no extra charge.
GP3_FREE_IOPS = 3_000
GP3_FREE_MIBPS = 125


class _Usage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RootVolume(_Usage):
    """The gp3 root volume of a node.

    Args:
        gib: size; Karpenter's default for AL2023 is 20 GiB.
        iops: provisioned IOPS, 3,000 or more.
        mibps: provisioned throughput in MiB/s, 125 or more.
    """

    gib: _Count = 20
    iops: Annotated[int, Field(ge=GP3_FREE_IOPS)] = GP3_FREE_IOPS
    mibps: Annotated[int, Field(ge=GP3_FREE_MIBPS)] = GP3_FREE_MIBPS


class NodeUsage(_Usage):
    """Nodes that run all the time and share a set of eligible instance types.

    Args:
        label: purpose: ``executors``, ``driver``.
        instance_types: types that Karpenter may launch; the one that it picks is not known in advance.
        capacity_type: ``spot`` or ``on-demand``.
        count: number of nodes.
        zones: allowed zones; empty: any zone of the region.
        or_on_demand: for spot, whether their NodePool also allows on-demand: Karpenter then skips spot offerings above the cheapest
            on-demand price (unless a requirement has minValues).
        root_volume: root volume of each node.
    """

    label: _Name
    instance_types: Annotated[tuple[str, ...], Field(min_length=1)]
    capacity_type: Literal["on-demand", "spot"]
    count: _Count
    zones: tuple[str, ...] = ()
    or_on_demand: bool = False
    root_volume: RootVolume = RootVolume()


class ClusterUsage(_Usage):
    """EKS control planes.

    Args:
        label: cluster name.
        support: support phase of the Kubernetes version.
        count: number of clusters.
    """

    label: _Name
    support: Literal["standard", "extended"] = "standard"
    count: _Count = 1


class StandardKafka(_Usage):
    """An MSK cluster of standard brokers.

    Args:
        broker_type: for example ``kafka.m7g.large``.
        brokers: number of brokers.
        storage_gib: total size of the brokers' volumes.
        tiered_gib: data in tiered storage.
        throughput_mibps: total provisioned, billed storage throughput of the brokers in MiB/s.
        label: cluster name.
    """

    kind: Literal["standard"] = "standard"
    broker_type: _Name
    brokers: _Count
    storage_gib: _Amount
    tiered_gib: _Amount = 0.0
    throughput_mibps: _Amount = 0.0
    label: _Name = "kafka"


class ExpressKafka(_Usage):
    """An MSK cluster of Express brokers.

    Args:
        broker_type: for example ``express.m7g.large``.
        brokers: number of brokers.
        storage_gib: stored data, as AWS counts it.
        in_gib_per_month: data written by producers.
        label: cluster name.
    """

    kind: Literal["express"] = "express"
    broker_type: _Name
    brokers: _Count
    storage_gib: _Amount
    in_gib_per_month: _Amount
    label: _Name = "kafka"


class ServerlessKafka(_Usage):
    """A serverless MSK cluster.

    Args:
        partitions: partitions of all topics, without replicas.
        storage_gib: stored data, as AWS counts it.
        in_gib_per_month: data written by producers.
        out_gib_per_month: data read by consumers.
        label: cluster name.
    """

    kind: Literal["serverless"] = "serverless"
    partitions: _Count
    storage_gib: _Amount
    in_gib_per_month: _Amount
    out_gib_per_month: _Amount
    label: _Name = "kafka"


KafkaUsage = Annotated[StandardKafka | ExpressKafka | ServerlessKafka, Field(discriminator="kind")]


class BucketUsage(_Usage):
    """Data stored in S3 and requests to it.

    Args:
        label: purpose: ``checkpoints``, ``output``.
        stored_gib: average size, in S3 Standard.
        put_requests_per_month: PUT, COPY, POST and LIST requests.
        get_requests_per_month: GET and other requests.
    """

    label: _Name
    stored_gib: _Amount = 0.0
    put_requests_per_month: _Amount = 0.0
    get_requests_per_month: _Amount = 0.0


class NatUsage(_Usage):
    """NAT gateways.

    Args:
        gateways: number of gateways that run all the time.
        gib_per_month: traffic through them, both directions together.
    """

    gateways: _Count
    gib_per_month: _Amount = 0.0


class ZoneTraffic(_Usage):
    """Traffic from one zone to another.

    Args:
        label: purpose: ``reads from Kafka``, ``shuffle``.
        gib_per_month: cross-zone traffic, each GiB counted once; AWS charges it for egress and for ingress.
    """

    label: _Name
    gib_per_month: _Amount


class Usage(_Usage):
    """All usage in one region.

    Args:
        nodes: nodes by purpose.
        clusters: EKS clusters.
        kafka: MSK clusters.
        buckets: S3 usage.
        nat: NAT gateways; None: none.
        traffic: cross-zone traffic.
    """

    nodes: tuple[NodeUsage, ...] = ()
    clusters: tuple[ClusterUsage, ...] = ()
    kafka: tuple[KafkaUsage, ...] = ()
    buckets: tuple[BucketUsage, ...] = ()
    nat: NatUsage | None = None
    traffic: tuple[ZoneTraffic, ...] = ()


def crossing_share(zones: int, *, rack_aware: bool = False) -> float:
    """The share of the traffic between clients and brokers that crosses zones, with both spread evenly over the zones.

    Args:
        zones: 1 or more, the same for the clients and the brokers.
        rack_aware: whether consumers fetch from the replica in their zone (``client.rack``, with brokers that select replicas by rack,
            and a replica in each zone). Applies to reads only: writes go to the partition's leader.

    Returns:
        0 to 1.
    """
    if zones < 1:
        raise ValueError(f"zones = {zones}: a cluster has a zone")
    return 0.0 if rack_aware else (zones - 1) / zones


def crossing_gib_per_month(mib_per_s: float, zones: int, *, rack_aware: bool = False) -> float:
    """Cross-zone traffic of a steady load between clients and brokers.

    Args:
        mib_per_s: total rate of all clients, 0 or more.
        zones: see `crossing_share`.
        rack_aware: see `crossing_share`.

    Returns:
        GiB per month, each GiB counted once.
    """
    return gib_per_month(mib_per_s) * crossing_share(zones, rack_aware=rack_aware)
