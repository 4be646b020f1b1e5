"""Pods that arrive over time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.placement.scenario import read
from penstock.sizing.placement.staged import batches
from tests.sizing.placement.worlds import FAMILY, TYPE, affinity, claims, daemon, decide, decide_staged, needs, pods, pool, scenario

EIGHT = needs(TYPE, "In", "m6i.2xlarge")


def arrival(at_s: float, group: str, count: int) -> dict[str, object]:
    return {"at_s": at_s, "group": group, "count": count}


def group(name: str, **more: object) -> dict[str, object]:
    result = pods(name, 0, **more)  # type: ignore[arg-type]
    del result["count"]
    return result


def ends(*times: float, **more: Any) -> list[tuple[float, int]]:
    document = scenario([pool("p")], [group("g")], arrivals=[arrival(at_s, "g", 1) for at_s in times], **more)
    return [(end, sum(count.values())) for end, count in batches(read(document))]


def test_a_batch_ends_when_no_pod_has_come_for_the_idle_time() -> None:
    assert ends(0, 0.5, 1.2, 5) == [(2.2, 3), (6, 1)]


def test_a_batch_ends_after_the_longest_time_though_pods_still_come() -> None:
    assert ends(*(0.5 * step for step in range(30))) == [(10, 20), (15.5, 10)]


def test_a_pod_that_comes_as_a_batch_ends_is_of_the_next_one() -> None:
    assert ends(0, 1) == [(1, 1), (2, 1)]


def test_the_windows_are_inputs() -> None:
    assert ends(0, 3, batchIdle_s=4) == [(7, 2)]
    assert ends(0, 3, batchIdle_s=4, batchMax_s=2) == [(2, 1), (5, 1)]


def test_the_order_of_arrivals_in_the_document_does_not_matter() -> None:
    assert ends(5, 0, 1.2, 0.5) == ends(0, 0.5, 1.2, 5)


def test_without_arrivals_it_is_one_batch() -> None:
    pools, groups = [pool("p", EIGHT)], [pods("g", 9, cpu="1900m")]
    staged = decide_staged(pools, groups)
    assert sorted(map(str, claims(staged))) == sorted(map(str, claims(decide(pools, groups))))
    assert {claim.at_s for claim in staged.node_claims} == {1.0}


def test_a_node_on_its_way_takes_further_pods_within_the_room_of_its_type() -> None:
    decision = decide_staged(
        [pool("p", needs(FAMILY, "In", "m6i"))], [group("g", cpu="1")], arrivals=[arrival(0, "g", 3), arrival(5, "g", 1)]
    )
    # The first claim allows any size; the cheapest is launched, an xlarge with 3.92 cores, which has no room for a fourth pod of one core.
    assert [(claim.at_s, claim.cheapest_type, claim.pods) for claim in decision.node_claims] == [
        (1, "m6i.xlarge", {"g": 3}),
        (6, "m6i.large", {"g": 1}),
    ]


def test_pods_that_still_wait_are_placed_anew_and_large_ones_take_their_place() -> None:
    arrivals = [arrival(0, "small", 3), arrival(5, "large", 1)]
    groups = [group("small", cpu="1"), group("large", cpu="3")]
    before, after = (
        decide_staged([pool("p", needs(TYPE, "In", "m6i.xlarge"))], groups, arrivals=arrivals, boot_s=boot) for boot in (45, 1)
    )
    assert [claim.pods for claim in before.node_claims] == [{"large": 1}, {"small": 3}]
    assert [claim.pods for claim in after.node_claims] == [{"small": 3}, {"large": 1}]


def test_in_one_batch_fewer_nodes_do() -> None:
    pools, groups = [pool("p", needs(FAMILY, "In", "m6i"))], [group("g", cpu="3")]
    staged = decide_staged(pools, groups, arrivals=[arrival(3 * step, "g", 1) for step in range(4)])
    assert len(staged.node_claims) == 4
    assert len(decide(pools, [pods("g", 4, cpu="3")]).node_claims) == 1


def test_a_limit_counts_the_type_that_came_so_that_waiting_pods_find_room_later() -> None:
    pools = [pool("p", needs(FAMILY, "In", "m6i"), limits={"cpu": "64"})]
    apart = [pods("a", 1, cpu="15"), pods("b", 1, cpu="1", affinity=affinity([needs(TYPE, "In", "m6i.large")]))]
    assert decide(pools, apart).unschedulable == {"b": 1}
    staged = decide_staged(pools, apart)
    assert staged.unschedulable == {}
    assert [claim.at_s for claim in staged.node_claims] == [1, 11]


def test_what_fits_nowhere_ends_the_retries() -> None:
    decision = decide_staged([pool("p", EIGHT)], [pods("g", 2, cpu="9")])
    assert (decision.node_claims, decision.unschedulable) == ((), {"g": 2})
    assert decision.reasons


def test_existing_nodes_take_pods_as_they_come() -> None:
    node = {
        "name": "n",
        "nodePool": "p",
        "instanceType": "m6i.2xlarge",
        "zone": "us-east-1a",
        "capacityType": "on-demand",
        "pods": {"g": 3},
    }
    decision = decide_staged(
        [pool("p", EIGHT)], [group("g", cpu="1")], existingNodes=[node], arrivals=[arrival(0, "g", 3), arrival(60, "g", 2)]
    )
    assert decision.existing_nodes == {"n": {"g": 4}}
    assert claims(decision) == [("p", {"g": 1})]


def test_daemon_sets_come_off_nodes_on_their_way_too() -> None:
    groups, arrivals = [group("g", cpu="3")], [arrival(0, "g", 1), arrival(5, "g", 1)]
    pools = [pool("p", EIGHT)]
    assert len(decide_staged(pools, groups, [daemon("d", cpu="1")], arrivals=arrivals).node_claims) == 1
    assert len(decide_staged(pools, groups, [daemon("d", cpu="2")], arrivals=arrivals).node_claims) == 2


def test_a_launch_that_fails_leaves_its_pods_waiting() -> None:
    wide = [needs("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"), needs("karpenter.k8s.aws/instance-generation", "Gt", "6")]
    decision = decide_staged([pool("p", *wide, needs(FAMILY, "Exists", min_values=40))], [pods("g", 1, cpu="45")])
    assert (decision.node_claims, decision.unschedulable) == ((), {"g": 1})


@pytest.mark.parametrize("label", ["x", "y"])
def test_a_node_on_its_way_has_the_custom_label_that_its_claim_settled(label: str) -> None:
    pools = [pool("p", EIGHT, needs("team", "In", "x", "y"))]
    groups = [group("g", nodeSelector={"team": label})]
    decision = decide_staged(pools, groups, arrivals=[arrival(0, "g", 1), arrival(5, "g", 1)])
    assert claims(decision) == [("p", {"g": 2})]
