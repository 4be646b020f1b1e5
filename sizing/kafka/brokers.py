"""The broker type and the number of brokers for a load, by MSK's own rules.

Source: AWS's MSK sizing script (agent-toolkit-for-aws d6ad2e4), with three corrections: m7g.2xlarge supports provisioned throughput,
Express egress is twice the ingress (not 2.5 times), and among options with the same price the one with the fewest brokers is chosen. Its
rule for standard brokers assumes three replicas; it is also used for fewer, where it is conservative.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.month import HOURS_PER_MONTH
from penstock.sizing.kafka.broker_types import DEFAULT_VOLUME_MIBPS, UNMEASURED, BrokerType, broker_type, broker_types
from penstock.sizing.kafka.demand import (
    EXPRESS_REPLICATION,
    EXPRESS_UTILISATION,
    MAX_STORAGE_GIB_PER_BROKER,
    STANDARD_UTILISATION,
    KafkaDemand,
    KafkaStorage,
    storage,
)
from penstock.sizing.kafka.errors import ClusterTooSmall, KafkaOutOfReach, UnknownBrokerType
from penstock.sizing.violation import Violation, violated

Kind = Literal["standard", "express"]
Binding = Literal["ingress", "egress", "partitions", "storage", "zones"]

# Source: see the module. A MiB from a producer uses this much volume throughput, and network throughput in addition to consumer reads.
EBS_PER_INGRESS, NETWORK_PER_INGRESS = 6.5, 5.7
TIERED_EBS_PER_INGRESS, TIERED_NETWORK_PER_INGRESS = 8.0, 7.2
NETWORK_PER_EGRESS = 1.5
# Source: Amazon MSK Developer Guide, "MSK Express broker quota": sustained egress is twice the ingress.
EXPRESS_EGRESS_PER_INGRESS = 2.0
# The remainder of a floating-point division must not add three brokers.
_TOLERANCE = 1e-9


class KafkaOption(BaseModel):
    """A cluster that carries the load.

    Args:
        kind: kind of its brokers.
        broker_type: MSK's name of the broker type.
        brokers: number of brokers, a multiple of the zones.
        binding: binding constraint of the number of brokers; ``zones``: one broker per zone suffices.
        ingress_mibps_per_broker: maximum ingress of one broker at this fan-out.
        usable_ingress_mibps: ingress of the cluster at the target utilisation.
        storage: storage of the cluster.
        provisioned_mibps: provisioned storage throughput that a broker needs at this load, above a volume's 250 MiB/s; 0: none.
        broker_usd_per_month: cost of all brokers, without storage and traffic.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    kind: Kind
    broker_type: str
    brokers: int
    binding: Binding
    ingress_mibps_per_broker: float
    usable_ingress_mibps: float
    storage: KafkaStorage
    provisioned_mibps: int = 0
    broker_usd_per_month: float


def ingress_mibps_per_broker(kind: BrokerType, demand: KafkaDemand) -> float:
    """Maximum ingress of one broker in MiB/s while consumers read it `demand.fan_out` times, without headroom."""
    if kind.kind == "express":
        return min(kind.ingress_mibps, kind.ingress_mibps * EXPRESS_EGRESS_PER_INGRESS / max(demand.fan_out, _TOLERANCE))
    return min(_by_storage(kind, demand), _by_network(kind, demand, demand.fan_out))


def options(demand: KafkaDemand, kind: Kind) -> tuple[KafkaOption, ...]:
    """The cluster that carries the load, for each broker type of a kind, by price, then by the number of brokers.

    Returns:
        Clusters within the broker quota.
    """
    each = [_option(broker, demand) for broker in broker_types() if broker.kind == kind]
    fitting = [option for option in each if option.brokers <= demand.broker_quota]
    return tuple(sorted(fitting, key=lambda option: (round(option.broker_usd_per_month, 2), option.brokers)))


def cheapest(demand: KafkaDemand, kind: Kind) -> KafkaOption:
    """The cheapest cluster of a kind; on ties the one with the fewest brokers.

    Raises:
        KafkaOutOfReach: SIZ-040, with the binding constraint and the nearest feasible load.
    """
    by_price = options(demand, kind)
    if not by_price:
        raise _out_of_reach(demand, kind)
    return by_price[0]


def option_of(demand: KafkaDemand, name: str) -> KafkaOption:
    """The cluster of one broker type that carries the load, regardless of the quota.

    Raises:
        UnknownBrokerType: SIZ-042, also for t3.small, of which only the price is known.
    """
    broker = broker_type(name)
    if broker is None:
        known = "only its price is known, not its capacity" if name in UNMEASURED else f"{len(broker_types())} types are known"
        need = f"kafka.m5, kafka.m7g or express.m7g with a size: {known}"
        raise UnknownBrokerType(path="kafka.brokerType", given=name, need=need, fix="for example kafka.m7g.large")
    return _option(broker, demand)


