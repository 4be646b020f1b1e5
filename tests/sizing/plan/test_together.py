"""All jobs of an environment together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sizing.plan import plan
from penstock.sizing.plan.together import plan_together
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import PlacedPods
from tests.sizing.clusters import LOAD, PRODUCTION, targets, with_kafka, with_pool, with_quotas


def job(parallelism: int = 91, slots: int = 13, **changes: object) -> Plan:
    return plan(targets(parallelism, slots, **changes), PRODUCTION)


def placed(order: PlacedPods) -> Counter[str]:
    counter = Counter(order.unschedulable)
    for group in order.groups:
        for pods in group.pods:
            counter[pods.group] += group.count * pods.count
    return counter


def test_two_small_jobs_share_the_nodes_that_each_would_have_alone() -> None:
    jobs = {"a": job(), "b": job(26)}
    shared = plan_together(jobs, PRODUCTION)
    assert shared.feasible
    assert (shared.executors, shared.pods) == (9, 11)
    assert shared.nodes.one_batch.nodes == 2
    assert placed(shared.nodes.one_batch) == {"a/driver": 1, "a/executor": 7, "b/driver": 1, "b/executor": 2}
    assert shared.cost is not None
    alone = [made.cost for made in jobs.values()]
    assert shared.cost.total.usd_per_month.high < sum(bill.total.usd_per_month.high for bill in alone if bill is not None)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from([1, 2, 4])), min_size=1, max_size=4))
def test_equal_pods_never_take_more_nodes_together_than_apart_and_each_is_placed_once(jobs: list[tuple[int, int]]) -> None:
    plans = {f"job-{index}": job(parallelism, slots) for index, (parallelism, slots) in enumerate(jobs)}
    shared = plan_together(plans, PRODUCTION)
    wanted = Counter({f"{name}/executor": made.totals.executors for name, made in plans.items()})
    wanted.update({f"{name}/driver": 1 for name in plans})
    assert placed(shared.nodes.one_batch) == wanted
    assert placed(shared.nodes.staged) == wanted
    apart = [made.nodes.one_batch.nodes for made in plans.values() if made.nodes is not None]
    assert shared.nodes.one_batch.nodes <= sum(apart)
    assert shared.pods == sum(wanted.values())


def test_one_job_alone_has_the_nodes_and_the_bill_of_its_own_plan() -> None:
    made = job(load=LOAD, source_topics={"a": None})
    shared = plan_together({"a": made}, PRODUCTION)
    assert made.nodes is not None
    assert (shared.nodes.one_batch.nodes, shared.nodes.staged.nodes) == (made.nodes.one_batch.nodes, made.nodes.staged.nodes)
    assert shared.cost == made.cost
    assert shared.kafka == made.kafka.load


def test_a_limit_that_each_job_alone_meets_can_bind_them_together() -> None:
    tight = with_pool("executors", limits={"cpu": "8"})
    jobs = {name: plan(targets(), tight) for name in ("a", "b")}
    assert all(made.feasible for made in jobs.values())
    shared = plan_together(jobs, tight)
    assert not shared.feasible
    assert {str(one.code) for one in shared.violations} == {"SIZ-010"}
    assert {str(one.path) for one in shared.violations} <= {"a/executor", "b/executor"}
    assert all("limits of executors: cpu 16" in str(one.fix) for one in shared.violations)
    assert plan_together(jobs, with_pool("executors", limits={"cpu": "16"})).feasible


def test_each_job_asks_for_its_executors_in_its_own_batches() -> None:
    slow = {"spark.kubernetes.allocation.batch.size": "1", "spark.kubernetes.allocation.batch.delay": "1h"}
    shared = plan_together({"a": job(40, 1), "b": job(3, 1, spark_conf=slow)}, PRODUCTION)
    moments = [group.at_s for group in shared.nodes.staged.groups if group.at_s is not None]
    last = max(at_s for at_s in moments)
    assert placed(shared.nodes.staged)["b/executor"] == 3
    turned = plan_together({"b": job(3, 1, spark_conf=slow), "a": job(40, 1)}, PRODUCTION)
    assert max(group.at_s for group in turned.nodes.staged.groups if group.at_s is not None) == last
    assert turned.nodes.staged.nodes == shared.nodes.staged.nodes


def test_each_driver_on_spot_is_named() -> None:
    both = with_pool("drivers", requirements={"karpenter.sh/capacity-type": ["spot"]})
    shared = plan_together({"a": job(), "b": job()}, both)
    assert sorted(str(one.path) for one in shared.violations if one.code == "SIZ-014") == ["a/driver", "b/driver"]


def test_the_brokers_carry_the_sum_of_the_loads() -> None:
    jobs = {name: job(load=LOAD, source_topics={name: 91}) for name in ("a", "b", "c")}
    shared = plan_together(jobs, PRODUCTION)
    alone = jobs["a"].kafka.load
    assert alone is not None
    assert alone.cluster is not None
    assert shared.kafka is not None
    assert shared.kafka.cluster is not None
    assert shared.kafka.peak_in_mibps == pytest.approx(3 * alone.peak_in_mibps)
    assert shared.kafka.cluster.storage.ebs_gib == pytest.approx(3 * alone.cluster.storage.ebs_gib)
    assert shared.kafka.cluster.usable_ingress_mibps >= shared.kafka.peak_in_mibps
    assert shared.partitions == shared.kafka.partitions == 3 * 91


def test_jobs_keep_their_own_retention_and_the_most_copies() -> None:
    day = LOAD.model_copy(update={"retention_h": 24.0, "replication": 3})
    loads = [day.model_validate({**day.model_dump(), "retention_h": hours}) for hours in (24.0, 240.0)]
    jobs = {f"job-{index}": job(load=load, source_topics={"a": None}) for index, load in enumerate(loads)}
    shared = plan_together(jobs, PRODUCTION)
    stored = [made.kafka.load.cluster.storage.ebs_gib for made in jobs.values() if made.kafka.load and made.kafka.load.cluster]
    assert stored[1] == pytest.approx(10 * stored[0])
    assert shared.kafka is not None
    assert shared.kafka.cluster is not None
    assert shared.kafka.cluster.storage.ebs_gib == pytest.approx(sum(stored))


def test_a_topic_that_two_jobs_read_has_its_partitions_once() -> None:
    shared = plan_together({"a": job(source_topics={"clicks": 91}), "b": job(source_topics={"clicks": 100})}, PRODUCTION)
    assert shared.partitions == 100


def test_brokers_that_carry_each_load_may_not_carry_all_of_them() -> None:
    fixed = with_kafka(broker_type="kafka.m7g.large", brokers=3)
    load = LOAD.model_copy(update={"events_per_s": 10_000.0})
    jobs = {name: plan(targets(40, 4, load=load, source_topics={name: 40}), fixed) for name in ("a", "b", "c", "d")}
    assert all("SIZ-041" not in [one.code for one in made.violations] for made in jobs.values())
    shared = plan_together(jobs, fixed)
    assert "SIZ-041" in [one.code for one in shared.violations]


def test_the_quota_of_brokers_holds_for_all_the_jobs_together() -> None:
    jobs = {name: job(load=LOAD, source_topics={name: 91}) for name in ("a", "b", "c", "d")}
    free = plan_together(jobs, with_kafka(broker_type="kafka.m7g.large"))
    assert free.kafka is not None
    assert free.kafka.cluster is not None
    tight = with_kafka(broker_type="kafka.m7g.large").model_copy(update={"quotas": with_quotas(msk_brokers=3).quotas})
    assert free.kafka.cluster.brokers > 3
    assert [one.code for one in plan_together(jobs, tight).violations] == ["SIZ-011"]
    # If no type is fixed, one that needs fewer brokers is chosen.
    assert plan_together(jobs, with_quotas(msk_brokers=3)).feasible


@pytest.mark.parametrize("kind", ["serverless", "external"])
def test_without_brokers_there_is_no_cluster(kind: str) -> None:
    kafka = with_kafka(kind=kind)
    shared = plan_together({"a": plan(targets(load=LOAD, source_topics={"a": None}), kafka)}, kafka)
    assert shared.kafka is not None
    assert shared.kafka.cluster is None
    assert (shared.kafka.serverless is not None) == (kind == "serverless")


def test_without_kafka_and_without_a_load_brokers_are_not_mentioned() -> None:
    none = PRODUCTION.model_copy(update={"kafka": None})
    assert plan_together({"a": job(load=LOAD)}, none).kafka is None
    assert plan_together({"a": job()}, PRODUCTION).kafka is None


@settings(max_examples=30)
@given(
    limits=st.dictionaries(st.sampled_from(["drivers", "executors"]), st.sampled_from([{}, {"cpu": "0"}, {"nodes": "1"}, {"cpu": "10"}])),
    zones=st.sampled_from([("us-east-1a",), ("us-east-1a", "us-east-1b"), ("us-east-1a", "us-east-1b", "us-east-1c")]),
    kind=st.sampled_from(["standard", "express", "serverless", "external"]),
    events_per_s=st.none() | st.sampled_from([1e-3, 1e4, 1e8]),
    trigger_s=st.sampled_from([None, 0.001, 10.0, 3.1e8]),
    quota=st.none() | st.integers(0, 12),
    boot_s=st.sampled_from([0.0, 60.0, 1e8]),
)
def test_no_environment_makes_a_traceback(
    limits: dict[str, dict[str, str]],
    zones: tuple[str, ...],
    kind: str,
    events_per_s: float | None,
    trigger_s: float | None,
    quota: int | None,
    boot_s: float,
) -> None:
    pool = with_kafka(kind=kind).model_copy(update={"zones": zones, "boot_s": boot_s})
    if quota is not None:
        quotas = with_quotas(msk_brokers=quota, spot_vcpus=quota, on_demand_vcpus=quota).quotas
        pool = pool.model_copy(update={"quotas": quotas})
    for name, own in limits.items():
        pool = with_pool(name, pool, limits=own)
    load = None if events_per_s is None else LOAD.model_copy(update={"events_per_s": events_per_s})
    plans = {name: plan(targets(30, 4, load=load, trigger_s=trigger_s, source_topics={name: None}), pool) for name in ("a", "b")}
    shared = plan_together(plans, pool)
    assert shared.feasible == (not shared.violations and all(made.feasible for made in plans.values()))
