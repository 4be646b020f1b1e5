"""The brokers of the Kafka stack: those of the plans, or the minimum if no job has a load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.errors import BrokersNotOverZones, FewerBrokers, TooFewZones
from penstock.infra.parts.kafka import Kafka
from penstock.infra.plans import EnvironmentPlans
from penstock.sizing.errors import PenstockError
from penstock.sizing.kafka.broker_types import UNMEASURED
from penstock.sizing.kafka.brokers import KafkaOption, cheapest, option_of
from penstock.sizing.kafka.demand import MAX_STORAGE_GIB_PER_BROKER, KafkaDemand
from penstock.sizing.kafka.partitions import most_partitions

# Source: Amazon MSK Developer Guide, "Create a provisioned cluster": subnets in two or three zones, for Express in three.
MOST_ZONES = 3
# Three replicas need three brokers, two of which stay available while the third is patched.
LEAST_BROKERS = 3
# Volumes grow and never shrink, so they start small; 100 GiB hold the quarantine of a bad day without the six hours that MSK waits between
# two expansions.
LEAST_STORAGE_GIB = 100
# Default maximum of a volume after automatic expansion, as a multiple of its initial size.
GROWTH = 4


@dataclass(frozen=True)
class BrokerPlan:
    """The brokers of a provisioned cluster.

    Args:
        broker_type: MSK's instance type.
        brokers: number of brokers, a multiple of the zones.
        zones: number of zones, 2 or 3.
        storage_gib: initial storage per broker; None for Express, which manages its own storage.
        max_storage_gib: limit of automatic storage expansion.
        provisioned_mibps: provisioned storage throughput per broker above the volume's baseline; 0: none.
    """

    broker_type: str
    brokers: int
    zones: int
    storage_gib: int | None
    max_storage_gib: int | None
    provisioned_mibps: int


def broker_plan(environment: Environment, kafka: Kafka, plans: EnvironmentPlans) -> BrokerPlan:
    """The brokers of an environment with standard or Express brokers.

    Args:
        environment: the environment.
        kafka: its Kafka.
        plans: of its jobs; if none has a load, only their partitions count.

    Raises:
        PenstockError: INF-040, INF-041; SIZ-040 or SIZ-042 if no cluster of this kind, or none of this type, is known.
    """
    zones = _zones(environment, kafka)
    option = _option(kafka, plans, zones)
    needed = option.brokers if option else -(-LEAST_BROKERS // zones) * zones
    brokers = kafka.brokers or max(needed, -(-kafka.replication // zones) * zones)
    _refuse_uneven(environment, brokers, zones)
    storage_gib = None if kafka.kind == "express" else _storage_gib(kafka, option, brokers)
    return BrokerPlan(
        broker_type=kafka.broker_type or (option.broker_type if option else ""),
        brokers=brokers,
        zones=zones,
        storage_gib=storage_gib,
        max_storage_gib=None if storage_gib is None else _max_storage_gib(kafka, storage_gib),
        provisioned_mibps=option.provisioned_mibps if option else 0,
    )


def refuse_fewer_brokers(applied: int, wanted: int) -> None:
    """Rejects a change that decreases the number of brokers of a cluster.

    Args:
        applied: current number of brokers.
        wanted: planned number of brokers.

    Raises:
        FewerBrokers: INF-042.
    """
    if wanted < applied:
        need = f"{applied} or more, its current number: brokers that hold partitions cannot be removed"
        fix = f"kafka.brokers: {applied} in the environment, or create a smaller cluster in another environment"
        raise FewerBrokers(path="kafka.brokers", given=str(wanted), need=need, fix=fix)


def fewer_brokers(plan: Mapping[str, Any]) -> list[PenstockError]:
    """INF-042 for each cluster whose number of brokers would decrease.

    Args:
        plan: output of ``terraform show -json`` for a plan.
    """
    faults: list[PenstockError] = []
    for resource in plan.get("resource_changes", []):
        before, after = resource["change"].get("before"), resource["change"].get("after")
        if resource["type"] == "aws_msk_cluster" and before and after:
            try:
                refuse_fewer_brokers(before["number_of_broker_nodes"], after["number_of_broker_nodes"])
            except FewerBrokers as fault:
                faults.append(fault)
    return faults


def _zones(environment: Environment, kafka: Kafka) -> int:
    zones = len(environment.spec.network.zones) if environment.spec.network else 0
    if kafka.kind == "express" and zones < MOST_ZONES:
        need = f"{MOST_ZONES} zones or more for Express brokers"
        fault = TooFewZones(given=str(zones), need=need, fix="add zones of the region, or use kind: standard")
        raise environment.locate(fault, "spec", "network", "zones")
    return min(zones, MOST_ZONES)


def _option(kafka: Kafka, plans: EnvironmentPlans, zones: int) -> KafkaOption | None:
    """The cluster required by the loads; without a load, the smallest that holds the partitions; None for a type without known limits."""
    together = plans.together
    if together is not None and together.kafka is not None and together.kafka.cluster is not None:
        return together.kafka.cluster
    if kafka.broker_type in UNMEASURED:
        return None
    demand = KafkaDemand(
        peak_in_mibps=0.0,
        partitions=sum(most_partitions(job.plan.kafka.topics for job in plans.jobs).values()),
        replication=kafka.replication,
        zones=3 if zones == MOST_ZONES else 2,
    )
    if kafka.broker_type is not None:
        return option_of(demand, kafka.broker_type)
    return cheapest(demand, "express" if kafka.kind == "express" else "standard")


def _refuse_uneven(environment: Environment, brokers: int, zones: int) -> None:
    if brokers % zones:
        more = -(-brokers // zones) * zones
        fault = BrokersNotOverZones(given=str(brokers), need=f"a multiple of the number of zones, {zones}", fix=f"brokers: {more}")
        raise environment.locate(fault, "spec", "kafka", "brokers")


def _storage_gib(kafka: Kafka, option: KafkaOption | None, brokers: int) -> int:
    if kafka.storage_gib is not None:
        return kafka.storage_gib
    stored = math.ceil(option.storage.ebs_gib / brokers) if option else 0
    return min(MAX_STORAGE_GIB_PER_BROKER, max(LEAST_STORAGE_GIB, stored))


def _max_storage_gib(kafka: Kafka, storage_gib: int) -> int:
    return kafka.max_storage_gib or min(MAX_STORAGE_GIB_PER_BROKER, GROWTH * storage_gib)
