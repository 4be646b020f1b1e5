"""The cluster: the part of an environment that sizing uses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost.prices import Prices
from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet

_Count = Annotated[int, Field(ge=1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Known(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PodPlace(_Known):
    """Scheduling constraints of one kind of pods.

    Args:
        node_selector: labels that the node must have.
        tolerations: tolerated taints, in Kubernetes syntax.
    """

    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, str], ...] = ()


class KafkaCluster(_Known):
    """The environment's Kafka.

    Args:
        kind: one of MSK's kinds, or ``external``, which is not part of the bill or the plan.
        broker_type: fixed broker type; None: the cheapest that carries the jobs.
        brokers: fixed number of brokers; None: as many as the jobs require.
        replication: replicas of each partition.
        retention_h: retention of the topics.
        rack_aware: whether consumers fetch from the replica in their own zone.
        tiered_storage: whether old segments move to low-cost storage; currently ignored by the plan and the bill.
    """

    kind: Literal["standard", "express", "serverless", "external"] = "standard"
    broker_type: str | None = None
    brokers: _Count | None = None
    replication: _Count = 3
    retention_h: _Amount = 24.0
    rack_aware: bool = False
    tiered_storage: bool = False


class VolumePerformance(_Known):
    """Performance of a gp3 volume.

    Args:
        iops: provisioned IOPS.
        mibps: provisioned throughput in MiB/s.
    """

    iops: Annotated[int, Field(ge=GP3_FREE_IOPS)]
    mibps: Annotated[int, Field(ge=GP3_FREE_MIBPS)]


class Quotas(_Known):
    """Service quotas of the account; None: unknown and not checked.

    Args:
        on_demand_vcpus: vCPUs of running on-demand standard instances.
        spot_vcpus: vCPUs of standard spot instances.
        msk_brokers: brokers of the account.
    """

    on_demand_vcpus: int | None = None
    spot_vcpus: int | None = None
    msk_brokers: int | None = None


class Cluster(_Known):
    """An environment, as far as sizing uses it.

    Args:
        name: name of the environment.
        region: AWS region.
        eks_version: Kubernetes version, such as ``1.35``.
        extended_support: whether that version may be past its standard support.
        control_plane_billed: whether the control plane is the environment's own; one that others share is billed to its owners.
        karpenter_version: for example ``1.14.1``.
        zones: availability zones, with a subnet each.
        nat_gateways: number of NAT gateways.
        node_settings: settings that affect the allocatable of nodes.
        root_volume: fixed performance of the nodes' gp3 root volumes; None: as the executors require.
        node_pools: Karpenter's NodePools.
        daemon_sets: DaemonSets that run on the nodes.
        driver: scheduling constraints of drivers.
        executor: scheduling constraints of executors.
        kafka: None: no Kafka.
        quotas: service quotas of the account.
        spot_ratio: spot price over on-demand price, for types without a spot price in the catalog.
        boot_s: time from a node claim to a ready node.
        catalog: instance types and their prices.
        prices: prices of everything else; None: unknown, and no bill is computed.
    """

    name: str
    region: str
    eks_version: str
    extended_support: bool = False
    control_plane_billed: bool = True
    karpenter_version: str = "1.14.1"
    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    nat_gateways: Annotated[int, Field(ge=0)] = 1
    node_settings: NodeSettings = NodeSettings()
    root_volume: VolumePerformance | None = None
    node_pools: Annotated[tuple[NodePool, ...], Field(min_length=1)]
    daemon_sets: tuple[DaemonSet, ...] = ()
    driver: PodPlace = PodPlace()
    executor: PodPlace = PodPlace()
    kafka: KafkaCluster | None = None
    quotas: Quotas = Quotas()
    spot_ratio: Annotated[float, Field(gt=0, le=2)] = 0.4
    boot_s: _Amount = 60.0
    catalog: Catalog
    prices: Prices | None = None
