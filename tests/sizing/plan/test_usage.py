"""The AWS usage of a plan, and the exclusions of its bill."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.billed import Bill, Line
from penstock.sizing.plan import plan
from tests.sizing.clusters import CAPACITY, LOAD, PRODUCTION, targets, with_kafka, with_pool

WITH_LOAD: dict[str, Any] = {"load": LOAD, "source_topics": {"a": None}}


def bill_of(cluster: Cluster = PRODUCTION, **changes: Any) -> Bill:
    made = plan(targets(changes.pop("parallelism", 91), changes.pop("slots", 13), **changes), cluster).cost
    assert made is not None
    return made


def line(bill: Bill, text: str) -> Line | None:
    return next((one for one in bill.lines if text in f"{one.service}: {one.item}"), None)


def quantity(bill: Bill, text: str) -> float:
    result = line(bill, text)
    assert result is not None, [f"{one.service}: {one.item}" for one in bill.lines]
    return result.quantity


def test_a_plan_has_its_nodes_volumes_cluster_nat_and_checkpoints_on_the_bill() -> None:
    made = bill_of()
    assert set(made.services) == {"EC2", "EBS", "EKS", "S3", "NAT"}
    assert (quantity(made, "EC2: driver, on-demand"), quantity(made, "EC2: executors, spot")) == (1, 1)
    assert quantity(made, "EBS: driver") == 50
    assert quantity(made, "NAT: gateways") == 3


def test_nodes_are_counted_as_after_a_first_start() -> None:
    made = plan(targets(60, 1, executor={"memory_mib": 8192}), PRODUCTION)
    assert made.nodes is not None
    assert made.cost is not None
    assert sum(one.quantity for one in made.cost.lines if one.service == "EC2") == made.nodes.staged.nodes
    items = [f"{one.service}: {one.item}" for one in made.cost.lines]
    assert len(items) == len(set(items))


def test_unschedulable_pods_are_noted_as_not_on_the_bill() -> None:
    tight = with_pool("executors", limits={"cpu": "4"})
    assert "4 pods that find no node: not included in the cost" in bill_of(tight).assumptions
    assert not any("no node" in one for one in bill_of().assumptions)
    none = with_pool("executors", limits={"cpu": "1"})
    assert line(bill_of(none), "EC2: executors") is None


def test_spot_may_become_on_demand_only_where_the_pool_allows_both() -> None:
    both, spot = bill_of(), bill_of(with_pool("executors", requirements={CAPACITY: ["spot"]}))
    for made in (both, spot):
        result = line(made, "EC2: executors, spot")
        assert result is not None
        assert result.basis == "assumed"


def test_a_load_brings_brokers_their_storage_and_the_reads_between_zones() -> None:
    made = plan(targets(**WITH_LOAD), PRODUCTION)
    assert made.cost is not None
    assert made.kafka.load is not None
    option = made.kafka.load.cluster
    assert option is not None
    assert quantity(made.cost, f"MSK: kafka, {option.broker_type}") == option.brokers
    assert quantity(made.cost, "MSK: kafka, volumes") == pytest.approx(option.storage.ebs_gib)
    gib_per_month = made.kafka.load.average_in_mibps * 3600 * 730 / 1024
    assert quantity(made.cost, "Data transfer: reads from Kafka") == pytest.approx(2 * gib_per_month * 2 / 3)


def test_consumers_that_read_in_their_own_zone_and_a_single_zone_pay_no_traffic() -> None:
    assert line(bill_of(with_kafka(rack_aware=True), **WITH_LOAD), "Data transfer") is None
    one_zone = PRODUCTION.model_copy(update={"zones": ("us-east-1a",)})
    assert line(bill_of(one_zone, **WITH_LOAD), "Data transfer") is None


def test_provisioned_throughput_of_the_volumes_is_on_the_bill() -> None:
    heavy = LOAD.model_copy(update={"events_per_s": 200_000.0, "events_per_slot_per_s": 100_000.0})
    made = plan(targets(load=heavy, source_topics={"a": 91}), with_kafka(broker_type="kafka.m7g.4xlarge"))
    assert made.cost is not None
    assert made.kafka.load is not None
    option = made.kafka.load.cluster
    assert option is not None
    assert option.provisioned_mibps > 250
    assert quantity(made.cost, "MSK: kafka, provisioned throughput") == option.provisioned_mibps * option.brokers


@pytest.mark.parametrize(
    ("kafka", "load", "said"),
    [
        ({"kind": "external"}, False, "Kafka is outside of the environment and not included in the cost"),
        ({"kind": "external"}, True, "Kafka is outside of the environment and not included in the cost"),
        ({}, False, "Kafka brokers are not included in the cost: no load is specified, and the environment does not specify them"),
        ({"broker_type": "kafka.m7g.large", "brokers": 3}, False, "Kafka without storage and traffic: no load is specified"),
        ({"kind": "serverless"}, False, "Kafka without storage and traffic: no load is specified"),
        ({}, True, None),
        ({"kind": "serverless"}, True, None),
    ],
)
def test_what_the_bill_excludes_of_kafka_is_noted(kafka: dict[str, Any], load: bool, said: str | None) -> None:
    changes: dict[str, Any] = WITH_LOAD if load else {"source_topics": {"a": None}}
    made = bill_of(with_kafka(**kafka), **changes)
    assert [one for one in made.assumptions if "Kafka" in one and not one.startswith("not included")] == ([] if said is None else [said])
    is_there = kafka.get("kind") != "external" and (load or kafka.get("kind") == "serverless" or "brokers" in kafka)
    assert ("MSK" in made.services) == is_there
    assert ("Data transfer" in made.services) == (load and kafka.get("kind") != "external")


def test_a_load_that_no_cluster_carries_says_that_the_brokers_are_missing() -> None:
    vast = LOAD.model_copy(update={"events_per_s": 1e8, "events_per_slot_per_s": 1e7})
    made = bill_of(load=vast, source_topics={"a": 91})
    assert "Kafka brokers are not included in the cost: no cluster of that kind carries the load" in made.assumptions


def test_an_environment_without_kafka_says_nothing_of_it() -> None:
    made = bill_of(PRODUCTION.model_copy(update={"kafka": None}), **WITH_LOAD)
    assert "MSK" not in made.services
    assert "Data transfer" not in made.services


def test_without_prices_there_is_no_bill_and_a_note_says_so() -> None:
    made = plan(targets(), PRODUCTION.model_copy(update={"prices": None}))
    assert made.cost is None
    assert "no prices for us-east-1, so no cost is computed" in made.notes
    assert made.nodes is not None


def test_an_extended_version_and_no_nat_gateway_are_heeded() -> None:
    made = bill_of(PRODUCTION.model_copy(update={"extended_support": True, "nat_gateways": 0}))
    assert line(made, "extended support") is not None
    assert "NAT" not in made.services


def test_the_control_plane_of_an_existing_cluster_is_its_owners_bill() -> None:
    theirs = bill_of(PRODUCTION.model_copy(update={"control_plane_billed": False}))
    assert "EKS" not in theirs.services
    assert theirs.lines == tuple(one for one in bill_of().lines if one.service != "EKS")
    assert "not included: the control plane, which is that of an existing cluster, and what else runs in it" in theirs.assumptions
    assert not any("the control plane and NAT" in one for one in theirs.assumptions)
