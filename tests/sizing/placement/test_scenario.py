"""Validation of scenarios, and the errors of invalid ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from penstock.sizing.errors import Faults, PenstockError
from penstock.sizing.placement.errors import BadRequirement, BadResource, BadScenario, NoSpotPrice, NotModelled, UnknownName
from penstock.sizing.placement.scenario import read
from tests.sizing.placement.worlds import FAMILY, daemon, decide, needs, pods, pool, scenario

GOOD = scenario([pool("p", needs(FAMILY, "In", "m6i"))], [pods("g", 1)])
SPEC = ("pods", 0, "pod", "spec")
CONTAINER = (*SPEC, "containers", 0)
TEMPLATE = ("nodePools", 0, "spec", "template", "spec")


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


def fault(document: object, path: str = "") -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        read(document, path)
    assert len(caught.value.errors) == 1, caught.value.render()
    return caught.value.errors[0]


def test_a_scenario_is_read_with_or_without_its_key() -> None:
    assert read(GOOD) == read({"scenario": GOOD, "decision": {}})


@pytest.mark.parametrize(
    ("field", "value"),
    [("nodeName", "n"), ("runtimeClassName", "gvisor"), ("somethingNew", 1)],
)
def test_a_field_of_a_pod_that_is_not_modelled_is_rejected_with_its_path(field: str, value: Any) -> None:
    result = fault(changed((*SPEC, field), value))
    assert result.path == f"pods[0].pod.spec.{field}"
    assert isinstance(result, NotModelled)


@pytest.mark.parametrize(("field", "value"), [("hostNetwork", True), ("schedulerName", "other")])
def test_a_value_of_a_pods_field_that_is_not_modelled_is_rejected_with_its_path(field: str, value: Any) -> None:
    assert fault(changed((*SPEC, field), value)).path == f"pods[0].pod.spec.{field}"


@pytest.mark.parametrize("kind", ["persistentVolumeClaim", "ephemeral", "csi"])
def test_a_volume_that_can_bind_a_pod_to_a_zone_is_rejected(kind: str) -> None:
    result = fault(changed((*SPEC, "volumes"), [{"name": "v", kind: {}}]))
    assert (type(result), result.path) == (NotModelled, f"pods[0].pod.spec.volumes[0].{kind}")


def test_a_port_of_the_host_is_rejected_and_one_of_the_container_is_not() -> None:
    read(changed((*CONTAINER, "ports"), [{"containerPort": 80}]))
    result = fault(changed((*CONTAINER, "ports"), [{"containerPort": 80, "hostPort": 80}]))
    assert result.path == "pods[0].pod.spec.containers[0].ports[0].hostPort"


def test_node_fields_are_rejected() -> None:
    terms: dict[str, Any] = {"nodeSelectorTerms": [{"matchFields": []}]}
    result = fault(changed((*SPEC, "affinity"), {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}))
    assert result.path.endswith("nodeSelectorTerms[0].matchFields")


@pytest.mark.parametrize("name", ["vpc.amazonaws.com/efa", "hugepages-2Mi", "example.com/thing", "pods"])
def test_a_resource_that_is_not_modelled_is_rejected(name: str) -> None:
    result = fault(changed((*CONTAINER, "resources"), {"requests": {name: "1"}}))
    assert isinstance(result, NotModelled)
    assert result.given == name


@pytest.mark.parametrize("value", ["nan", "-1Gi", "500 Mi", "1Gib", "", None, True])
def test_what_is_no_quantity_is_rejected_with_its_path(value: Any) -> None:
    result = fault(changed((*CONTAINER, "resources"), {"requests": {"memory": value}}))
    assert (type(result), result.path) == (BadResource, "pods[0].pod.spec.containers[0].resources.requests.memory")


def test_half_a_gpu_is_rejected() -> None:
    assert isinstance(fault(changed((*CONTAINER, "resources"), {"requests": {"nvidia.com/gpu": "500m"}})), BadResource)


@pytest.mark.parametrize(
    "requirement",
    [
        {"key": FAMILY, "operator": "In"},
        {"key": FAMILY, "operator": "Exists", "values": ["m6i"]},
        {"key": FAMILY, "operator": "Gt", "values": ["x"]},
        {"key": FAMILY, "operator": "Gt", "values": ["1", "2"]},
        {"key": FAMILY, "operator": "Lt", "values": ["-1"]},
        {"key": FAMILY, "operator": "In", "values": ["m6i"], "minValues": 2},
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]},
        {"key": "karpenter.k8s.aws/instance-cpus", "operator": "In", "values": ["x"]},
        {"key": "kubernetes.io/hostname", "operator": "Exists"},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["sport"]},
        {"key": "a b", "operator": "Exists"},
        {"key": FAMILY, "operator": "In", "values": ["a b"]},
    ],
)
def test_a_requirement_that_karpenter_refuses_is_rejected(requirement: dict[str, Any]) -> None:
    result = fault(changed((*TEMPLATE, "requirements"), [requirement]))
    assert isinstance(result, BadRequirement)
    assert result.path.startswith("nodePools[0].spec.template.spec.requirements[0]")


def test_ids_of_zones_are_rejected_because_they_differ_between_accounts() -> None:
    zone_id = {"key": "topology.k8s.aws/zone-id", "operator": "In", "values": ["use1-az1"]}
    assert isinstance(fault(changed((*TEMPLATE, "requirements"), [zone_id])), NotModelled)
    assert isinstance(fault(changed((*SPEC, "nodeSelector"), {"topology.k8s.aws/zone-id": "use1-az1"})), NotModelled)


@pytest.mark.parametrize(
    ("path", "value", "at"),
    [
        (("spotModel",), "auction", "spotModel"),
        (("spotRatio",), "half", "spotRatio"),
        (("spotRatio",), 0, "spotRatio"),
        (("spotModel",), "catalog", "spotModel"),
        (("pods", 0, "count"), -1, "pods[0].count"),
        (("pods", 0, "count"), 1.5, "pods[0].count"),
        (("pods", 0, "count"), True, "pods[0].count"),
        (("pods", 0, "count"), "3", "pods[0].count"),
        (("nodePools",), [], "nodePools"),
        (("nodePools", 0, "spec", "weight"), 101, "nodePools[0].spec.weight"),
        (("pods",), {}, "pods"),
        ((*SPEC, "containers"), [], "pods[0].pod.spec.containers"),
        (("nodePools", 0, "kind"), "Provisioner", "nodePools[0].kind"),
    ],
)
def test_a_value_of_a_wrong_kind_or_out_of_range_is_rejected_with_its_path(path: tuple[str | int, ...], value: Any, at: str) -> None:
    result = fault(changed(path, value))
    assert (type(result), result.path) == (BadScenario, at)


def test_static_node_pools_are_rejected() -> None:
    assert isinstance(fault(changed(("nodePools", 0, "spec", "replicas"), 3)), NotModelled)


def test_what_is_missing_is_named() -> None:
    document = copy.deepcopy(GOOD)
    del document["pods"]
    assert fault(document, "here").path == "here.pods"


def test_a_ratio_is_needed_where_spot_prices_are_a_ratio() -> None:
    document = copy.deepcopy(GOOD)
    del document["spotRatio"]
    assert fault(document).path == "spotRatio"


def test_all_faults_come_at_once_and_none_that_only_follows() -> None:
    document = changed((*CONTAINER, "resources"), {"requests": {"cpu": "x", "memory": "y"}})
    document["spotModel"] = "z"
    with pytest.raises(Faults) as caught:
        read({"scenario": document})
    assert [error.path for error in caught.value.errors] == [
        "scenario.pods[0].pod.spec.containers[0].resources.requests.cpu",
        "scenario.pods[0].pod.spec.containers[0].resources.requests.memory",
        "scenario.spotModel",
    ]


@pytest.mark.parametrize("document", [None, [], "text", 3, {"scenario": []}, {"scenario": None}])
def test_what_is_no_mapping_is_rejected(document: object) -> None:
    assert isinstance(fault(document), BadScenario)


@pytest.mark.parametrize("field", ["nodePools", "pods"])
def test_two_of_one_name_are_rejected(field: str) -> None:
    document = copy.deepcopy(GOOD)
    document[field] = document[field] * 2
    assert fault(document).path == f"{field}[1]"


NODE = {"name": "n", "nodePool": "p", "instanceType": "m6i.large", "zone": "us-east-1a", "capacityType": "spot"}


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"existingNodes": [{**NODE, "nodePool": "q"}]}, "existingNodes[0].nodePool"),
        ({"existingNodes": [{**NODE, "pods": {"h": 1}}]}, "existingNodes[0].pods.h"),
        ({"arrivals": [{"at_s": 0, "group": "h", "count": 1}]}, "arrivals[0].group"),
    ],
)
def test_a_name_that_nothing_has_is_rejected(more: dict[str, Any], at: str) -> None:
    result = fault({**GOOD, **more})
    assert (type(result), result.path) == (UnknownName, at)


def test_a_type_that_the_catalog_lacks_is_rejected() -> None:
    with pytest.raises(UnknownName) as caught:
        decide([pool("p")], [pods("g", 1)], existingNodes=[{**NODE, "instanceType": "m99.large"}])
    assert caught.value.path == "existingNodes[0].instanceType"


def test_arrivals_must_agree_with_the_count() -> None:
    assert fault({**GOOD, "arrivals": [{"at_s": 0, "group": "g", "count": 2}]}).path == "pods[0].count"


def test_more_pods_than_a_cluster_holds_are_rejected() -> None:
    document = scenario([pool("p")], [pods("g", 100_000), pods("h", 100_000)])
    assert fault(document).path == "pods"


def test_spot_prices_of_a_catalog_without_any_are_rejected() -> None:
    with pytest.raises(NoSpotPrice):
        decide([pool("p")], [pods("g", 1)], spotModel="catalog", spotRatio=None)


def test_without_a_spot_model_there_is_no_spot() -> None:
    decision = decide([pool("p", capacity="spot")], [pods("g", 1)], spotModel=None, spotRatio=None)
    assert decision.unschedulable == {"g": 1}


def test_a_ratio_alone_says_the_model() -> None:
    decision = decide([pool("p", capacity="spot")], [pods("g", 1)], spotModel=None, spotRatio=0.5)
    assert decision.node_claims[0].launch.capacity_type == "spot"


def test_what_does_not_bear_on_the_placement_is_read_and_left_alone() -> None:
    document = copy.deepcopy(GOOD)
    document["nodePools"][0]["spec"]["disruption"] = {"consolidateAfter": "0s"}
    document["nodePools"][0] |= {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "status": {}}
    document["nodePools"][0]["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-21T00:00:00Z"}
    document["pods"][0]["pod"]["spec"] |= {"restartPolicy": "Never", "priority": 0, "volumes": [{"name": "v", "emptyDir": {}}]}
    document["pods"][0]["pod"]["spec"]["containers"][0] |= {"command": ["x"], "env": [{"name": "A", "value": "b"}], "volumeMounts": [{}]}
    node_agent = daemon("d", hostNetwork=True, volumes=[{"name": "v", "hostPath": {"path": "/run"}}], dnsPolicy="ClusterFirst")
    node_agent["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": 1}]
    plain = decide(GOOD["nodePools"], GOOD["pods"], [daemon("d")])
    assert decide(document["nodePools"], document["pods"], [node_agent]) == plain
