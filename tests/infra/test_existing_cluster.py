"""All stacks of environments whose cluster is there already, as cdktf synthesizes them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.app import AWS, CHARTS
from tests.infra.environments import Change, written
from tests.infra.existing import GROUP, NODE_ROLE, OURS, PRIVATE, THEIR_POOLS, THEIRS, in_existing
from tests.infra.test_stacks import SNAPSHOTS, Stacks, ran_synth, resource_paths

Synthesize = Callable[[str], Stacks]
CLUSTERS: dict[str, dict[str, Any]] = {"theirs": THEIRS, "ours": OURS, "their-pools": THEIR_POOLS}


@pytest.fixture(scope="module")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes an environment, once."""
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")

    @cache
    def once(name: str) -> Stacks:
        folder = tmp_path_factory.mktemp(name)
        ran = ran_synth(str(written(folder, _change(name))), folder / "out")
        assert ran.returncode == 0, ran.stderr
        return {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("out/stacks/*/cdk.tf.json"))}

    return once


def _change(name: str) -> Change:
    return lambda spec: in_existing(spec, CLUSTERS[name])


def _resources(stacks: Stacks, kind: str) -> dict[str, dict[str, Any]]:
    found = {name: stack.get("resource", {}).get(kind, {}) for name, stack in stacks.items()}
    return {f"{stack}/{name}": resource for stack, named in found.items() for name, resource in named.items()}


def _manifests(stacks: Stacks, stack: str, release: str) -> list[dict[str, Any]]:
    (text,) = stacks[stack]["resource"]["helm_release"][release]["values"]
    manifests: list[dict[str, Any]] = json.loads(text)["manifests"]
    return manifests


@pytest.mark.parametrize("name", ["theirs", "ours"])
def test_an_address_is_a_contract_with_what_is_deployed(synthesize: Synthesize, name: str) -> None:
    paths_by_stack = {stack: resource_paths(content) for stack, content in synthesize(name).items()}
    file = SNAPSHOTS / f"existing-cluster-{name}.json"
    if os.environ.get("PENSTOCK_WRITE_SNAPSHOTS") == "1":
        file.write_text(json.dumps(paths_by_stack, indent=1) + "\n", encoding="utf-8")
    assert paths_by_stack == json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_of_a_vpc_or_a_cluster_is_created_changed_or_tagged(synthesize: Synthesize, name: str) -> None:
    kinds = {kind for stack in synthesize(name).values() for kind in stack.get("resource", {})}
    assert not {kind for kind in kinds if kind in _OF_A_CLUSTER or kind.startswith(("aws_ec2_tag", "aws_subnet", "aws_vpc."))}
    assert resource_paths(synthesize(name)["network"]) == resource_paths(synthesize(name)["cluster"]) == {}


_OF_A_CLUSTER = {
    "aws_eks_cluster",
    "aws_eks_node_group",
    "aws_eks_addon",
    "aws_iam_openid_connect_provider",
    "aws_launch_template",
    "aws_vpc",
    "aws_route_table",
}


def test_the_cluster_is_read_and_what_does_not_suit_fails_the_plan(synthesize: Synthesize) -> None:
    stack = synthesize("theirs")["cluster"]
    read = stack["data"]["aws_eks_cluster"]["cluster"]
    assert read["name"] == "platform"
    conditions = [one["condition"] for one in read["lifecycle"]["postcondition"]]
    assert conditions == [
        '${self.vpc_config[0].vpc_id == "vpc-0123456789abcdef0"}',
        '${self.version == "1.35"}',
        '${self.access_config[0].authentication_mode != "CONFIG_MAP"}',
    ]
    outputs = {name: output["value"] for name, output in stack["output"].items()}
    # Not the name itself: the stacks that use it come after these conditions.
    assert outputs["cluster_name"] == "${data.aws_eks_cluster.cluster.name}"
    assert outputs["cluster_endpoint"] == "${data.aws_eks_cluster.cluster.endpoint}"
    assert outputs["node_security_group_ids"] == [GROUP]
    assert outputs["configure_kubectl"].endswith("--name platform")
    own = synthesize("ours")["cluster"]["output"]["node_security_group_ids"]["value"]
    assert own == ["${data.aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id}"]


