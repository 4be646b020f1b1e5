"""Topology rules, on scenarios that are small enough to decide by reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.errors import BadRequirement, NotModelled
from penstock.sizing.placement.scenario import read
from tests.sizing.placement.test_scenario import SPEC, changed, fault
from tests.sizing.placement.worlds import CPU, FAMILY, ZONE, Json, decide, decide_staged, needs, pods, pool

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POOL = pool("p", needs(FAMILY, "In", "m6i"), needs(CPU, "In", "16"))


def spread(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def web(count: int, *constraints: Json, name: str = "web", labels: Mapping[str, str] | None = None, **more: Any) -> Json:
    made = pods(name, count, topologySpreadConstraints=list(constraints), **more)
    made["pod"]["metadata"]["labels"] = {"app": "web"} if labels is None else dict(labels)
    return made


def term(key: str = ZONE, app: str = "web") -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def by_zone(decision: Decision) -> dict[str, int]:
    zones: dict[str, int] = {}
    for claim in decision.node_claims:
        zone = ",".join(claim.zones or ("any",))
        zones[zone] = zones.get(zone, 0) + sum(claim.pods.values())
    return zones


def node(name: str, zone: str, **running: int) -> Json:
    return {"name": name, "nodePool": "p", "instanceType": "m6i.large", "zone": zone, "capacityType": "on-demand", "pods": running}


def test_pods_are_spread_over_zones_and_fill_a_node_of_each() -> None:
    decision = decide([POOL], [web(8, spread())])
    assert len(decision.node_claims) == len(by_zone(decision)) == 3
    assert sorted(by_zone(decision).values()) == [2, 3, 3]


def test_a_zone_that_the_nodepool_does_not_allow_is_no_domain() -> None:
    two = pool("p", needs(FAMILY, "In", "m6i"), needs(CPU, "In", "16"), needs(ZONE, "In", "us-east-1a", "us-east-1c"))
    assert by_zone(decide([two], [web(4, spread())])) == {"us-east-1a": 2, "us-east-1c": 2}


def test_min_domains_hold_pods_back_until_there_are_enough_domains() -> None:
    decision = decide([POOL], [web(5, spread(minDomains=4))])
    assert (by_zone(decision), decision.unschedulable) == ({"us-east-1a": 1, "us-east-1b": 1, "us-east-1c": 1}, {"web": 2})
    why = "topology spread over topology.kubernetes.io/zone with maxSkew 1, minDomains 4; pods by domain: "
    assert [reason.why for reason in decision.reasons] == [f"{why}1 in us-east-1a, 1 in us-east-1b, 1 in us-east-1c"]


def test_a_spread_over_host_names_limits_the_pods_of_a_node() -> None:
    decision = decide([POOL], [web(5, spread(HOST, skew=2))])
    assert sorted(claim.pods["web"] for claim in decision.node_claims) == [1, 2, 2]
    assert by_zone(decision) == {"any": 5}


def test_schedule_anyway_holds_as_long_as_it_can_and_no_longer() -> None:
    limited = pool("p", needs(FAMILY, "In", "m6i"), needs(CPU, "In", "16"), limits={"cpu": "40"})
    decision = decide([limited], [web(4, spread(HOST, when="ScheduleAnyway"))])
    assert (sorted(claim.pods["web"] for claim in decision.node_claims), decision.unschedulable) == ([2, 2], {})
    hard = decide([limited], [web(4, spread(HOST))])
    assert (sorted(claim.pods["web"] for claim in hard.node_claims), hard.unschedulable) == ([1, 1], {"web": 2})


def test_running_pods_of_existing_nodes_count() -> None:
    nodes = [node("a", "us-east-1a", web=1), node("b", "us-east-1b", web=1)]
    decision = decide([POOL], [web(1, spread(), cpu="8")], existingNodes=nodes)
    assert by_zone(decision) == {"us-east-1c": 1}


def test_only_pods_that_the_selector_selects_count() -> None:
    nodes = [node("a", "us-east-1a", other=1)]
    groups = [web(1, spread(), cpu="8"), web(0, name="other", labels={"app": "other"})]
    assert by_zone(decide([POOL], groups, existingNodes=nodes)) == {"us-east-1a": 1}


def test_required_anti_affinity_gives_each_pod_a_node_and_repels_others_too() -> None:
    alone = {"podAntiAffinity": {REQUIRED: [term(HOST)]}}
    decision = decide([POOL], [web(2, affinity=alone), pods("free", 1, cpu="500m"), web(1, name="later", cpu="100m")])
    assert sorted(sorted(claim.pods) for claim in decision.node_claims) == [["free", "web"], ["later"], ["web"]]


def test_affinity_brings_pods_to_the_zone_of_others() -> None:
    near = {"podAffinity": {REQUIRED: [term(app="db")]}}
    database = web(1, name="db", labels={"app": "db"}, cpu="15", nodeSelector={ZONE: "us-east-1b"})
    decision = decide([POOL], [web(2, cpu="8", affinity=near), database])
    assert by_zone(decision) == {"us-east-1b": 3}


def test_affinity_to_pods_that_are_nowhere_leaves_a_pod_unschedulable_with_the_reason() -> None:
    decision = decide([POOL], [web(1, affinity={"podAffinity": {REQUIRED: [term(app="db")]}})])
    assert decision.unschedulable == {"web": 1}
    zones = "0 in us-east-1a, 0 in us-east-1b, 0 in us-east-1c"
    assert [reason.why for reason in decision.reasons] == [f"pod affinity over {ZONE}; pods by domain: {zones}"]


def test_preferred_anti_affinity_is_relaxed() -> None:
    apart = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term()}]}}
    decision = decide([POOL], [web(4, affinity=apart, cpu="4")])
    assert decision.unschedulable == {}
    assert sum(claim.pods["web"] for claim in decision.node_claims) == 4


def test_pods_that_arrive_later_are_spread_with_those_that_run() -> None:
    group = web(0, spread(), cpu="8")
    del group["count"]
    arrivals = [{"at_s": at_s, "group": "web", "count": 1} for at_s in (0, 100, 200)]
    decision = decide_staged([POOL], [group], arrivals=arrivals)
    assert [claim.zone for claim in decision.node_claims] == ["us-east-1a", "us-east-1b", "us-east-1c"]


@pytest.mark.parametrize("key", ["kubernetes.io/arch", "node.kubernetes.io/instance-type", "failure-domain.beta.kubernetes.io/zone"])
def test_a_topology_over_another_label_of_instance_types_is_rejected(key: str) -> None:
    result = fault(changed((*SPEC, "topologySpreadConstraints"), [spread(key)]))
    assert (type(result), result.path) == (NotModelled, "pods[0].pod.spec.topologySpreadConstraints[0].topologyKey")


def test_selectors_of_namespaces_and_label_keys_of_affinities_are_rejected() -> None:
    for field, value in (("namespaceSelector", {}), ("matchLabelKeys", ["x"]), ("mismatchLabelKeys", ["x"])):
        result = fault(changed((*SPEC, "affinity"), {"podAffinity": {REQUIRED: [{**term(), field: value}]}}))
        assert (type(result), result.path.rpartition(".")[2]) == (NotModelled, field)


@pytest.mark.parametrize(
    "constraint",
    [
        spread(when="ScheduleAnyway", minDomains=2),
        {**spread(), "labelSelector": None, "matchLabelKeys": ["version"]},
        {**spread(), "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {**spread(), "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
    ],
)
def test_a_constraint_that_kubernetes_refuses_is_rejected(constraint: Json) -> None:
    assert isinstance(fault(changed((*SPEC, "topologySpreadConstraints"), [constraint])), BadRequirement)


def test_affinity_of_a_daemon_set_to_pods_is_rejected() -> None:
    document = changed((*SPEC, "tolerations"), [])
    spec = {"containers": [{"name": "c"}], "affinity": {"podAntiAffinity": {REQUIRED: [term()]}}}
    document["daemonSets"] = [{"metadata": {"name": "d"}, "spec": {"template": {"spec": spec}}}]
    result = fault(document)
    assert (type(result), result.path) == (NotModelled, "daemonSets[0].spec.template.spec.affinity")


def test_an_empty_affinity_is_none() -> None:
    read(changed((*SPEC, "affinity"), {"podAffinity": {}, "podAntiAffinity": {}}))
