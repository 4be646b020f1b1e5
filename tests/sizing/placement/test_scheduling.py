"""The rules of Karpenter's scheduling, one at a time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.catalog.allocatable import NodeSettings, allocatable
from penstock.sizing.catalog.catalog import shipped
from tests.sizing.placement.worlds import CAPACITY, CPU, FAMILY, TYPE, ZONE, affinity, claims, daemon, decide, needs, pods, pool, taint

EIGHT = needs(TYPE, "In", "m6i.2xlarge")
MIB = 1024 * 1024


def allocatable_mib(name: str) -> int:
    node = shipped().get(name)
    assert node is not None
    return allocatable(node, NodeSettings()).memory_mib


def test_a_claim_grows_until_no_type_would_fit() -> None:
    assert claims(decide([pool("p", EIGHT)], [pods("a", 9, cpu="1900m")])) == [("p", {"a": 1}), ("p", {"a": 4}), ("p", {"a": 4})]


def test_with_free_sizes_all_pods_land_on_one_large_node() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i"))], [pods("a", 10, cpu="4")])
    assert claims(decision) == [("p", {"a": 10})]
    assert set(decision.node_claims[0].instance_types) == {"m6i.12xlarge", "m6i.16xlarge", "m6i.24xlarge", "m6i.32xlarge", "m6i.metal"}


def test_a_pod_of_exactly_the_allocatable_fits_and_one_of_a_byte_more_does_not() -> None:
    room = allocatable_mib("m6i.2xlarge") * MIB
    assert not decide([pool("p", EIGHT)], [pods("a", 1, memory=str(room))]).unschedulable
    assert decide([pool("p", EIGHT)], [pods("a", 1, memory=str(room + 1))]).unschedulable == {"a": 1}


def test_the_pods_limit_of_a_node_counts_daemon_sets() -> None:
    groups = [pods("a", 3, cpu="1m", memory="1Mi")]
    settings = NodeSettings(max_pods=3)
    assert claims(decide([pool("p", EIGHT)], groups, settings=settings)) == [("p", {"a": 3})]
    assert claims(decide([pool("p", EIGHT)], groups, [daemon("d")], settings)) == [("p", {"a": 1}), ("p", {"a": 2})]


def test_large_pods_come_first_and_small_ones_fill_up() -> None:
    assert claims(decide([pool("p", EIGHT)], [pods("small", 2, cpu="500m"), pods("large", 2, cpu="6")])) == [
        ("p", {"large": 1, "small": 1}),
        ("p", {"large": 1, "small": 1}),
    ]


def test_the_claim_with_the_fewest_pods_takes_the_next_pod() -> None:
    decision = decide([pool("p", EIGHT)], [pods("a", 2, cpu="4"), pods("b", 1, cpu="3"), pods("c", 1, cpu="500m")])
    assert claims(decision) == [("p", {"a": 1, "b": 1}), ("p", {"a": 1, "c": 1})]


def test_pools_are_tried_by_weight_and_then_by_name_from_the_end() -> None:
    groups = [pods("a", 1)]
    assert claims(decide([pool("a", EIGHT), pool("b", EIGHT)], groups)) == [("b", {"a": 1})]
    assert claims(decide([pool("a", EIGHT, weight=2), pool("b", EIGHT, weight=1)], groups)) == [("a", {"a": 1})]
    assert claims(decide([pool("a", EIGHT, weight=1), pool("b", EIGHT)], groups)) == [("a", {"a": 1})]


def test_a_pod_goes_to_a_lighter_pool_only_if_a_heavier_one_has_no_room() -> None:
    pools = [pool("small", needs(TYPE, "In", "m6i.large"), weight=10), pool("large", EIGHT, weight=1)]
    assert claims(decide(pools, [pods("a", 1, cpu="1"), pods("b", 1, cpu="4")])) == [("large", {"a": 1, "b": 1})]
    assert claims(decide(pools, [pods("a", 1, cpu="1")])) == [("small", {"a": 1})]


def test_a_taint_keeps_pods_out_that_do_not_tolerate_it() -> None:
    tainted = pool("p", EIGHT, taints=[taint("role", "driver")])
    assert decide([tainted], [pods("a", 1)]).unschedulable == {"a": 1}
    tolerant = pods("a", 1, tolerations=[{"key": "role", "operator": "Equal", "value": "driver", "effect": "NoSchedule"}])
    assert not decide([tainted], [tolerant]).unschedulable


def test_prefer_no_schedule_holds_until_there_is_no_other_place() -> None:
    soft = pool("soft", EIGHT, taints=[taint("role", "x", "PreferNoSchedule")], weight=100)
    assert claims(decide([soft, pool("plain", EIGHT)], [pods("a", 1)])) == [("plain", {"a": 1})]
    assert claims(decide([soft], [pods("a", 1)])) == [("soft", {"a": 1})]


def test_a_node_selector_on_a_pools_own_label_chooses_the_pool() -> None:
    pools = [pool("a", EIGHT, labels={"team": "x"}), pool("b", EIGHT, labels={"team": "y"})]
    assert claims(decide(pools, [pods("g", 1, nodeSelector={"team": "x"})])) == [("a", {"g": 1})]
    assert decide(pools, [pods("g", 1, nodeSelector={"team": "z"})]).unschedulable == {"g": 1}
    assert decide(pools, [pods("g", 1, nodeSelector={"unheard": "z"})]).unschedulable == {"g": 1}


def test_a_pod_that_requires_the_absence_of_a_label_is_placed_on_a_node_without_it() -> None:
    pools = [pool("with", EIGHT, labels={"team": "x"}, weight=9), pool("without", EIGHT)]
    assert claims(decide(pools, [pods("g", 1, affinity=affinity([needs("team", "DoesNotExist")]))])) == [("without", {"g": 1})]


def test_a_node_selector_on_a_well_known_label_narrows_the_types() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i", "m7g"))], [pods("g", 1, nodeSelector={"kubernetes.io/arch": "arm64"})])
    assert all(name.startswith("m7g.") for name in decision.node_claims[0].instance_types)


def test_an_old_name_of_a_label_narrows_the_types_too() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i", "m7g"))], [pods("g", 1, nodeSelector={"beta.kubernetes.io/arch": "arm64"})])
    assert all(name.startswith("m7g.") for name in decision.node_claims[0].instance_types)


def test_required_terms_are_tried_one_after_another() -> None:
    terms = affinity([needs(FAMILY, "In", "m99")], [needs(FAMILY, "In", "m6i")])
    decision = decide([pool("p", needs(CPU, "In", "8"))], [pods("g", 1, affinity=terms)])
    assert decision.node_claims[0].instance_types == ("m6i.2xlarge",)


def test_a_preference_is_held_while_it_can_be_and_given_up_then() -> None:
    wish = affinity(preferred=[(10, [needs(FAMILY, "In", "m6i")])])
    decision = decide([pool("p", needs(CPU, "In", "8"))], [pods("g", 1, affinity=wish)])
    assert decision.node_claims[0].instance_types == ("m6i.2xlarge",)
    impossible = affinity(preferred=[(10, [needs(FAMILY, "In", "m99")]), (5, [needs(FAMILY, "In", "m6i")])])
    decision = decide([pool("p", needs(CPU, "In", "8"))], [pods("g", 1, affinity=impossible)])
    assert decision.node_claims[0].instance_types == ("m6i.2xlarge",)


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["8"], {"8"}),
        ("NotIn", ["8", "16"], {"2", "4", "32", "48", "64", "96", "128"}),
        ("Gt", ["32"], {"48", "64", "96", "128"}),
        ("Lt", ["8"], {"2", "4"}),
        ("Gte", ["64"], {"64", "96", "128"}),
        ("Lte", ["4"], {"2", "4"}),
        ("Exists", [], {"2", "4", "8", "16", "32", "48", "64", "96", "128"}),
    ],
)
def test_a_pools_requirement_selects_types_by_each_operator(operator: str, values: list[str], expected: set[str]) -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i"), needs(CPU, operator, *values))], [pods("g", 1, cpu="100m")])
    result = [shipped().get(name) for name in decision.node_claims[0].instance_types]
    assert {str(instance.vcpu) for instance in result if instance} == expected


def test_exists_leaves_out_types_without_the_label_and_does_not_exist_those_with_it() -> None:
    nvme = "karpenter.k8s.aws/instance-local-nvme"
    families = needs(FAMILY, "In", "m6i", "m6id")
    for operator, prefix in (("Exists", "m6id."), ("DoesNotExist", "m6i."), ("Gt", "m6id.")):
        values = ["0"] if operator == "Gt" else []
        decision = decide([pool("p", families, needs(nvme, operator, *values))], [pods("g", 1)])
        assert all(name.startswith(prefix) for name in decision.node_claims[0].instance_types)


def test_a_pool_whose_requirements_leave_no_type_is_left_out() -> None:
    decision = decide([pool("none", needs(FAMILY, "In", "m99"), weight=50), pool("p", EIGHT)], [pods("g", 1)])
    assert claims(decision) == [("p", {"g": 1})]


def test_a_type_without_a_price_or_outside_of_the_zones_is_never_taken() -> None:
    for name in ("r9g.large", "trn2.48xlarge"):
        assert decide([pool("p", needs(TYPE, "In", name))], [pods("g", 1, cpu="100m", memory="1Mi")]).unschedulable == {"g": 1}


def test_a1_machines_run_bottlerocket_but_not_al2023() -> None:
    pools, groups = [pool("p", needs(TYPE, "In", "a1.large"))], [pods("g", 1)]
    assert decide(pools, groups).unschedulable == {"g": 1}
    assert not decide(pools, groups, settings=NodeSettings(ami_family="Bottlerocket")).unschedulable


def test_a_zone_that_a_type_is_not_sold_in_leaves_it_out() -> None:
    only_a_and_c = next(
        instance for instance in shipped().types if instance.zones == ("us-east-1a", "us-east-1c") and instance.on_demand_usd_per_h
    )
    group = pods("g", 1, cpu="100m", memory="1Mi")
    for zone, count in (("us-east-1a", 1), ("us-east-1b", 0)):
        decision = decide([pool("p", needs(TYPE, "In", only_a_and_c.name), needs(ZONE, "In", zone))], [group])
        assert len(decision.node_claims) == count


def test_a_limit_leaves_out_types_that_exceed_what_remains() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i"), limits={"cpu": "8"})], [pods("g", 1, cpu="1")])
    assert set(decision.node_claims[0].instance_types) == {"m6i.large", "m6i.xlarge", "m6i.2xlarge"}


def test_a_claim_counts_its_largest_type_against_the_limit() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i"), limits={"cpu": 10})], [pods("g", 5, cpu="3")])
    assert (claims(decision), decision.unschedulable) == ([("p", {"g": 2})], {"g": 3})


def test_each_pool_has_limits_of_its_own() -> None:
    pools = [pool("a", EIGHT, limits={"cpu": "8"}), pool("b", EIGHT, limits={"memory": "60Gi"})]
    decision = decide(pools, [pods("g", 9, cpu="7")])
    assert [name for name, _ in claims(decision)] == ["a", "b", "b"]
    assert decision.unschedulable == {"g": 6}


def test_a_limit_of_nodes_binds_only_when_it_is_used_up_before() -> None:
    assert len(decide([pool("p", EIGHT, limits={"nodes": "1"})], [pods("g", 2, cpu="7")]).node_claims) == 2
    assert decide([pool("p", EIGHT, limits={"nodes": "0"})], [pods("g", 2, cpu="7")]).unschedulable == {"g": 2}


def test_daemon_sets_take_their_requests_off_every_node() -> None:
    room = allocatable_mib("m6i.2xlarge")
    group = pods("g", 1, memory=f"{room - 128}Mi")
    assert not decide([pool("p", EIGHT)], [group], [daemon("d", memory="128Mi")]).unschedulable
    assert decide([pool("p", EIGHT)], [group], [daemon("d", memory="129Mi")]).unschedulable == {"g": 1}


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"nodeSelector": {"kubernetes.io/arch": "arm64"}},
        {"nodeSelector": {"team": "x"}},
        {"affinity": affinity([needs(FAMILY, "In", "m7g")])},
    ],
)
def test_a_daemon_set_that_does_not_run_on_a_type_takes_nothing_of_it(elsewhere: dict[str, Any]) -> None:
    group = pods("g", 1, memory=f"{allocatable_mib('m6i.2xlarge')}Mi")
    assert not decide([pool("p", EIGHT)], [group], [daemon("d", **elsewhere)]).unschedulable


def test_a_daemon_set_must_tolerate_the_pools_taints_but_never_minds_prefer_no_schedule() -> None:
    group = pods("g", 1, memory=f"{allocatable_mib('m6i.2xlarge')}Mi", tolerations=[{"operator": "Exists"}])
    assert not decide([pool("p", EIGHT, taints=[taint("t")])], [group], [daemon("d")]).unschedulable
    assert decide([pool("p", EIGHT, taints=[taint("t", effect="PreferNoSchedule")])], [group], [daemon("d")]).unschedulable == {"g": 1}


def test_a_daemon_set_may_select_the_labels_of_nodes_that_are_ready() -> None:
    group = pods("g", 1, memory=f"{allocatable_mib('m6i.2xlarge')}Mi")
    selective = daemon("d", nodeSelector={"karpenter.sh/initialized": "true"})
    assert decide([pool("p", EIGHT)], [group], [selective]).unschedulable == {"g": 1}


def test_init_containers_count_where_they_take_more_and_sidecars_are_added() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    big = {"name": "i", "resources": {"requests": {"cpu": "7"}}}
    side = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    for extra, expected in (([big], 2), ([side], 1), ([side, big], 0)):
        group = pods("g", 2, initContainers=extra)
        group["pod"]["spec"]["containers"] = [container]
        assert len(decide([pool("p", EIGHT)], [group]).node_claims) == expected


def test_a_limit_without_a_request_is_the_request() -> None:
    group = pods("g", 2, cpu=None, memory=None)
    group["pod"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "7"}}
    assert len(decide([pool("p", EIGHT)], [group]).node_claims) == 2


def test_overhead_is_added_and_requests_of_the_whole_pod_stand_for_its_containers() -> None:
    assert len(decide([pool("p", EIGHT)], [pods("g", 2, cpu="1", overhead={"cpu": "6"})]).node_claims) == 2
    assert len(decide([pool("p", EIGHT)], [pods("g", 2, cpu="1", resources={"requests": {"cpu": "7"}})]).node_claims) == 2


def test_gpus_are_found_on_machines_that_have_them() -> None:
    decision = decide([pool("p", needs(FAMILY, "In", "m6i", "g5"))], [pods("g", 1, requests={"nvidia.com/gpu": "4"})])
    assert set(decision.node_claims[0].instance_types) == {"g5.12xlarge", "g5.24xlarge", "g5.48xlarge"}


def test_min_values_keep_a_claim_open_to_several_families() -> None:
    requirement = needs(FAMILY, "In", "m6i", "m6a", min_values=2)
    decision = decide([pool("p", requirement, needs(CPU, "In", "2"))], [pods("g", 1, cpu="1")])
    assert set(decision.node_claims[0].instance_types) == {"m6a.large", "m6i.large"}
    room = max(allocatable_mib("m6i.large"), allocatable_mib("m6a.large"))
    assert decide([pool("p", requirement, needs(CPU, "In", "2"))], [pods("g", 1, memory=f"{room + 1}Mi")]).unschedulable == {"g": 1}


def test_pods_that_select_a_label_of_karpenters_own_are_passed_over_with_a_reason() -> None:
    decision = decide([pool("p", EIGHT)], [pods("g", 2, nodeSelector={"karpenter.sh/unheard": "x"}), pods("h", 1)])
    assert (claims(decision), decision.unschedulable) == ([("p", {"h": 1})], {"g": 2})
    assert "karpenter.sh/unheard" in decision.reasons[0].why


def test_a_pod_that_wants_no_node_of_karpenter_gets_none() -> None:
    group = pods("g", 1, affinity=affinity([needs("karpenter.sh/nodepool", "DoesNotExist")]))
    assert decide([pool("p", EIGHT)], [group]).unschedulable == {"g": 1}


def test_no_pods_make_no_claims() -> None:
    decision = decide([pool("p", EIGHT)], [pods("g", 0)])
    assert decision.as_json() == {"node_claims": [], "unschedulable": {}}


@pytest.mark.parametrize(
    ("pools", "group", "why"),
    [
        ([pool("p", EIGHT, taints=[taint("t", "x")])], pods("g", 1), "taint t=x:NoSchedule"),
        ([pool("p", EIGHT)], pods("g", 1, nodeSelector={"team": "x"}), "team: x; it allows no such label"),
        ([pool("p", EIGHT)], pods("g", 1, nodeSelector={"kubernetes.io/arch": "arm64"}), "no offered instance type satisfies"),
        ([pool("p", EIGHT)], pods("g", 1, cpu="9"), "a pod requests 9 CPU, 1,024 MiB; the allowed types have at most 7.91 CPU"),
        ([pool("p", EIGHT, limits={"cpu": "4"})], pods("g", 1), "4 of 4 cpu is left"),
        ([pool("p", EIGHT, limits={"memory": "16Gi"})], pods("g", 1), "16 GiB of 16 GiB memory is left"),
        ([pool("p", needs(FAMILY, "In", "m99"))], pods("g", 1), "no instance type offered in these zones"),
        ([pool("p", needs(FAMILY, "Exists", min_values=2), EIGHT)], pods("g", 1), "no instance type offered in these zones"),
    ],
)
def test_what_stays_unschedulable_says_why(pools: list[dict[str, object]], group: dict[str, object], why: str) -> None:
    decision = decide(pools, [group])
    assert decision.unschedulable == {"g": 1}
    assert why in decision.reasons[0].why


@pytest.mark.parametrize("by_pod", [False, True])
def test_without_a_spot_price_pods_that_only_spot_may_have_say_so(by_pod: bool) -> None:
    on_spot, any_capacity = needs(CAPACITY, "In", "spot"), needs(CAPACITY, "In", "spot", "on-demand")
    pools = [pool("p", any_capacity if by_pod else on_spot)]
    group = pods("g", 1, affinity=affinity([on_spot])) if by_pod else pods("g", 1)
    decision = decide(pools, [group], spotModel=None, spotRatio=None)
    assert decision.unschedulable == {"g": 1}
    assert decision.reasons[0].why.startswith("only spot is allowed, and no spot price is known; set spotRatio")
    assert not decide(pools, [group]).unschedulable
    assert not decide([pool("p", any_capacity)], [pods("g", 1)], spotModel=None, spotRatio=None).unschedulable


def test_existing_nodes_are_filled_first_by_name() -> None:
    nodes = [
        {
            "name": name,
            "nodePool": "p",
            "instanceType": "m6i.2xlarge",
            "zone": "us-east-1a",
            "capacityType": "on-demand",
            "pods": {"g": result},
        }
        for name, result in (("b", 0), ("a", 6))
    ]
    decision = decide([pool("p", EIGHT)], [pods("g", 10)], existingNodes=nodes)
    assert decision.existing_nodes == {"a": {"g": 1}, "b": {"g": 7}}
    assert claims(decision) == [("p", {"g": 2})]


def test_an_existing_node_must_have_every_label_that_is_asked_of_it() -> None:
    node = {"name": "n", "nodePool": "p", "instanceType": "m6i.2xlarge", "zone": "us-east-1a", "capacityType": "spot"}
    asked = pods("g", 1, nodeSelector={ZONE: "us-east-1b"})
    decision = decide([pool("p", EIGHT, needs(CAPACITY, "Exists"))], [asked], existingNodes=[node])
    assert (decision.existing_nodes, claims(decision)) == ({}, [("p", {"g": 1})])


def test_existing_nodes_count_against_the_limits_with_their_own_capacity() -> None:
    node = {
        "name": "n",
        "nodePool": "p",
        "instanceType": "m6i.2xlarge",
        "zone": "us-east-1a",
        "capacityType": "on-demand",
        "pods": {"g": 1},
    }
    decision = decide([pool("p", EIGHT, limits={"cpu": "15"})], [pods("g", 1, cpu="7")], existingNodes=[node])
    assert decision.unschedulable == {"g": 1}
