"""Executors that are spread over nodes and zones: what Karpenter makes of the constraints, and what a plan says of it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from penstock.sizing.executor_spread import ExecutorSpread, spread_constraints
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.topology import Topology
from penstock.sizing.placement.wishes import Wish
from penstock.sizing.plan import plan
from penstock.sizing.plan.alternatives import alternatives
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nodes import decisions
from penstock.sizing.plan.together import plan_together
from penstock.sizing.planned import Plan
from penstock.sizing.targets import Targets
from tests.sizing.clusters import PRODUCTION, codes, targets, violation, with_pool

ZONES = PRODUCTION.zones
ZONE = "topology.kubernetes.io/zone"
TWO_ZONES = with_pool("executors", requirements={ZONE: list(ZONES[:2])})


def spread_targets(parallelism: int = 91, slots: int = 13, *, executor: dict[str, Any] | None = None, **spread: Any) -> Targets:
    return targets(parallelism, slots, executor={**(executor or {}), "spread": ExecutorSpread(**spread)})


def _over(domain: str, asked: str) -> Targets:
    return targets(executor={"spread": ExecutorSpread.model_validate({domain: asked})})


def decided(wanted: Targets) -> tuple[Plan, tuple[Decision, Decision]]:
    made = plan(wanted, PRODUCTION)
    return made, decisions(pod_groups(made.pods, made.spark_conf, PRODUCTION), PRODUCTION, {})


def by_zone(decision: Decision) -> Counter[str]:
    """Zone -> its executors; a node in any of several zones counts in none."""
    result: Counter[str] = Counter()
    for claim in decision.node_claims:
        zones = claim.zones or ()
        result[zones[0] if len(zones) == 1 else "any"] += claim.pods.get(EXECUTOR, 0)
    return +result


def node_count(made: Plan) -> int:
    assert made.nodes is not None
    return made.nodes.staged.nodes


def usd_per_month(made: Plan) -> float:
    assert made.cost is not None
    return made.cost.total.usd_per_month.low


@pytest.mark.parametrize("seed", range(8))
def test_required_over_nodes_gives_each_executor_a_node_of_its_own(seed: int) -> None:
    random = Random(seed)
    made, both = decided(spread_targets(random.randint(1, 60), random.choice([1, 2, 4]), nodes="required"))
    for decision in both:
        per_node = [claim.pods[EXECUTOR] for claim in decision.node_claims if EXECUTOR in claim.pods]
        assert per_node == [1] * made.totals.executors
    assert made.feasible


@pytest.mark.parametrize("seed", range(8))
def test_required_over_zones_leaves_at_most_one_executor_between_two_zones(seed: int) -> None:
    random = Random(seed)
    cpu, mib = random.choice([500, 1000, 3000]), random.choice([2048, 8192])
    wanted = spread_targets(random.randint(1, 60), 1, zones="required", executor={"cpu_millicores": cpu, "memory_mib": mib})
    made, both = decided(wanted)
    for decision in both:
        zones = by_zone(decision)
        assert zones.total() == made.totals.executors
        assert zones["any"] == 0
        assert max(zones.values()) - min(zones.get(zone, 0) for zone in ZONES) <= 1
    assert made.feasible


def test_both_hold_at_once() -> None:
    made, both = decided(spread_targets(10, 1, nodes="required", zones="required"))
    for decision in both:
        assert sorted(by_zone(decision).values()) == [3, 3, 4]
        assert all(count == 1 for claim in decision.node_claims for count in claim.pods.values())
    assert node_count(made) == 11


def test_spreading_costs_what_its_nodes_cost() -> None:
    bare, zones, nodes = (plan(one, PRODUCTION) for one in (targets(), spread_targets(zones="required"), spread_targets(nodes="required")))
    assert [node_count(one) for one in (bare, zones, nodes)] == [2, 4, 8]
    assert usd_per_month(bare) < usd_per_month(zones) < usd_per_month(nodes)


def test_karpenter_takes_a_preference_as_required_while_it_can() -> None:
    for domain in ("nodes", "zones"):
        preferred, required = (plan(_over(domain, asked), PRODUCTION) for asked in ("preferred", "required"))
        assert preferred.nodes == required.nodes
        (note,) = [note for note in preferred.notes if "preferred" in note]
        assert note.startswith(f"spread.{domain}: preferred: ")
        assert not [note for note in required.notes if "spread." in note]


def test_a_zone_without_nodes_for_executors_is_named_with_what_helps() -> None:
    result = violation(spread_targets(zones="required"), TWO_ZONES, "SIZ-019")
    assert result.path == "executor"
    assert result.given == "7 executors, spread.zones: required"
    assert result.need.endswith(f"there can be none in {ZONES[2]}")
    assert result.fix == f"spread.zones: preferred, or allow {ZONES[2]} in a NodePool of the executors"
    # The first of the two fixes; the second is the pool as it is shipped.
    assert plan(spread_targets(zones="preferred"), TWO_ZONES).feasible


def test_fewer_executors_than_zones_need_a_node_in_as_many() -> None:
    assert plan(spread_targets(2, 1, zones="required"), TWO_ZONES).feasible
    assert codes(plan(spread_targets(3, 1, zones="required"), TWO_ZONES)) == ["SIZ-019"]


def test_where_a_limit_forbids_a_node_for_each_executor_a_preference_is_proposed() -> None:
    limited = with_pool("executors", limits={"cpu": "16"})
    assert plan(targets(), limited).feasible
    result = violation(spread_targets(nodes="required"), limited, "SIZ-010")
    assert result.fix.startswith("spread.nodes: preferred, or a parallelism of at most ")
    packed = plan(spread_targets(nodes="preferred"), limited)
    assert packed.feasible
    assert node_count(packed) < 8


def test_executors_of_several_jobs_are_spread_each_for_itself() -> None:
    jobs = {name: plan(spread_targets(39, 13, nodes="required", zones="required"), PRODUCTION) for name in ("a", "b")}
    together = plan_together(jobs, PRODUCTION)
    # Three nodes in three zones for the executors of both, and one for the drivers.
    assert together.feasible
    assert together.nodes.one_batch.nodes == 4
    executors = [node.pods for node in together.nodes.one_batch.groups if node.node_pool == "executors"]
    assert [(pods.group, pods.count) for node in executors for pods in node] == [("a/executor", 1), ("b/executor", 1)]


def test_other_sizes_of_executors_are_spread_too() -> None:
    wanted = spread_targets(40, 4, nodes="required", executor={"memory_mib": 8192, "cpu_millicores": 4000})
    nodes = {one.slots: one.nodes for one in alternatives(wanted, plan(wanted, PRODUCTION), PRODUCTION)}
    assert nodes == {2: 21, 4: 11, 8: 6}


def test_a_node_that_has_its_executor_is_not_tried_for_the_others_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, on_host = Counter[str](), Topology.on_host

    def counted(topology: Topology, group: Group, wish: Wish, host: str) -> bool:
        tried[host] += 1
        return on_host(topology, group, wish, host)

    monkeypatch.setattr(Topology, "on_host", counted)
    made = plan(spread_targets(200, 1, nodes="required"), PRODUCTION)
    assert node_count(made) == 201
    # Once for its executor and once for the next, in each of the ten batches in which the executors arrive and in the first of all.
    assert max(count for host, count in tried.items() if host.startswith("executors-")) <= 2 * 11


def test_only_a_required_spread_has_a_least_number_of_domains() -> None:
    nodes, zones = spread_constraints(ExecutorSpread(nodes="required", zones="preferred"), {"a": "b"}, executors=5, zones=3)
    common = {"maxSkew": 1, "labelSelector": {"matchLabels": {"a": "b"}}, "nodeTaintsPolicy": "Honor"}
    assert nodes == {**common, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 5}
    assert zones == {**common, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}


def test_the_explanation_of_the_nodes_says_how_executors_are_spread() -> None:
    said = {one.number: one.rule for one in plan(spread_targets(nodes="required", zones="preferred"), PRODUCTION).explain}
    assert said["nodes.staged.nodes"].endswith(", executors spread over nodes (required) and zones (preferred)")


def test_without_a_spread_nothing_is_constrained() -> None:
    made = plan(targets(), PRODUCTION)
    assert not [one for one in made.explain if "executors spread" in one.rule]
    assert made.pods.executor_spread is None
    _, executor = pod_groups(made.pods, made.spark_conf, PRODUCTION)
    assert executor.pod.spec.topology_spread_constraints == ()
