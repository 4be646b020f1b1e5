"""Pool limits derived from the plans: the plan is the same as without them, and a node can be replaced within them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from penstock.infra import pool_limits as module
from penstock.infra.cluster import cluster
from penstock.infra.environment_file import load
from penstock.infra.errors import LimitsChangePlan
from penstock.infra.pool_limits import PoolLimits, limited, pool_limits
from penstock.sizing.cluster import Cluster
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.placement.decision import Decision, NodeClaim
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import ExistingNode, PodGroup
from penstock.sizing.plan import plan
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nodes import allocation_of, decisions, scenario_of
from penstock.sizing.planned import Plan
from tests.sizing.clusters import targets, with_pool

_CLUSTER = cluster(load("production"))
assert _CLUSTER is not None
PRODUCTION = _CLUSTER
DEV = cluster(load("dev"))

Jobs = Mapping[str, Plan]


def job(parallelism: int = 10, slots: int = 5, cores: int = 4000, memory_mib: int = 16_384, on_cluster: Cluster = PRODUCTION) -> Plan:
    """By default 2 executors of 4 cores and 16 GiB, and a driver of 1 core and 2 GiB."""
    return plan(targets(parallelism, slots, executor={"memory_mib": memory_mib, "cpu_millicores": cores}), on_cluster)


def orders(jobs: Jobs, on_cluster: Cluster) -> tuple[Decision, Decision]:
    return decisions(
        groups_of(jobs, on_cluster), on_cluster, {f"{name}/{EXECUTOR}": allocation_of(one.spark_conf) for name, one in jobs.items()}
    )


def groups_of(jobs: Jobs, on_cluster: Cluster) -> list[PodGroup]:
    return [group for name, one in jobs.items() for group in pod_groups(one.pods, one.spark_conf, on_cluster, name)]


def without_room(limits: PoolLimits, cores: int = 0, gib: int = 0) -> PoolLimits:
    return PoolLimits(limits.cpu_cores - cores, limits.memory_gib - gib)


def test_the_limits_are_the_largest_machines_one_more_and_a_share_of_the_pods() -> None:
    limits = pool_limits({"clicks": job()}, PRODUCTION, 0.5)
    # Both executors fit one node, of at most 16 vCPUs and 128 GiB; half of their requests is 4 cores and 16 GiB.
    assert limits["executors"] == PoolLimits(cpu_cores=16 + 16 + 4, memory_gib=128 + 128 + 16)
    # The driver's node has at most 8 vCPUs and 64 GiB; half of its requests is half a core and 1 GiB.
    assert limits["drivers"] == PoolLimits(cpu_cores=8 + 8 + 1, memory_gib=64 + 64 + 1)


def test_limits_are_written_as_kubernetes_has_them() -> None:
    assert PoolLimits(36, 272).quantities == {"cpu": "36", "memory": "272Gi"}


def test_every_change_of_the_executors_number_or_size_changes_the_limits() -> None:
    sizes = [
        pool_limits({"clicks": changed}, PRODUCTION, 0.5)["executors"]
        for changed in (job(), job(parallelism=11), job(parallelism=20), job(parallelism=100), job(memory_mib=20_480), job(cores=5000))
    ]
    assert len(set(sizes)) == len(sizes)
    assert sizes[0].cpu_cores < sizes[1].cpu_cores < sizes[2].cpu_cores < sizes[3].cpu_cores


def test_a_pool_that_no_job_uses_starts_nothing() -> None:
    nothing = {"drivers": PoolLimits(0, 0), "executors": PoolLimits(0, 0)}
    assert pool_limits({}, PRODUCTION, 0.5) == nothing
    both = orders({"clicks": job()}, limited(PRODUCTION, nothing))
    assert all(not one.node_claims for one in both)


def test_a_pool_with_limits_of_its_own_keeps_them() -> None:
    own = with_pool("executors", PRODUCTION, limits={"cpu": "1000", "memory": "8000Gi"})
    assert set(pool_limits({"clicks": job()}, own, 0.5)) == {"drivers"}
    kept = next(pool for pool in limited(own, {"drivers": PoolLimits(1, 1)}).node_pools if pool.name == "executors")
    assert kept.spec.limits == next(pool for pool in own.node_pools if pool.name == "executors").spec.limits


def test_with_less_than_the_largest_machines_the_plan_changes() -> None:
    """So the first term of the formula has no slack, except what a registered node may report above Karpenter's estimate."""
    jobs = {"clicks": job(parallelism=40)}
    limits = pool_limits(jobs, PRODUCTION, 0.0)
    nodes = limits["executors"].cpu_cores // 16 - 1
    bare = without_room(limits["executors"], cores=16, gib=128)
    assert orders(jobs, limited(PRODUCTION, {**limits, "executors": bare})) == orders(jobs, PRODUCTION)
    # Of 128 GiB Karpenter counts 7.5 % less: 9.6 GiB per node.
    for less in (without_room(bare, cores=1), without_room(bare, gib=10 * nodes)):
        assert orders(jobs, limited(PRODUCTION, {**limits, "executors": less})) != orders(jobs, PRODUCTION)


