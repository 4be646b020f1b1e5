"""MSK Serverless: no brokers to choose, but limits, and a price by what flows.

The limits are AWS's documented quotas (secondary: the Amazon MSK Developer Guide, "MSK Serverless quota", as others quote it, 2026-11), and
therefore inputs.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.kafka.demand import KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach

# AWS writes MBps; taken as decimal megabytes, which is the smaller reading.
_MIB_PER_MB = 1_000_000 / (1024 * 1024)
_GIB_PER_GB = 1_000_000_000 / 1024**3

_Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ServerlessLimits(BaseModel):
    """What one serverless cluster carries (secondary; see the module).

    Args:
        ingress_mb_per_s: of the cluster, 10^6 bytes a second.
        egress_mb_per_s: of the cluster.
        partitions: of the cluster, replicas not counted, topics without compaction.
        partition_ingress_mb_per_s: of one partition.
        partition_egress_mb_per_s: of one partition.
        partition_gb: of one partition's records; None: no limit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    ingress_mb_per_s: _Limit = 200.0
    egress_mb_per_s: _Limit = 400.0
    partitions: Annotated[int, Field(gt=0)] = 2400
    partition_ingress_mb_per_s: _Limit = 5.0
    partition_egress_mb_per_s: _Limit = 10.0
    partition_gb: _Limit | None = None


class ServerlessUse(BaseModel):
    """What a load uses of a serverless cluster; its price follows from these.

    Args:
        partitions: at least as many as the limits of one partition ask for.
        average_in_mibps: from producers.
        peak_out_mibps: to consumers at the peak.
        storage_gib: the data once, for the retention.
        binding: what the number of partitions follows from: ``asked``, ``ingress``, ``egress`` or ``storage`` of one partition.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    partitions: int
    average_in_mibps: float
    peak_out_mibps: float
    storage_gib: float
    binding: str


def serverless_use(demand: KafkaDemand, limits: ServerlessLimits | None = None) -> ServerlessUse:
    """What a load uses.

    Raises:
        KafkaOutOfReach: SIZ-040, with the limit that binds.
    """
    limits = limits or ServerlessLimits()
    average_mibps = demand.peak_in_mibps if demand.average_in_mibps is None else demand.average_in_mibps
    stored_gib = average_mibps * 3600 / 1024 * demand.retention_h
    by = {
        "asked": demand.partitions,
        "ingress": _at_least(demand.peak_in_mibps, limits.partition_ingress_mb_per_s * _MIB_PER_MB),
        "egress": _at_least(demand.peak_out_mibps, limits.partition_egress_mb_per_s * _MIB_PER_MB),
        "storage": _at_least(stored_gib, limits.partition_gb * _GIB_PER_GB) if limits.partition_gb else 0,
    }
    binding = max(by, key=lambda constraint: by[constraint])
    _refuse(demand, limits, by[binding])
    return ServerlessUse(
        partitions=max(1, by[binding]),
        average_in_mibps=average_mibps,
        peak_out_mibps=demand.peak_out_mibps,
        storage_gib=stored_gib,
        binding=binding,
    )


def _refuse(demand: KafkaDemand, limits: ServerlessLimits, partitions: int) -> None:
    rates = (
        ("ingress", demand.peak_in_mibps, limits.ingress_mb_per_s * _MIB_PER_MB, "MiB/s in"),
        ("egress", demand.peak_out_mibps, limits.egress_mb_per_s * _MIB_PER_MB, "MiB/s out"),
        ("partitions", float(partitions), float(limits.partitions), "partitions"),
    )
    over = [entry for entry in rates if entry[1] > entry[2]]
    if over:
        binding, asked, most, unit = max(over, key=lambda entry: entry[1] / entry[2])
        nearest = f"at most {math.floor(most * 10) / 10:,g} {unit}"
        need = f"{nearest}, the limit of a serverless cluster for {binding}"
        fix = f"{nearest}, or a provisioned cluster: kind: express or standard"
        raise KafkaOutOfReach(path="kafka", given=f"{asked:,.1f} {unit}", need=need, fix=fix)


def _at_least(asked: float, most_of_one: float) -> int:
    return math.ceil(asked / most_of_one - 1e-9)
