"""What a load asks of a Kafka cluster, and the storage that it fills."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# Source: AWS's MSK sizing script (agent-toolkit-for-aws d6ad2e4): the share of what a broker carries to plan with, so that a zone may fail.
STANDARD_UTILISATION = 0.5
EXPRESS_UTILISATION = 0.75
# Source: the same; EBS volumes are made twice as large as the data, for they can grow but not shrink.
STORAGE_HEADROOM = 2
# Source: Amazon MSK Developer Guide, "Amazon MSK quota": 60 brokers in a KRaft cluster, 30 in a ZooKeeper one; it can be raised on request.
BROKER_QUOTA = 60
# Source: the same, the most storage of one standard broker.
MAX_STORAGE_GIB_PER_BROKER = 16_384
# Express keeps three copies, whatever a topic asks for. Source: the same, "MSK Express brokers".
EXPRESS_REPLICATION = 3

# A byte in a quarter of an hour: less is nothing, and what is left of it after a division is noise.
_LEAST_MIBPS = 1e-9


def _nothing_below_the_least(rate_mibps: float) -> float:
    return rate_mibps if rate_mibps >= _LEAST_MIBPS else 0.0


_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_nothing_below_the_least)]


class KafkaDemand(BaseModel):
    """What all the topics of a cluster ask for together; rates in MiB/s.

    Args:
        peak_in_mibps: from producers at the peak, before replication.
        peak_out_mibps: to consumers at the peak, all consumer groups together.
        average_in_mibps: from producers over a day; it fills the storage. None: as the peak.
        partitions: of all topics, replicas not counted.
        replication: copies of a partition; Express always keeps three.
        retention_h: how long records stay.
        primary_retention_h: how long they stay on the brokers' volumes; a longer `retention_h` is tiered storage. None: no tiered storage.
        zones: the brokers are a multiple of these, 2 or 3; Express takes three.
        utilisation: share of a broker's ingress to plan with; None: 0.5, Express 0.75.
        broker_quota: brokers of one cluster at most.
        use_max_partitions: plan with the brokers' hard limit of partitions instead of the recommended number.
        provisioned_mibps: storage throughput to provision at brokers that can have it; None: as much as the type's volumes take.
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
        """Whether records move on to tiered storage."""
        return self.primary_retention_h is not None and self.primary_retention_h < self.retention_h

    @property
    def fan_out(self) -> float:
        """How often a byte is read: egress over ingress."""
        return self.peak_out_mibps / self.peak_in_mibps if self.peak_in_mibps else 0.0

    def partitions_with_replicas(self, kind: Literal["standard", "express"]) -> int:
        """Partitions as brokers count them."""
        return self.partitions * (EXPRESS_REPLICATION if kind == "express" else self.replication)


class KafkaStorage(BaseModel):
    """Storage of a cluster in GiB.

    Args:
        ebs_gib: volumes of standard brokers: average rate * retention * replication * 2.
        express_gib: what Express bills: the data once, as retained.
        tiered_gib: in tiered storage: the data once, for the whole retention.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    ebs_gib: float = 0.0
    express_gib: float = 0.0
    tiered_gib: float = 0.0


def storage(demand: KafkaDemand, kind: Literal["standard", "express"]) -> KafkaStorage:
    """The storage that a demand fills.

    Source: AWS's MSK sizing script for standard brokers (rate * retention * replication * 2). That Express bills the data once is MSK's
    price page (secondary).
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
