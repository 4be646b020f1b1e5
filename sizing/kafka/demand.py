"""The demand of a load on a Kafka cluster, and its storage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# Source: AWS's MSK sizing script (agent-toolkit-for-aws d6ad2e4): the share of a broker's capacity to plan with, to tolerate the loss of a
# zone.
STANDARD_UTILISATION = 0.5
EXPRESS_UTILISATION = 0.75
# Source: the same; EBS volumes are twice as large as the data because they can grow but not shrink.
STORAGE_HEADROOM = 2
# Source: Amazon MSK Developer Guide, "Amazon MSK quota": 60 brokers in a KRaft cluster, 30 in a ZooKeeper one; can be raised on request.
BROKER_QUOTA = 60
# Source: the same, maximum storage of one standard broker.
MAX_STORAGE_GIB_PER_BROKER = 16_384
# Express keeps three replicas regardless of a topic's setting. Source: the same, "MSK Express brokers".
EXPRESS_REPLICATION = 3

# A byte in a quarter of an hour: anything less is division noise.
_LEAST_MIBPS = 1e-9


def _nothing_below_the_least(rate_mibps: float) -> float:
    return rate_mibps if rate_mibps >= _LEAST_MIBPS else 0.0


_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_nothing_below_the_least)]


class KafkaDemand(BaseModel):
    """The combined demand of all topics of a cluster; rates in MiB/s.

    Args:
        peak_in_mibps: peak ingress from producers, before replication.
        peak_out_mibps: peak egress to consumers, all consumer groups together.
        average_in_mibps: average ingress over a day, which determines the storage. None: same as the peak.
        partitions: partitions of all topics, without replicas.
        replication: replicas of a partition; Express always keeps three.
        retention_h: retention of records.
        primary_retention_h: retention on the brokers' volumes; a longer `retention_h` uses tiered storage. None: no tiered storage.
        zones: the number of brokers is a multiple of these, 2 or 3; Express requires three.
        utilisation: share of a broker's ingress to plan with; None: 0.5, Express 0.75.
        broker_quota: maximum number of brokers of one cluster.
        use_max_partitions: plan with the brokers' hard limit of partitions instead of the recommended number.
        provisioned_mibps: provisioned storage throughput of brokers that support it; None: the maximum of the type's volumes.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    peak_in_mibps: _Rate
    peak_out_mibps: _Rate = 0.0
    average_in_mibps: _Rate | None = None
    partitions: Annotated[int, Field(ge=0)] = 0
    replication: Annotated[int, Field(ge=1, le=15)] = 3
    retention_h: Annotated[float, Field(ge=0, le=876_000, allow_inf_nan=False)] = 24.0
    primary_retention_h: Annotated[float, Field(ge=0, le=876_000, allow_inf_nan=False)] | None = None
    zones: Literal[2, 3] = 3
    utilisation: Annotated[float, Field(gt=0, le=1)] | None = None
    broker_quota: Annotated[int, Field(ge=2, le=10_000)] = BROKER_QUOTA
    use_max_partitions: bool = False
    provisioned_mibps: Annotated[float, Field(ge=250, le=1000)] | None = None

    @property
    def tiered(self) -> bool:
        """Whether records move to tiered storage."""
        return self.primary_retention_h is not None and self.primary_retention_h < self.retention_h

    @property
    def fan_out(self) -> float:
        """How often a byte is read: egress over ingress."""
        return self.peak_out_mibps / self.peak_in_mibps if self.peak_in_mibps else 0.0

    def partitions_with_replicas(self, kind: Literal["standard", "express"]) -> int:
        """Partitions as brokers count them, replicas included."""
        return self.partitions * (EXPRESS_REPLICATION if kind == "express" else self.replication)


class KafkaStorage(BaseModel):
    """Storage of a cluster in GiB.

    Args:
        ebs_gib: volumes of standard brokers: average rate * retention * replication * 2.
        express_gib: size billed by Express: the retained data once.
        tiered_gib: tiered storage: the data once, for the whole retention.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    ebs_gib: float = 0.0
    express_gib: float = 0.0
    tiered_gib: float = 0.0


def storage(demand: KafkaDemand, kind: Literal["standard", "express"]) -> KafkaStorage:
    """The storage required by a demand.

    Source: AWS's MSK sizing script for standard brokers (rate * retention * replication * 2). That Express bills the data once is from
    MSK's price page (secondary).
    """
    rate_mibps = demand.peak_in_mibps if demand.average_in_mibps is None else demand.average_in_mibps
    gib_per_h = rate_mibps * 3600 / 1024
    if kind == "express":
        return KafkaStorage(express_gib=gib_per_h * demand.retention_h)
    primary_h = demand.primary_retention_h if demand.tiered and demand.primary_retention_h is not None else demand.retention_h
    return KafkaStorage(
        ebs_gib=gib_per_h * primary_h * demand.replication * STORAGE_HEADROOM,
        tiered_gib=gib_per_h * demand.retention_h if demand.tiered else 0.0,
    )
