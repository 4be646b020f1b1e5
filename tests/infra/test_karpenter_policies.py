"""Karpenter's permissions, statement by statement, and their effect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.infra.karpenter_policies import Home, controller_statements, queue_statements
from penstock.infra.policies import document
from tests.infra.iam_evaluation import allowed

CLUSTER = "penstock-x"
HOME = Home("aws", "eu-west-1", "123456789012", CLUSTER)
NODE_ROLE = "arn:aws:iam::123456789012:role/penstock-x-karpenter-node"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:penstock-x"
RULE = "arn:aws:events:eu-west-1:123456789012:rule/penstock-x-rebalance"
STATEMENTS = controller_statements(HOME, NODE_ROLE, QUEUE)

OWNED = f"kubernetes.io/cluster/{CLUSTER}"
NEW = [
    f"arn:aws:ec2:eu-west-1:*:{kind}/*"
    for kind in ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
]
PROFILES = ["arn:aws:iam::123456789012:instance-profile/*"]
CLUSTER_ARN = "arn:aws:eks:eu-west-1:123456789012:cluster/penstock-x"

# Copied manually from the template of karpenter-provider-aws v1.14.1: sid -> actions, resources, conditions.
TEMPLATE: dict[str, tuple[list[str], list[str], dict[str, Any]]] = {
    "AllowScopedEC2InstanceAccessActions": (
        ["ec2:RunInstances", "ec2:CreateFleet"],
        [
            "arn:aws:ec2:eu-west-1::image/*",
            "arn:aws:ec2:eu-west-1::snapshot/*",
            "arn:aws:ec2:eu-west-1:*:security-group/*",
            "arn:aws:ec2:eu-west-1:*:subnet/*",
            "arn:aws:ec2:eu-west-1:*:capacity-reservation/*",
            "arn:aws:ec2:eu-west-1:*:placement-group/*",
        ],
        {},
    ),
    "AllowScopedEC2LaunchTemplateAccessActions": (
        ["ec2:RunInstances", "ec2:CreateFleet"],
        ["arn:aws:ec2:eu-west-1:*:launch-template/*"],
        {"StringEquals": {f"aws:ResourceTag/{OWNED}": "owned"}, "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"}},
    ),
    "AllowScopedEC2InstanceActionsWithTags": (
        ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"],
        NEW,
        {
            "StringEquals": {f"aws:RequestTag/{OWNED}": "owned", "aws:RequestTag/eks:eks-cluster-name": CLUSTER},
            "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
        },
    ),
    "AllowScopedResourceCreationTagging": (
        ["ec2:CreateTags"],
        NEW,
        {
            "StringEquals": {
                f"aws:RequestTag/{OWNED}": "owned",
                "aws:RequestTag/eks:eks-cluster-name": CLUSTER,
                "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
            },
            "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
        },
    ),
    "AllowScopedResourceTagging": (
        ["ec2:CreateTags"],
        ["arn:aws:ec2:eu-west-1:*:instance/*"],
        {
            "StringEquals": {f"aws:ResourceTag/{OWNED}": "owned"},
            "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
            "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": CLUSTER},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]},
        },
    ),
    "AllowScopedDeletion": (
        ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
        ["arn:aws:ec2:eu-west-1:*:instance/*", "arn:aws:ec2:eu-west-1:*:launch-template/*"],
        {"StringEquals": {f"aws:ResourceTag/{OWNED}": "owned"}, "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"}},
    ),
    "AllowPassingInstanceRole": (
        ["iam:PassRole"],
        [NODE_ROLE],
        {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
    ),
    "AllowScopedInstanceProfileCreationActions": (
        ["iam:CreateInstanceProfile"],
        PROFILES,
        {
            "StringEquals": {
                f"aws:RequestTag/{OWNED}": "owned",
                "aws:RequestTag/eks:eks-cluster-name": CLUSTER,
                "aws:RequestTag/topology.kubernetes.io/region": "eu-west-1",
            },
            "StringLike": {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"},
        },
    ),
    "AllowScopedInstanceProfileTagActions": (
        ["iam:TagInstanceProfile"],
        PROFILES,
        {
            "StringEquals": {
                f"aws:ResourceTag/{OWNED}": "owned",
                "aws:ResourceTag/topology.kubernetes.io/region": "eu-west-1",
                f"aws:RequestTag/{OWNED}": "owned",
                "aws:RequestTag/eks:eks-cluster-name": CLUSTER,
                "aws:RequestTag/topology.kubernetes.io/region": "eu-west-1",
            },
            "StringLike": {
                "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*",
                "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*",
            },
        },
    ),
    "AllowScopedInstanceProfileActions": (
        ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"],
        PROFILES,
        {
            "StringEquals": {f"aws:ResourceTag/{OWNED}": "owned", "aws:ResourceTag/topology.kubernetes.io/region": "eu-west-1"},
            "StringLike": {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"},
        },
    ),
    "AllowAPIServerEndpointDiscovery": (["eks:DescribeCluster"], [CLUSTER_ARN], {}),
    "AllowInterruptionQueueActions": (["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], [QUEUE], {}),
    "AllowZonalShiftStatusReadOnly": (
        ["arc-zonal-shift:GetManagedResource"],
        ["*"],
        {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": CLUSTER_ARN}},
    ),
    "AllowRegionalReadActions": (
        [
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeSubnets",
        ],
        ["*"],
        {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}},
    ),
    "AllowSSMReadActions": (["ssm:GetParameter"], ["arn:aws:ssm:eu-west-1::parameter/aws/service/*"], {}),
    "AllowPricingReadActions": (["pricing:GetProducts"], ["*"], {}),
    "AllowUnscopedInstanceProfileListAction": (["iam:ListInstanceProfiles"], ["*"], {}),
    "AllowInstanceProfileReadActions": (["iam:GetInstanceProfile"], PROFILES, {}),
}

INSTANCE = "arn:aws:ec2:eu-west-1:123456789012:instance/i-0123456789abcdef0"
PROFILE = "arn:aws:iam::123456789012:instance-profile/penstock-x_123"
MINE = {f"aws:ResourceTag/{OWNED}": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "executors"}
ANOTHERS = {"aws:ResourceTag/kubernetes.io/cluster/another": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "executors"}
ASKED = {
    f"aws:RequestTag/{OWNED}": "owned",
    "aws:RequestTag/eks:eks-cluster-name": CLUSTER,
    "aws:RequestTag/karpenter.sh/nodepool": "executors",
}


@pytest.mark.parametrize("sid", TEMPLATE)
def test_each_statement_is_that_of_karpenters_own_template(sid: str) -> None:
    actions, resources, condition = TEMPLATE[sid]
    (statement,) = (one for one in STATEMENTS if one["Sid"] == sid)
    assert statement["Effect"] == "Allow"
    assert statement["Action"] == actions
    assert statement["Resource"] == resources
    assert statement.get("Condition", {}) == condition


def test_there_is_no_statement_beside_those_of_the_template() -> None:
    assert [one["Sid"] for one in STATEMENTS] == list(TEMPLATE)


def test_no_action_is_a_pattern_and_all_that_is_limited_to_nothing_only_reads() -> None:
    actions = [action for one in STATEMENTS for action in one["Action"]]
    assert not [action for action in actions if "*" in action]
    unlimited = [action for one in STATEMENTS if "*" in one["Resource"] for action in one["Action"]]
    assert all(action.split(":")[1].startswith(("Describe", "Get", "List")) for action in unlimited)


def test_nodes_of_this_cluster_may_be_ended_and_no_other_machine() -> None:
    assert allowed(STATEMENTS, "ec2:TerminateInstances", INSTANCE, MINE)
    assert not allowed(STATEMENTS, "ec2:TerminateInstances", INSTANCE, ANOTHERS)
    assert not allowed(STATEMENTS, "ec2:TerminateInstances", INSTANCE)
    elsewhere = INSTANCE.replace("eu-west-1", "us-east-1")
    assert not allowed(STATEMENTS, "ec2:TerminateInstances", elsewhere, MINE)


def test_a_machine_may_be_made_only_with_the_tags_of_this_cluster() -> None:
    assert allowed(STATEMENTS, "ec2:CreateFleet", INSTANCE, ASKED)
    for tag in ASKED:
        assert not allowed(STATEMENTS, "ec2:CreateFleet", INSTANCE, {key: value for key, value in ASKED.items() if key != tag})
    assert not allowed(STATEMENTS, "ec2:CreateFleet", INSTANCE, {**ASKED, "aws:RequestTag/eks:eks-cluster-name": "another"})


def test_a_machine_starts_from_a_launch_template_of_this_cluster_alone() -> None:
    template = "arn:aws:ec2:eu-west-1:123456789012:launch-template/lt-1"
    assert allowed(STATEMENTS, "ec2:RunInstances", template, MINE)
    assert not allowed(STATEMENTS, "ec2:RunInstances", template, ANOTHERS)


def test_tags_are_given_while_something_is_made_and_only_names_and_claims_later() -> None:
    assert allowed(STATEMENTS, "ec2:CreateTags", INSTANCE, {**ASKED, "ec2:CreateAction": "CreateFleet"})
    assert not allowed(STATEMENTS, "ec2:CreateTags", INSTANCE, ASKED)
    assert allowed(STATEMENTS, "ec2:CreateTags", INSTANCE, {**MINE, "aws:TagKeys": ["Name", "karpenter.sh/nodeclaim"]})
    assert not allowed(STATEMENTS, "ec2:CreateTags", INSTANCE, {**MINE, "aws:TagKeys": ["Name", "cost-center"]})
    assert not allowed(STATEMENTS, "ec2:CreateTags", INSTANCE, {**ANOTHERS, "aws:TagKeys": ["Name"]})


def test_the_nodes_role_is_passed_to_machines_and_no_other_role_to_anything() -> None:
    to_ec2 = {"iam:PassedToService": "ec2.amazonaws.com"}
    assert allowed(STATEMENTS, "iam:PassRole", NODE_ROLE, to_ec2)
    assert not allowed(STATEMENTS, "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"})
    assert not allowed(STATEMENTS, "iam:PassRole", "arn:aws:iam::123456789012:role/admin", to_ec2)


def test_a_profile_of_another_region_or_cluster_is_left_alone() -> None:
    own = {
        f"aws:ResourceTag/{OWNED}": "owned",
        "aws:ResourceTag/topology.kubernetes.io/region": "eu-west-1",
        "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "default",
    }
    assert allowed(STATEMENTS, "iam:DeleteInstanceProfile", PROFILE, own)
    elsewhere = {**own, "aws:ResourceTag/topology.kubernetes.io/region": "us-east-1"}
    assert not allowed(STATEMENTS, "iam:DeleteInstanceProfile", PROFILE, elsewhere)
    assert not allowed(STATEMENTS, "iam:AddRoleToInstanceProfile", PROFILE)


def test_only_its_own_queue_is_read_and_nothing_is_sent() -> None:
    assert allowed(STATEMENTS, "sqs:ReceiveMessage", QUEUE)
    assert not allowed(STATEMENTS, "sqs:ReceiveMessage", QUEUE + "-2")
    assert not allowed(STATEMENTS, "sqs:SendMessage", QUEUE)


def test_lists_are_of_this_region() -> None:
    assert allowed(STATEMENTS, "ec2:DescribeInstances", "*", {"aws:RequestedRegion": "eu-west-1"})
    assert not allowed(STATEMENTS, "ec2:DescribeInstances", "*", {"aws:RequestedRegion": "us-east-1"})


def test_it_fits_into_a_roles_inline_policies_with_the_longest_name() -> None:
    """Source: IAM quotas: 10,240 characters for all inline policies of a role, without white space."""
    longest = Home("aws-us-gov", "ap-southeast-99", "123456789012", "penstock-" + "x" * 32)
    text = document(controller_statements(longest, NODE_ROLE + "x" * 64, QUEUE + "x" * 80))
    assert len(json.dumps(json.loads(text), separators=(",", ":"))) <= 10_240


def test_the_queue_accepts_only_messages_of_these_rules_over_tls() -> None:
    statements = queue_statements(HOME, QUEUE, ["penstock-x-rebalance", "penstock-x-state-change"])
    over_tls = {"aws:SecureTransport": True}
    assert allowed(statements, "sqs:SendMessage", QUEUE, {"aws:SourceArn": RULE, **over_tls})
    assert not allowed(statements, "sqs:SendMessage", QUEUE, {"aws:SourceArn": RULE, "aws:SecureTransport": False})
    for stranger in (RULE.replace("123456789012", "999999999999"), RULE + "-2", RULE.replace("eu-west-1", "us-east-1")):
        assert not allowed(statements, "sqs:SendMessage", QUEUE, {"aws:SourceArn": stranger, **over_tls})
    assert not allowed(statements, "sqs:SendMessage", QUEUE, over_tls)
    assert not allowed(statements, "sqs:ReceiveMessage", QUEUE, {"aws:SourceArn": RULE, **over_tls})
    principals = [one["Principal"] for one in statements]
    assert principals == [{"Service": "events.amazonaws.com"}, "*"]
    assert [one["Effect"] for one in statements] == ["Allow", "Deny"]


def test_in_another_partition_every_arn_is_that_partitions() -> None:
    text = document(controller_statements(HOME._replace(partition="aws-cn", region="cn-north-1"), "", ""))
    assert "arn:aws:" not in text
    assert "eu-west-1" not in text
