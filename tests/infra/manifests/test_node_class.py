from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from penstock.infra.environment_file import load, names
from penstock.infra.manifests.node_class import Placement, node_class
from penstock.infra.manifests.node_pool import node_pool
from penstock.infra.parts.nodes import Nodes
from penstock.sizing.errors import PenstockError
from penstock.sizing.planned_nodes import RootVolumePlan
from tests.infra.environments import read
from tests.infra.manifests.karpenter_crds import hold

FAST = {"rootVolumePerformance": {"iops": 16_000, "throughput": 1000}}
PLACEMENT = Placement(["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"], ["sg-0123456789abcdef0"])


def made(nodes: Nodes | None) -> dict[str, Any]:
    assert nodes is not None
    return node_class(nodes, placement=PLACEMENT, role="penstock-x-karpenter-node", tags={"team": "data"})


def changed(folder: Path, **fields: Any) -> dict[str, Any]:
    return made(read(folder, lambda spec: spec["nodes"].update(fields)).spec.nodes)


@pytest.mark.parametrize("name", [name for name in names() if load(name).spec.nodes])
def test_the_node_class_of_every_shipped_environment_is_one_by_its_crd(name: str) -> None:
    hold(made(load(name).spec.nodes))


@pytest.mark.parametrize(
    "fields",
    [{"amiFamily": "Bottlerocket", "amiVersion": "v1.55.0"}, {"amiVersion": "v20260903"}, {"maxPods": 110, "rootVolume": "16Ti"}, FAST],
)
def test_whatever_the_environment_says_is_a_node_class_by_its_crd(tmp_path: Path, fields: dict[str, Any]) -> None:
    hold(changed(tmp_path, **fields))


def test_the_guard_refuses_a_field_that_the_crd_does_not_have(tmp_path: Path) -> None:
    manifest = changed(tmp_path)
    manifest["spec"]["metadataOptions"]["httpToken"] = "required"
    with pytest.raises(jsonschema.ValidationError, match="httpToken"):
        hold(manifest)


def test_the_metadata_service_wants_a_token_and_is_out_of_reach_of_pods(tmp_path: Path) -> None:
    assert changed(tmp_path)["spec"]["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }


def test_every_volume_is_encrypted_and_goes_with_its_machine(tmp_path: Path) -> None:
    (root,) = changed(tmp_path, rootVolume="80Gi")["spec"]["blockDeviceMappings"]
    assert root == {
        "deviceName": "/dev/xvda",
        "ebs": {"volumeType": "gp3", "volumeSize": "80Gi", "encrypted": True, "deleteOnTermination": True},
    }


def test_a_volume_is_as_fast_as_the_environment_or_the_plans_say(tmp_path: Path) -> None:
    (given,) = changed(tmp_path, **FAST)["spec"]["blockDeviceMappings"]
    assert (given["ebs"]["iops"], given["ebs"]["throughput"]) == (16_000, 1000)
    nodes = read(tmp_path, lambda spec: None).spec.nodes
    assert nodes is not None
    planned = node_class(nodes, placement=PLACEMENT, role="x", tags={}, performance=RootVolumePlan(iops=3000, mibps=300))
    hold(planned)
    assert planned["spec"]["blockDeviceMappings"][0]["ebs"]["throughput"] == 300
    assert "iops" not in planned["spec"]["blockDeviceMappings"][0]["ebs"]


def test_only_the_volume_of_the_pods_is_faster(tmp_path: Path) -> None:
    system, data = changed(tmp_path, amiFamily="Bottlerocket", **FAST)["spec"]["blockDeviceMappings"]
    assert "iops" not in system["ebs"]
    assert data["ebs"]["iops"] == 16_000


def test_bottlerocket_keeps_its_system_apart_from_the_pods_volume(tmp_path: Path) -> None:
    system, data = changed(tmp_path, amiFamily="Bottlerocket", rootVolume="80Gi")["spec"]["blockDeviceMappings"]
    assert (system["deviceName"], system["ebs"]["volumeSize"]) == ("/dev/xvda", "4Gi")
    assert (data["deviceName"], data["ebs"]["volumeSize"]) == ("/dev/xvdb", "80Gi")
    assert all(volume["ebs"]["encrypted"] is True for volume in (system, data))


def test_subnets_and_security_groups_are_selected_by_their_ids(tmp_path: Path) -> None:
    """Not by tags, which an account can't set on subnets that another one shares with it."""
    spec = changed(tmp_path)["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": id} for id in PLACEMENT.subnet_ids]
    assert spec["securityGroupSelectorTerms"] == [{"id": id} for id in PLACEMENT.security_group_ids]
    assert spec["associatePublicIPAddress"] is False
    assert spec["role"] == "penstock-x-karpenter-node"
    assert spec["tags"] == {"team": "data"}


@pytest.mark.parametrize(
    ("fields", "alias"),
    [
        ({}, "al2023@latest"),
        ({"amiVersion": "v20260903"}, "al2023@v20260903"),
        ({"amiFamily": "Bottlerocket", "amiVersion": "v1.55.0"}, "bottlerocket@v1.55.0"),
    ],
)
def test_the_image_is_the_latest_of_its_family_or_the_release_that_is_named(tmp_path: Path, fields: dict[str, Any], alias: str) -> None:
    assert changed(tmp_path, **fields)["spec"]["amiSelectorTerms"] == [{"alias": alias}]


def test_the_kubelet_gets_a_pod_limit_only_if_the_environment_sets_one(tmp_path: Path) -> None:
    assert "kubelet" not in changed(tmp_path)["spec"]
    assert changed(tmp_path, maxPods=58)["spec"]["kubelet"] == {"maxPods": 58}


def test_the_pools_name_this_node_class(tmp_path: Path) -> None:
    environment = load("production")
    assert environment.spec.nodes
    named = {node_pool(pool)["spec"]["template"]["spec"]["nodeClassRef"]["name"] for pool in environment.spec.nodes.pools}
    assert named == {changed(tmp_path)["metadata"]["name"]}


@pytest.mark.parametrize(
    ("fields", "need"),
    [
        ({"rootVolume": "1500m"}, "whole GiB"),
        ({"rootVolume": "17Ti"}, "16777216"),
        ({"amiVersion": "newest"}, "latest"),
        ({"amiVersion": "v20260903@"}, "latest"),
        ({"amiVersion": "v1.55.0"}, "AL2023 such as v20260903"),
        ({"amiVersion": "v20260903", "amiFamily": "Bottlerocket"}, "Bottlerocket such as v1.55.0"),
        ({"rootVolumePerformance": {"iops": 3000, "throughput": 1001}}, "1000"),
        ({"rootVolumePerformance": {"iops": 2999, "throughput": 125}}, "3000"),
        ({"rootVolumePerformance": {"iops": 3000, "throughput": 751}}, "3004 for 751 MiB/s"),
        ({"rootVolume": "20Gi", "rootVolumePerformance": {"iops": 10_500, "throughput": 125}}, "at most 10000, 500 per GiB"),
        ({"spotServiceRole": "maybe"}, "existing"),
    ],
)
def test_what_aws_would_refuse_is_refused_with_its_line(tmp_path: Path, fields: dict[str, Any], need: str) -> None:
    with pytest.raises(PenstockError, match=need) as raised:
        changed(tmp_path, **fields)
    (fault,) = raised.value.errors
    assert fault.at is not None and fault.at.line is not None
