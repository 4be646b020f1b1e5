"""Plans that a cluster does not carry: each code with its binding constraint and the nearest feasible value, where one more is
infeasible.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.sizing.cluster import Cluster
from penstock.sizing.plan import plan
from tests.sizing.clusters import CAPACITY, LOAD, PRODUCTION, codes, targets, violation, with_kafka, with_pool, with_quotas

CPU = "karpenter.k8s.aws/instance-cpu"


def proposed(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    assert match is not None, text
    return int(match.group(1))


def feasible(parallelism: int, cluster: Cluster, **changes: Any) -> bool:
    return plan(targets(parallelism, **changes), cluster).feasible


def test_a_cluster_with_room_for_seven_executors_carries_them() -> None:
    assert plan(targets(), PRODUCTION).feasible
    assert feasible(91, with_pool("executors", limits={"cpu": "8"}))


@pytest.mark.parametrize(
    ("limits", "slots"),
    [
        ({"cpu": "4"}, 13),
        ({"cpu": "7"}, 13),
        ({"memory": "9Gi"}, 13),
        ({"cpu": "6", "memory": "64Gi"}, 13),
        ({"cpu": "20"}, 1),
        ({"nodes": "2"}, 1),
        ({"cpu": "40", "nodes": "3"}, 1),
    ],
)
def test_a_limit_names_the_most_parallelism_and_the_least_limit_that_are_feasible(limits: dict[str, str], slots: int) -> None:
    result = violation(targets(slots=slots), with_pool("executors", limits=limits), "SIZ-010")
    most = proposed(result.fix, r"parallelism of at most ([0-9]+)")
    assert feasible(most, with_pool("executors", limits=limits), slots=slots)
    assert not feasible(most + 1, with_pool("executors", limits=limits), slots=slots)
    least = dict(re.findall(r"(cpu|memory|nodes) ([0-9]+(?:Gi)?)", result.fix.split("limits of executors: ")[1]))
    assert feasible(91, with_pool("executors", limits={**limits, **least}), slots=slots)
    for name, amount in least.items():
        one_less = str(int(amount.removesuffix("Gi")) - 1) + ("Gi" if amount.endswith("Gi") else "")
        assert not feasible(91, with_pool("executors", limits={**limits, **least, name: one_less}), slots=slots)


def test_a_load_decides_the_parallelism_and_only_a_limit_is_proposed() -> None:
    wanted = targets(slots=1, load=LOAD, source_topics={"a": None})
    result = violation(wanted, with_pool("executors", limits={"cpu": "4"}), "SIZ-010")
    assert "parallelism" not in result.fix
    limit = proposed(result.fix, r"^limits of executors: cpu ([0-9]+)$")
    assert plan(wanted, with_pool("executors", limits={"cpu": str(limit)})).feasible


def test_where_not_even_one_executor_finds_a_node_only_a_limit_is_proposed() -> None:
    result = violation(targets(), with_pool("executors", limits={"cpu": "3"}), "SIZ-010")
    assert result.fix == "limits of executors: cpu 8"
    assert result.need.startswith("capacity for 7 more than the 0 that are scheduled; the limits are ")


def test_limits_of_two_pools_that_bind_are_proposed_together() -> None:
    tight = with_pool("drivers", with_pool("executors", limits={"cpu": "3"}), limits={"cpu": "1"})
    made = plan(targets(), tight)
    assert codes(made) == ["SIZ-010", "SIZ-010"]
    assert {str(one.fix) for one in made.violations} == {"limits of drivers: cpu 2; executors: cpu 8"}
    assert feasible(91, with_pool("drivers", with_pool("executors", limits={"cpu": "8"}), limits={"cpu": "2"}))


def test_a_first_start_that_finds_no_node_is_not_feasible_even_if_one_batch_would() -> None:
    made = plan(targets(100, 1), with_pool("executors", limits={"nodes": "2"}))
    assert made.nodes is not None
    assert (made.nodes.one_batch.unschedulable, made.feasible) == ({}, False)


def test_limits_of_many_pods_suffice_though_they_are_not_searched_for() -> None:
    wanted = targets(600, 1)
    result = violation(wanted, with_pool("executors", limits={"cpu": "100"}), "SIZ-010")
    limit = proposed(result.fix, r"limits of executors: cpu ([0-9]+)")
    assert plan(wanted, with_pool("executors", limits={"cpu": str(limit)})).feasible


@pytest.mark.parametrize(("quota", "type_"), [("spot_vcpus", "spot"), ("on_demand_vcpus", "on-demand")])
def test_a_quota_names_the_least_that_suffices(quota: str, type_: str) -> None:
    result = violation(targets(), with_quotas(**{quota: 0}), "SIZ-011")
    least = proposed(result.fix, r"a quota of at least ([0-9]+)")
    assert f"{type_} vCPUs" in result.need
    assert plan(targets(), with_quotas(**{quota: least})).feasible
    assert codes(plan(targets(), with_quotas(**{quota: least - 1}))) == ["SIZ-011"]


def test_accelerated_machines_are_not_counted_against_the_standard_quota() -> None:
    any_size = {CPU: None, "karpenter.k8s.aws/instance-generation": None}
    trainium = with_pool("executors", requirements={**any_size, "karpenter.k8s.aws/instance-category": ["trn"]})
    made = plan(targets(), trainium.model_copy(update={"quotas": with_quotas(spot_vcpus=0, on_demand_vcpus=8).quotas}))
    assert made.feasible


def test_a_quota_of_brokers_binds_those_of_a_load_and_those_that_are_fixed() -> None:
    wanted = targets(load=LOAD, source_topics={"a": None})
    kafka = plan(wanted, PRODUCTION).kafka.load
    assert kafka is not None
    assert kafka.cluster is not None
    assert "SIZ-011" in codes(plan(wanted, with_quotas(msk_brokers=kafka.cluster.brokers - 1)))
    assert plan(wanted, with_quotas(msk_brokers=kafka.cluster.brokers)).feasible
    fixed = with_kafka(broker_type="kafka.m7g.large", brokers=6).model_copy(update={"quotas": with_quotas(msk_brokers=5).quotas})
    assert codes(plan(targets(), fixed)) == ["SIZ-011"]


def test_a_pod_that_is_too_large_names_the_most_memory_that_is_feasible() -> None:
    result = violation(targets(executor={"memory_mib": 300_000}), PRODUCTION, "SIZ-012")
    most = proposed(result.fix, r'memory <= "([0-9]+)m"')
    assert feasible(91, PRODUCTION, executor={"memory_mib": most})
    assert codes(plan(targets(executor={"memory_mib": most + 1}), PRODUCTION)) == ["SIZ-012"]


def test_the_most_memory_heeds_the_limits_of_the_pool() -> None:
    small = with_pool("executors", limits={"cpu": "8"})
    most = proposed(violation(targets(executor={"memory_mib": 300_000}), small, "SIZ-012").fix, r'memory <= "([0-9]+)m"')
    assert feasible(91, small, executor={"memory_mib": most})
    assert not feasible(91, small, executor={"memory_mib": most + 1})


def test_a_pod_with_too_many_cores_names_the_most_that_are_feasible() -> None:
    result = violation(targets(executor={"cpu_millicores": 60_000}), PRODUCTION, "SIZ-012")
    most = proposed(result.fix, r'cores <= "([0-9]+)m"')
    assert feasible(91, PRODUCTION, executor={"cpu_millicores": most})
    assert codes(plan(targets(executor={"cpu_millicores": most + 1}), PRODUCTION)) == ["SIZ-012"]


def test_a_type_that_would_carry_the_pod_does_where_it_is_allowed() -> None:
    result = violation(targets(executor={"memory_mib": 300_000, "cpu_millicores": 60_000}), PRODUCTION, "SIZ-012")
    assert result.fix.startswith("reduce both, or allow ")
    name = result.fix.split("or allow ")[1].split(" ")[0]
    allowed = with_pool("executors", requirements={CPU: None, "node.kubernetes.io/instance-type": [name]})
    assert feasible(91, allowed, executor={"memory_mib": 300_000, "cpu_millicores": 60_000})


def test_an_unsatisfiable_selector_is_distinguished_from_a_pod_that_is_too_large() -> None:
    conf = {"spark.kubernetes.executor.node.selector.disk": "ssd"}
    result = violation(targets(spark_conf=conf), PRODUCTION, "SIZ-013")
    assert result.given == "penstock.dev/role=executor, disk=ssd"
    assert "the pods require disk: ssd" in result.need
    zone = {"spark.kubernetes.executor.node.selector.topology.kubernetes.io/zone": "us-east-1a"}
    assert plan(targets(spark_conf=zone), PRODUCTION).feasible


def test_pods_that_tolerate_no_taint_find_no_pool() -> None:
    strict = PRODUCTION.model_copy(update={"executor": PRODUCTION.executor.model_copy(update={"tolerations": ()})})
    assert "do not tolerate its taint penstock.dev/role=executor" in violation(targets(), strict, "SIZ-013").need


def test_a_driver_on_spot_is_infeasible_and_the_proposed_selector_fixes_it() -> None:
    both = with_pool("drivers", requirements={CAPACITY: ["spot", "on-demand"]})
    result = violation(targets(), both, "SIZ-014")
    assert (result.path, result.given) == ("driver", "pool drivers, spot")
    selector = {f"spark.kubernetes.driver.node.selector.{CAPACITY}": "on-demand"}
    assert plan(targets(spark_conf=selector), both).feasible


def test_fewer_partitions_than_the_parallelism_names_the_parallelism_that_they_feed() -> None:
    topics = {"a": 40, "b": 20}
    result = violation(targets(source_topics=topics), PRODUCTION, "SIZ-015")
    most = proposed(result.fix, r"a parallelism of ([0-9]+)")
    assert most == 60
    assert feasible(most, PRODUCTION, source_topics=topics)
    assert not feasible(most + 1, PRODUCTION, source_topics=topics)
    assert feasible(91, PRODUCTION, source_topics={"a": 91})


def test_whole_executors_without_a_task_name_the_parallelism_that_keeps_them_busy() -> None:
    conf = {"spark.sql.shuffle.partitions": "30"}
    result = violation(targets(spark_conf=conf), PRODUCTION, "SIZ-016")
    most = proposed(result.fix, r"a parallelism of ([0-9]+)")
    assert feasible(most, PRODUCTION, spark_conf=conf)
    assert codes(plan(targets(most + 1, spark_conf=conf), PRODUCTION)) == ["SIZ-016"]
    assert feasible(91, PRODUCTION, spark_conf={"spark.sql.shuffle.partitions": "91"})


def test_no_other_parallelism_is_proposed_for_a_load() -> None:
    wanted = targets(load=LOAD, spark_conf={"spark.sql.shuffle.partitions": "5"})
    (result,) = plan(wanted, PRODUCTION).violations
    assert (result.code, result.fix) == ("SIZ-016", "spark.sql.shuffle.partitions of 91")


def test_a_node_that_ec2_cannot_launch_is_reported_once() -> None:
    varied = with_pool("executors", requirements={CPU: {"key": CPU, "operator": "Exists", "minValues": 12}})
    result = violation(targets(), varied, "SIZ-017")
    assert result.path == "executor"
    assert "minValues" in result.need
    few = with_pool("executors", requirements={CPU: {"key": CPU, "operator": "Exists", "minValues": 1}})
    assert plan(targets(), few).feasible