def test_all_pods_of_the_stacks_get_their_roles_in_that_cluster(synthesize: Synthesize) -> None:
    stacks = synthesize("ours")
    associations = _resources(stacks, "aws_eks_pod_identity_association")
    (cluster,) = {one["cluster_name"] for one in associations.values()}
    assert cluster.startswith("${data.terraform_remote_state.cross-stack-reference-input-cluster.outputs.")
    assert "karpenter/controller-identity" in associations
    trusted = [json.loads(role["assume_role_policy"])["Statement"][0] for role in _resources(stacks, "aws_iam_role").values()]
    sources = [one["Condition"]["ArnLike"]["aws:SourceArn"] for one in trusted if one["Principal"] == {"Service": "pods.eks.amazonaws.com"}]
    assert sources and all(source.endswith(":cluster/platform") for source in sources)


def test_with_their_karpenter_there_are_only_node_pools_for_it(synthesize: Synthesize) -> None:
    stacks = synthesize("theirs")
    assert set(resource_paths(stacks["karpenter"])) == {"aws_iam_service_linked_role.spot"}
    assert set(resource_paths(stacks["karpenter-charts"])) == {"helm_release.node-pools"}
    assert stacks["karpenter-charts"]["resource"]["helm_release"]["node-pools"]["name"] == "penstock-production-node-pools"
    machines, *pools = _manifests(stacks, "karpenter-charts", "node-pools")
    assert machines["metadata"]["name"] == "penstock-production"
    spec = machines["spec"]
    assert (spec["role"], spec["securityGroupSelectorTerms"]) == (NODE_ROLE, [{"id": GROUP}])
    assert spec["subnetSelectorTerms"] == [{"id": id} for id in PRIVATE]
    assert {pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] for pool in pools} == {"penstock-production"}
    # Their queue is theirs to watch.
    assert not [name for name in _resources(stacks, "aws_cloudwatch_metric_alarm") if "interruptions" in name]
    assert stacks["jobs"]["resource"]["aws_vpc_security_group_ingress_rule"]["brokers"]["referenced_security_group_id"] == GROUP


def test_their_karpenter_is_theirs_to_watch(synthesize: Synthesize) -> None:
    theirs, ours = synthesize("theirs"), synthesize("ours")
    for stacks, watched in ((theirs, False), (ours, True)):
        groups = _resources(stacks, "aws_cloudwatch_log_group").values()
        assert any("karpenter" in group["name"] for group in groups) == watched
        prometheus = json.dumps(_manifests(stacks, "observability-charts", "prometheus"))
        assert ("karpenter-metrics" in prometheus, "PenstockKarpenterDown" in prometheus) == (watched, watched)
        assert ("karpenter-*_kube-system" in json.dumps(_manifests(stacks, "observability-charts", "fluent-bit"))) == watched
        # EKS counts pods without a node, whoever's Karpenter it is.
        assert "observability/pods-pending" in _resources(stacks, "aws_cloudwatch_metric_alarm")


def test_our_karpenter_manages_their_cluster_from_the_nodes_that_they_name(synthesize: Synthesize) -> None:
    stacks = synthesize("ours")
    (text,) = stacks["karpenter-charts"]["resource"]["helm_release"]["karpenter"]["values"]
    values = json.loads(text)
    assert values["settings"]["clusterName"] == "platform"
    assert values["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "system"}
    assert values["tolerations"] == [{"key": "system", "operator": "Equal"}]
    policies = json.dumps(_resources(stacks, "aws_iam_role_policy")["karpenter/controller"])
    assert "kubernetes.io/cluster/platform" in policies and "cluster/penstock-production" not in policies
    (prometheus,) = [one for one in _manifests(stacks, "observability-charts", "prometheus") if one["kind"] == "Deployment"]
    assert prometheus["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "system"}


def test_with_their_node_pools_nothing_of_karpenter_is_released(synthesize: Synthesize) -> None:
    stacks = synthesize("their-pools")
    assert set(stacks) == {*AWS, *CHARTS} - {"karpenter-charts"}


def test_drivers_on_their_node_pools_are_left_alone_too(tmp_path: Path) -> None:
    def disturbed(spec: dict[str, Any]) -> None:
        in_existing(spec, THEIR_POOLS)
        for pool in spec["nodes"]["pools"]:
            pool["expireAfter"] = "720h"

    ran = ran_synth(str(written(tmp_path, disturbed)), tmp_path / "out")
    assert (ran.returncode, "error[INF-031]" in ran.stderr) == (2, True), ran.stderr
