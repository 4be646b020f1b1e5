from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.interruptions import EVENTS
from penstock.infra.parts.network import INTERFACE_ENDPOINTS
from tests.infra.environments import read
from tests.infra.iam_evaluation import allowed
from tests.infra.stacks.synthesized import CLUSTER, Content, content, of_cluster

ARN = "arn:${data.aws_partition.partition.partition}"


def synthesized(folder: Path, environment: Environment) -> Content:
    from penstock.infra.stacks.karpenter import KarpenterStack

    return content(folder, "karpenter", lambda app: KarpenterStack(app, environment, CLUSTER))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The stack of the production environment."""
    return synthesized(tmp_path_factory.mktemp("karpenter"), load("production"))


def resource(stack: Content, kind: str, name: str) -> dict[str, Any]:
    selected: dict[str, Any] = stack["resource"][kind][name]
    return selected


def policy(text: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return statements


def test_the_stack_is_of_aws_alone(stack: Content) -> None:
    assert set(stack["provider"]) == {"aws"}


def test_the_controllers_role_is_taken_by_the_pods_of_its_service_account_alone(stack: Content) -> None:
    (trust,) = policy(resource(stack, "aws_iam_role", "controller")["assume_role_policy"])
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Condition"] == of_cluster("production")
    association = resource(stack, "aws_eks_pod_identity_association", "controller-identity")
    assert {key: value for key, value in association.items() if key != "//"} == {
        "cluster_name": "the-cluster",
        "namespace": "kube-system",
        "service_account": "karpenter",
        "role_arn": "${aws_iam_role.controller.arn}",
    }


def test_the_controllers_policy_is_of_this_cluster_this_queue_and_the_nodes_role(stack: Content) -> None:
    attached = resource(stack, "aws_iam_role_policy", "controller")
    assert attached["role"] == "${aws_iam_role.controller.name}"
    statements = policy(attached["policy"])
    assert allowed(statements, "sqs:ReceiveMessage", "${aws_sqs_queue.interruptions.arn}")
    assert allowed(statements, "iam:PassRole", "${aws_iam_role.node.arn}", {"iam:PassedToService": "ec2.amazonaws.com"})
    assert allowed(statements, "eks:DescribeCluster", f"{ARN}:eks:us-east-1:111122223333:cluster/penstock-production")
    tags = {"aws:ResourceTag/kubernetes.io/cluster/penstock-production": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "drivers"}
    assert allowed(statements, "ec2:TerminateInstances", f"{ARN}:ec2:us-east-1:111122223333:instance/i-1", tags)
    assert "aws_iam_role_policy_attachment" in stack["resource"]
    assert not [one for one in stack["resource"]["aws_iam_role_policy_attachment"] if one.startswith("controller")]


def test_nodes_have_what_they_need_to_join_and_nothing_that_a_pod_could_use(stack: Content) -> None:
    (trust,) = policy(resource(stack, "aws_iam_role", "node")["assume_role_policy"])
    assert trust["Principal"] == {"Service": "ec2.${data.aws_partition.partition.dns_suffix}"}
    assert trust["Action"] == ["sts:AssumeRole"]
    attached = {one["policy_arn"].rpartition("/")[2] for one in stack["resource"]["aws_iam_role_policy_attachment"].values()}
    assert attached == {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}
    assert set(stack["resource"]["aws_iam_role_policy"]) == {"controller"}


def test_nodes_enter_the_cluster_as_linux_nodes_and_no_more(stack: Content) -> None:
    entry = resource(stack, "aws_eks_access_entry", "node-entry")
    assert (entry["cluster_name"], entry["principal_arn"], entry["type"]) == ("the-cluster", "${aws_iam_role.node.arn}", "EC2_LINUX")
    assert "aws_eks_access_policy_association" not in stack["resource"]
    assert "kubernetes_groups" not in entry


def test_the_queue_is_encrypted_and_forgets_what_is_of_no_use_any_more(stack: Content) -> None:
    queue = resource(stack, "aws_sqs_queue", "interruptions")
    assert queue["name"] == "penstock-production"
    assert queue["sqs_managed_sse_enabled"] is True
    assert queue["message_retention_seconds"] == 300


def test_only_this_environments_rules_write_to_the_queue_and_only_over_tls(stack: Content) -> None:
    attached = resource(stack, "aws_sqs_queue_policy", "interruptions-policy")
    assert attached["queue_url"] == "${aws_sqs_queue.interruptions.id}"
    statements = policy(attached["policy"])
    queue = "${aws_sqs_queue.interruptions.arn}"
    for rule in stack["resource"]["aws_cloudwatch_event_rule"].values():
        sent = {"aws:SourceArn": f"{ARN}:events:us-east-1:111122223333:rule/{rule['name']}", "aws:SecureTransport": True}
        assert allowed(statements, "sqs:SendMessage", queue, sent)
        assert not allowed(statements, "sqs:SendMessage", queue, {**sent, "aws:SecureTransport": False})
    other = {"aws:SourceArn": f"{ARN}:events:us-east-1:111122223333:rule/another", "aws:SecureTransport": True}
    assert not allowed(statements, "sqs:SendMessage", queue, other)


def test_every_rule_sends_to_the_queue(stack: Content) -> None:
    rules = stack["resource"]["aws_cloudwatch_event_rule"]
    assert set(rules) == set(EVENTS)
    for kind, rule in rules.items():
        target = resource(stack, "aws_cloudwatch_event_target", f"{kind}-target")
        assert target["rule"] == f"${{aws_cloudwatch_event_rule.{kind}.name}}"
        assert target["arn"] == "${aws_sqs_queue.interruptions.arn}"
        assert "input" not in target and "input_path" not in target and "input_transformer" not in target
        assert "role_arn" not in target
        assert rule.get("state", "ENABLED") == "ENABLED"


def test_names_are_within_aws_limits_for_the_longest_environment(tmp_path: Path) -> None:
    data = load("production").model_dump(by_alias=True, exclude_none=True)
    data["metadata"]["name"] = "e" * 32
    resources = synthesized(tmp_path, Environment.model_validate(data))["resource"]
    for kind, most in (("aws_iam_role", 64), ("aws_cloudwatch_event_rule", 64), ("aws_sqs_queue", 80)):
        assert all(len(one["name"]) <= most for one in resources[kind].values())


def test_spots_own_role_is_made_unless_the_account_has_it(tmp_path: Path, stack: Content) -> None:
    assert resource(stack, "aws_iam_service_linked_role", "spot")["aws_service_name"] == "spot.amazonaws.com"

    def change(spec: dict[str, Any]) -> None:
        spec["nodes"]["spotServiceRole"] = "existing"

    (tmp_path / "synth").mkdir()
    assert "aws_iam_service_linked_role" not in synthesized(tmp_path / "synth", read(tmp_path, change))["resource"]


def test_an_instance_profile_is_made_only_where_karpenter_can_not_reach_iam(tmp_path: Path, stack: Content) -> None:
    assert "aws_iam_instance_profile" not in stack["resource"]

    def change(spec: dict[str, Any]) -> None:
        spec["network"].update(natGateways=0, interfaceEndpoints=[*INTERFACE_ENDPOINTS, "ssm"])

    (tmp_path / "synth").mkdir()
    profile = resource(synthesized(tmp_path / "synth", read(tmp_path, change)), "aws_iam_instance_profile", "node-profile")
    assert profile["name"] == profile["role"] == "${aws_iam_role.node.name}"


def test_other_stacks_get_the_queue_and_the_roles(stack: Content) -> None:
    outputs = {name: output["value"] for name, output in stack["output"].items() if not name.startswith("cross-stack-output")}
    assert outputs == {
        "interruption_queue": "${aws_sqs_queue.interruptions.name}",
        "controller_role_arn": "${aws_iam_role.controller.arn}",
        "node_role_name": "${aws_iam_role.node.name}",
    }
