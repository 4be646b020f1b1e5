"""What a bill is made of: amounts of AWS's services, before any price."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.cost.month import gib_per_month

_Name = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

# Source: Amazon EBS User Guide, "General Purpose SSD volumes": what every gp3 volume has at no extra charge.
GP3_FREE_IOPS = 3_000
GP3_FREE_MIBPS = 125


class _Usage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RootVolume(_Usage):
    """The gp3 volume that a node starts from.

    Args:
        gib: size; Karpenter's default of AL2023 is 20 GiB.
        iops: provisioned, 3,000 or more.
        mibps: provisioned throughput in MiB/s, 125 or more.
    """

    gib: _Count = 20
    iops: Annotated[int, Field(ge=GP3_FREE_IOPS)] = GP3_FREE_IOPS
    mibps: Annotated[int, Field(ge=GP3_FREE_MIBPS)] = GP3_FREE_MIBPS


class NodeUsage(_Usage):
    """Nodes that run all the time and may become any of the same instance types.

    Args:
        label: what they are for: ``executors``, ``driver``.
        instance_types: the types that Karpenter would launch; which of them a node becomes is not known before.
        capacity_type: ``spot`` or ``on-demand``.
        count: of nodes.
        zones: where they may run; empty: in any zone of the region.
        or_on_demand: for spot, whether their NodePool allows on-demand too: Karpenter then takes no spot offering that is dearer than the
            cheapest on-demand one (unless a requirement has minValues).
        root_volume: of each node.
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
        label: the cluster's name.
        support: of its Kubernetes version.
        count: of clusters.
    """

    label: _Name
    support: Literal["standard", "extended"] = "standard"
    count: _Count = 1


class StandardKafka(_Usage):
    """An MSK cluster of standard brokers.

    Args:
        broker_type: ``kafka.m7g.large``.
        brokers: how many.
        storage_gib: volumes of all the brokers together.
        tiered_gib: in tiered storage.
        throughput_mibps: storage throughput in MiB/s that is provisioned and charged, of all the brokers together.
        label: the cluster's name.
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
        broker_type: ``express.m7g.large``.
        brokers: how many.
        storage_gib: what the cluster keeps, as AWS counts it.
        in_gib_per_month: written by producers.
        label: the cluster's name.
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
        partitions: of all the topics, without replicas.
        storage_gib: what the cluster keeps, as AWS counts it.
        in_gib_per_month: written by producers.
        out_gib_per_month: read by consumers.
        label: the cluster's name.
    """

    kind: Literal["serverless"] = "serverless"
    partitions: _Count
    storage_gib: _Amount
    in_gib_per_month: _Amount
    out_gib_per_month: _Amount
    label: _Name = "kafka"


KafkaUsage = Annotated[StandardKafka | ExpressKafka | ServerlessKafka, Field(discriminator="kind")]


class BucketUsage(_Usage):
    """What lies in S3 and is asked of it.

    Args:
        label: what for: ``checkpoints``, ``output``.
        stored_gib: on average, in S3 Standard.
        put_requests_per_month: PUT, COPY, POST and LIST.
        get_requests_per_month: GET and the others.
    """

    label: _Name
    stored_gib: _Amount = 0.0
    put_requests_per_month: _Amount = 0.0
    get_requests_per_month: _Amount = 0.0


class NatUsage(_Usage):
    """NAT gateways.

    Args:
        gateways: how many run all the time.
        gib_per_month: through them, both directions together.
    """

    gateways: _Count
    gib_per_month: _Amount = 0.0


class ZoneTraffic(_Usage):
    """Traffic from one zone to another.

    Args:
        label: what it is: ``reads from Kafka``, ``shuffle``.
        gib_per_month: what crosses, each GiB counted once; AWS charges it as it leaves and as it arrives.
    """

    label: _Name
    gib_per_month: _Amount


class Usage(_Usage):
    """All that is used, in one region.

    Args:
        nodes: machines by what they are for.
        clusters: EKS.
        kafka: MSK.
        buckets: S3.
        nat: NAT gateways; None: none.
        traffic: between zones.
    """

    nodes: tuple[NodeUsage, ...] = ()
    clusters: tuple[ClusterUsage, ...] = ()
    kafka: tuple[KafkaUsage, ...] = ()
    buckets: tuple[BucketUsage, ...] = ()
    nat: NatUsage | None = None
    traffic: tuple[ZoneTraffic, ...] = ()


def crossing_share(zones: int, *, rack_aware: bool = False) -> float:
    """The share of the traffic between clients and brokers that goes to another zone, both spread evenly over the zones.

    Args:
        zones: 1 or more, the same for the clients and the brokers.
        rack_aware: whether consumers fetch from the replica of their own zone (``client.rack``, with brokers that choose the replica by
            rack and a replica in each zone). It holds for reads only: a write goes to the partition's leader.

    Returns:
        0 to 1.
    """
    if zones < 1:
        raise ValueError(f"zones = {zones}: a cluster has a zone")
    return 0.0 if rack_aware else (zones - 1) / zones


def crossing_gib_per_month(mib_per_s: float, zones: int, *, rack_aware: bool = False) -> float:
    """What steady traffic between clients and brokers carries to another zone.

    Args:
        mib_per_s: of all the clients together, 0 or more.
        zones: as for `crossing_share`.
        rack_aware: as for `crossing_share`.

    Returns:
        GiB a month, each GiB counted once.
    """
    return gib_per_month(mib_per_s) * crossing_share(zones, rack_aware=rack_aware)