def cluster_violations(demand: KafkaDemand, name: str, brokers: int) -> list[Violation]:
    """Returns SIZ-041 if a cluster of this many brokers of this type does not carry the load.

    Raises:
        UnknownBrokerType: SIZ-042.
    """
    needed = option_of(demand, name)
    if brokers >= needed.brokers:
        return []
    enough = f"brokers: {needed.brokers}"
    if needed.brokers > demand.broker_quota:
        enough = f"{enough} with a broker quota of at least as many"
    fix = enough + (f", or fewer of a larger type: {_alternative(demand, needed)}" if needed.brokers > 3 else "")
    need = f"{needed.brokers} brokers of {name}, limited by {needed.binding}: {_asked(demand, needed.kind, needed.binding)}"
    return [violated(ClusterTooSmall, path="kafka.brokers", given=str(brokers), need=need, fix=fix)]


def _alternative(demand: KafkaDemand, needed: KafkaOption) -> str:
    by_price = options(demand, needed.kind)
    return f"{by_price[0].brokers} of {by_price[0].broker_type}" if by_price else "no type carries it within the broker quota"


def _utilisation(demand: KafkaDemand, kind: Kind) -> float:
    return demand.utilisation or (EXPRESS_UTILISATION if kind == "express" else STANDARD_UTILISATION)


def _by_storage(broker: BrokerType, demand: KafkaDemand) -> float:
    volumes = broker.ebs_mibps
    if demand.provisioned_mibps is not None and broker.provisionable:
        volumes = min(volumes, demand.provisioned_mibps)
    return volumes / (TIERED_EBS_PER_INGRESS if demand.tiered else EBS_PER_INGRESS)


def _by_network(broker: BrokerType, demand: KafkaDemand, fan_out: float) -> float:
    return broker.network_mibps / (NETWORK_PER_EGRESS * fan_out + (TIERED_NETWORK_PER_INGRESS if demand.tiered else NETWORK_PER_INGRESS))


def _brokers_by(broker: BrokerType, demand: KafkaDemand) -> dict[Binding, float]:
    """The number of brokers required by each constraint, not rounded."""
    utilisation = _utilisation(demand, broker.kind)
    per_broker = broker.max_partitions if demand.use_max_partitions else broker.recommended_partitions
    partitions = demand.partitions_with_replicas(broker.kind) / per_broker
    if broker.kind == "express":
        ingress = demand.peak_in_mibps / (broker.ingress_mibps * utilisation)
        egress = demand.peak_out_mibps / (broker.ingress_mibps * EXPRESS_EGRESS_PER_INGRESS * utilisation)
        return {"ingress": ingress, "egress": egress, "partitions": partitions}
    alone = min(_by_storage(broker, demand), _by_network(broker, demand, 0))
    # Consumers without a producer: reading the remaining data of an idle cluster.
    read_only = demand.peak_out_mibps * NETWORK_PER_EGRESS / broker.network_mibps if not demand.peak_in_mibps else 0.0
    return {
        "ingress": demand.peak_in_mibps / (alone * utilisation),
        "egress": max(demand.peak_in_mibps / (_by_network(broker, demand, demand.fan_out)), read_only) / utilisation,
        "partitions": partitions,
        "storage": storage(demand, "standard").ebs_gib / MAX_STORAGE_GIB_PER_BROKER,
    }