def test_limits_that_would_change_the_plan_are_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_limits", lambda need, headroom: PoolLimits(4, 16))
    with pytest.raises(LimitsChangePlan) as raised:
        pool_limits({"clicks": job(parallelism=100)}, PRODUCTION, 0.5)
    assert "executors: cpu 4, memory 16Gi" in raised.value.given


@st.composite
def some_jobs(draw: st.DrawFn) -> dict[str, dict[str, int]]:
    one = st.fixed_dictionaries(
        {
            "parallelism": st.integers(1, 80),
            "slots": st.integers(1, 6),
            "cores": st.sampled_from([500, 1000, 1500, 2000, 4000, 7000]),
            "memory_mib": st.integers(1024, 60_000),
        }
    )
    return {f"job-{index}": draw(one) for index in range(draw(st.integers(1, 3)))}


# Failures are not shrunk: that would place thousands of pods again.
SOME = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def feasible(wanted: Mapping[str, dict[str, int]], on_cluster: Cluster) -> Jobs:
    jobs = {name: job(**fields, on_cluster=on_cluster) for name, fields in wanted.items()}
    assume(all(one.feasible for one in jobs.values()))
    return jobs


@SOME
@given(wanted=some_jobs(), headroom=st.sampled_from([0.0, 0.25, 0.5, 2.0]), on_any=st.booleans())
@example(wanted={"one": {"parallelism": 1, "slots": 1, "cores": 500, "memory_mib": 1024}}, headroom=0.0, on_any=True)
def test_under_the_limits_the_plan_of_any_jobs_is_the_same(wanted: dict[str, Any], headroom: float, on_any: bool) -> None:
    on_cluster = DEV if on_any and DEV is not None else PRODUCTION
    jobs = feasible(wanted, on_cluster)
    limits = pool_limits(jobs, on_cluster, headroom)
    assert orders(jobs, limited(on_cluster, limits)) == orders(jobs, on_cluster)


@SOME
@given(wanted=some_jobs())
def test_any_node_of_any_jobs_may_be_replaced_while_it_still_counts(wanted: dict[str, Any]) -> None:
    jobs = feasible(wanted, PRODUCTION)
    under = limited(PRODUCTION, pool_limits(jobs, PRODUCTION, 0.0))
    groups = groups_of(jobs, PRODUCTION)
    (one_batch, _) = orders(jobs, PRODUCTION)
    full_nodes = tuple(full_and_largest(f"node-{index}", claim) for index, claim in enumerate(one_batch.node_claims))
    for claim in {(one.node_pool, tuple(one.pods.items())): one for one in one_batch.node_claims}.values():
        again = [group.model_copy(update={"count": claim.pods.get(group.name, 0)}) for group in groups]
        scenario = scenario_of(again, under).model_copy(update={"existing_nodes": full_nodes})
        decision = place(scenario, under.catalog, under.node_settings, under.zones)
        assert not decision.unschedulable
        assert [one.instance_types for one in decision.node_claims] == [claim.instance_types]


def full_and_largest(name: str, claim: NodeClaim) -> ExistingNode:
    """A node that has become the largest possible, with more pods than it has room for, so that no other fits."""
    types = [one for each in claim.instance_types if (one := PRODUCTION.catalog.get(each))]
    largest = max(types, key=lambda one: (one.vcpu, one.memory_mib))
    fields = {
        "name": name,
        "nodePool": claim.node_pool,
        "instanceType": largest.name,
        "zone": claim.zone,
        "capacityType": claim.launch.capacity_type,
        "pods": {group: 1000 * count for group, count in claim.pods.items()},
    }
    return ExistingNode.model_validate(fields)


@pytest.mark.parametrize("asked", ["preferred", "required"])
def test_limits_have_room_for_executors_that_are_spread(asked: str) -> None:
    spread = ExecutorSpread.model_validate({"nodes": asked, "zones": asked})
    jobs = {"clicks": plan(targets(50, 5, executor={"memory_mib": 16_384, "cpu_millicores": 4000, "spread": spread}), PRODUCTION)}
    limits = pool_limits(jobs, PRODUCTION, 0.5)
    assert limits["executors"].cpu_cores > pool_limits({"clicks": job(parallelism=50)}, PRODUCTION, 0.5)["executors"].cpu_cores
    before, now = orders(jobs, PRODUCTION), orders(jobs, limited(PRODUCTION, limits))
    assert before == now
    assert [len([claim for claim in order.node_claims if claim.node_pool == "executors"]) for order in now] == [10, 10]
