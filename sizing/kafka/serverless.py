"""MSK Serverless: no broker choice, but limits, and a price by usage.

The limits are AWS's documented quotas (secondary: the Amazon MSK Developer Guide, "MSK Serverless quota", as quoted elsewhere, 2026-11),
and are therefore inputs.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.kafka.demand import KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach

# AWS writes MBps; interpreted as decimal megabytes, the lower value.
_MIB_PER_MB = 1_000_000 / (1024 * 1024)
_GIB_PER_GB = 1_000_000_000 / 1024**3

_Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ServerlessLimits(BaseModel):
    """Limits of one serverless cluster (secondary; see the module).

    Args:
        ingress_mb_per_s: ingress of the cluster, 10^6 bytes per second.
        egress_mb_per_s: egress of the cluster.
        partitions: partitions of the cluster, without replicas, topics without compaction.
        partition_ingress_mb_per_s: ingress of one partition.
        partition_egress_mb_per_s: egress of one partition.
        partition_gb: size of one partition; None: no limit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    ingress_mb_per_s: _Limit = 200.0
    egress_mb_per_s: _Limit = 400.0
    partitions: Annotated[int, Field(gt=0)] = 2400
    partition_ingress_mb_per_s: _Limit = 5.0
    partition_egress_mb_per_s: _Limit = 10.0
    partition_gb: _Limit | None = None


class ServerlessUse(BaseModel):
    """The usage of a serverless cluster by a load, which determines its price.

    Args:
        partitions: number of partitions, at least as many as the limits of one partition require.
        average_in_mibps: average ingress from producers.
        peak_out_mibps: peak egress to consumers.
        storage_gib: the data once, for the retention.
        binding: binding constraint of the number of partitions: ``asked``, ``ingress``, ``egress`` or ``storage`` of one partition.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    partitions: int
    average_in_mibps: float
    peak_out_mibps: float
    storage_gib: float
    binding: str


def serverless_use(demand: KafkaDemand, limits: ServerlessLimits | None = None) -> ServerlessUse:
    """The usage of a serverless cluster by a load.

    Raises:
        KafkaOutOfReach: SIZ-040, with the binding limit.
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