def _option(broker: BrokerType, demand: KafkaDemand) -> KafkaOption:
    zones, replication = (3, EXPRESS_REPLICATION) if broker.kind == "express" else (demand.zones, demand.replication)
    by = _brokers_by(broker, demand)
    binding = max(by, key=lambda constraint: by[constraint])
    needed = max(replication, math.ceil(by[binding] - _TOLERANCE), 1)
    brokers = -(-needed // zones) * zones
    per_broker = ingress_mibps_per_broker(broker, demand)
    return KafkaOption(
        kind=broker.kind,
        broker_type=broker.name,
        brokers=brokers,
        binding=binding if by[binding] > max(zones, replication) else "zones",
        ingress_mibps_per_broker=per_broker,
        usable_ingress_mibps=per_broker * brokers * _utilisation(demand, broker.kind),
        storage=storage(demand, broker.kind),
        provisioned_mibps=_provisioned_mibps(broker, demand, brokers),
        broker_usd_per_month=brokers * broker.usd_per_h * HOURS_PER_MONTH,
    )


def _provisioned_mibps(broker: BrokerType, demand: KafkaDemand, brokers: int) -> int:
    """Volume throughput in whole MiB/s that a broker needs at the peak, headroom included, if it exceeds a volume's default."""
    per_ingress = TIERED_EBS_PER_INGRESS if demand.tiered else EBS_PER_INGRESS
    needed = demand.peak_in_mibps / brokers * per_ingress / _utilisation(demand, broker.kind)
    if not broker.provisionable or needed <= DEFAULT_VOLUME_MIBPS:
        return 0
    return min(math.ceil(needed - _TOLERANCE), math.floor(broker.ebs_mibps))


def _out_of_reach(demand: KafkaDemand, kind: Kind) -> KafkaOutOfReach:
    most = _most_brokers(demand, kind)
    shares = [(most / max(by.values()), by) for broker in broker_types() if broker.kind == kind if (by := _brokers_by(broker, demand))]
    _, by = max(shares, key=lambda entry: entry[0])
    binding = max(by, key=lambda constraint: by[constraint])
    given, other = _asked(demand, kind, binding), "several clusters, or a higher broker quota"
    nearest = _nearest(demand, kind)
    if nearest is None:
        return KafkaOutOfReach(path="kafka", given=given, need=f"less; {most} brokers carry no part of it, limited by {binding}", fix=other)
    broker, less = nearest
    at_most = _reduction(demand, less, kind, binding)
    need = f"{at_most}, the maximum that {most} brokers of {broker.name} carry, limited by {binding}"
    return KafkaOutOfReach(path="kafka", given=given, need=need, fix=f"{at_most}, {other}")


def _most_brokers(demand: KafkaDemand, kind: Kind) -> int:
    """The largest number of brokers within the quota, a multiple of the zones."""
    zones = 3 if kind == "express" else demand.zones
    return demand.broker_quota // zones * zones


def _nearest(demand: KafkaDemand, kind: Kind) -> tuple[BrokerType, KafkaDemand] | None:
    """The nearest demand that a type carries within the quota: the highest rate, then the longest retention, then the most partitions."""
    each = [(broker, less) for broker in broker_types() if broker.kind == kind if (less := _reduced(broker, demand))]
    return max(each, key=lambda entry: (entry[1].peak_in_mibps, _on_brokers_h(entry[1]), entry[1].partitions), default=None)


def _reduced(broker: BrokerType, demand: KafkaDemand) -> KafkaDemand | None:
    """The demand, less what this type does not carry: a lower rate also takes less storage. None: no rate or retention is left."""
    most = _most_brokers(demand, broker.kind)
    by = _brokers_by(broker, demand)
    share = most / max(by["ingress"], by["egress"], most)
    less = demand if share == 1 else _slower(demand, share)
    stored = _brokers_by(broker, less).get("storage", 0.0)
    if stored > most:
        hours = _tenths(_on_brokers_h(less) * most / stored)
        less = less.model_copy(update={"primary_retention_h" if less.tiered else "retention_h": hours})
    per_partition = _brokers_by(broker, less)["partitions"]
    if per_partition > most:
        less = less.model_copy(update={"partitions": math.floor(less.partitions * most / per_partition + _TOLERANCE)})
    left = (less.peak_in_mibps or less.peak_out_mibps or not demand.peak_in_mibps) and (_on_brokers_h(less) or not _on_brokers_h(demand))
    return less if left and _option(broker, less).brokers <= demand.broker_quota else None


def _slower(demand: KafkaDemand, share: float) -> KafkaDemand:
    """Lower rates, rounded down so that they stay feasible."""
    average = demand.average_in_mibps
    rates = {"peak_in_mibps": _tenths(demand.peak_in_mibps * share), "peak_out_mibps": _tenths(demand.peak_out_mibps * share)}
    return demand.model_copy(update={**rates, "average_in_mibps": None if average is None else average * share})


def _on_brokers_h(demand: KafkaDemand) -> float:
    return demand.primary_retention_h if demand.tiered and demand.primary_retention_h is not None else demand.retention_h


def _tenths(value: float) -> float:
    return math.floor(value * 10) / 10


def _reduction(demand: KafkaDemand, less: KafkaDemand, kind: Kind, binding: Binding) -> str:
    """What is less, all of which is needed."""
    parts: list[str] = []
    if less.peak_in_mibps < demand.peak_in_mibps or less.peak_out_mibps < demand.peak_out_mibps:
        out = f" and {less.peak_out_mibps:,} MiB/s out" if binding == "egress" else ""
        parts.append(f"{less.peak_in_mibps:,} MiB/s in{out}")
    if _on_brokers_h(less) < _on_brokers_h(demand):
        parts.append(f"{_on_brokers_h(less):,} hours of retention on the brokers")
    if less.partitions < demand.partitions:
        replication = EXPRESS_REPLICATION if kind == "express" else demand.replication
        parts.append(f"{less.partitions:,} partitions of {replication} replicas")
    return f"at most {', with at most '.join(parts)}"


def _asked(demand: KafkaDemand, kind: Kind, binding: Binding) -> str:
    return {
        "ingress": f"{demand.peak_in_mibps:,.1f} MiB/s in",
        "egress": f"{demand.peak_out_mibps:,.1f} MiB/s out with {demand.peak_in_mibps:,.1f} MiB/s in",
        "partitions": f"{demand.partitions_with_replicas(kind):,} partitions including replicas",
        "storage": f"{storage(demand, kind).ebs_gib:,.0f} GiB of storage",
        "zones": f"{demand.replication} replicas in {demand.zones} zones",
    }[binding]
