"""The cluster: all that sizing knows of an environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost.prices import Prices
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet

_Count = Annotated[int, Field(ge=1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Known(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PodPlace(_Known):
    """Where the pods of one kind go.

    Args:
        node_selector: labels that their node must have.
        tolerations: of taints, in Kubernetes' own words.
    """

    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, str], ...] = ()


class KafkaCluster(_Known):
    """The environment's Kafka.

    Args:
        kind: MSK's kinds; ``external`` is none of the bill's and none of the plan's.
        broker_type: fixed; None: the cheapest that carries the jobs.
        brokers: fixed; None: as many as the jobs take.
        replication: copies of each partition.
        retention_h: of the topics.
        rack_aware: whether consumers read from the copy in their own zone.
        tiered_storage: whether old segments lie in the low-cost tier; without effect on the plan and the bill so far.
    """

    kind: Literal["standard", "express", "serverless", "external"] = "standard"
    broker_type: str | None = None
    brokers: _Count | None = None
    replication: _Count = 3
    retention_h: _Amount = 24.0
    rack_aware: bool = False
    tiered_storage: bool = False


class Quotas(_Known):
    """Service quotas of the account; None: not known, and not held against the plan.

    Args:
        on_demand_vcpus: of running on-demand standard instances.
        spot_vcpus: of standard spot instances.
        msk_brokers: of the account.
    """

    on_demand_vcpus: int | None = None
    spot_vcpus: int | None = None
    msk_brokers: int | None = None


class Cluster(_Known):
    """An environment as sizing sees it.

    Args:
        name: of the environment.
        region: AWS region.
        eks_version: of Kubernetes, as ``1.35``.
        extended_support: whether that version may be past its standard support.
        karpenter_version: as ``1.14.1``.
        zones: with a subnet each.
        nat_gateways: how many.
        node_settings: what bears on the allocatable of nodes.
        node_pools: Karpenter's.
        daemon_sets: what runs on the nodes.
        driver: where drivers go.
        executor: where executors go.
        kafka: None: there is none.
        quotas: of the account.
        spot_ratio: spot price over on-demand price, where the catalog knows no spot price.
        boot_s: from a node claim to a node that takes pods.
        catalog: instance types and their prices.
        prices: of everything else; None: unknown, and no bill is made.
    """

    name: str
    region: str
    eks_version: str
    extended_support: bool = False
    karpenter_version: str = "1.14.1"
    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    nat_gateways: Annotated[int, Field(ge=0)] = 1
    node_settings: NodeSettings = NodeSettings()
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
