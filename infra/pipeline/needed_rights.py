"""The rights that a deploy needs to create resources, and the statement of the pipeline's role that gives each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from penstock.infra.environment import Environment
from penstock.infra.pipeline.deploy_role import permissions

# Type of a resource -> the actions that create it, the argument with its name, and what stands for the name in the resource's ARN.
# Source: Service Authorization Reference, "Resource types" of each service. Those that have none are created in ``*``.
_CREATED: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "aws_appautoscaling_target": (("application-autoscaling:RegisterScalableTarget",), "", "*"),
    "aws_budgets_budget": (("budgets:ModifyBudget",), "name", "arn:{partition}:budgets::{account}:budget/{name}"),
    "aws_cloudwatch_event_rule": (("events:PutRule",), "name", "{here}:rule/{name}"),
    "aws_cloudwatch_log_group": (("logs:CreateLogGroup",), "name", "{here}:log-group:{name}"),
    "aws_cloudwatch_metric_alarm": (("cloudwatch:PutMetricAlarm",), "alarm_name", "{here}:alarm:{name}"),
    "aws_ecr_repository": (("ecr:CreateRepository",), "name", "{here}:repository/{name}"),
    "aws_eks_access_entry": (("eks:CreateAccessEntry",), "cluster_name", "{here}:cluster/{name}"),
    "aws_eks_addon": (("eks:CreateAddon",), "cluster_name", "{here}:cluster/{name}"),
    "aws_eks_cluster": (("eks:CreateCluster",), "name", "{here}:cluster/{name}"),
    "aws_eks_node_group": (("eks:CreateNodegroup",), "cluster_name", "{here}:cluster/{name}"),
    "aws_eks_pod_identity_association": (("eks:CreatePodIdentityAssociation",), "cluster_name", "{here}:cluster/{name}"),
    "aws_iam_openid_connect_provider": (
        ("iam:CreateOpenIDConnectProvider",), "", "{iam}:oidc-provider/oidc.eks.{region}.amazonaws.com/id/0",
    ),
    "aws_iam_role": (("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy"), "name", "{iam}:role/{name}"),
    "aws_iam_service_linked_role": (
        ("iam:CreateServiceLinkedRole",), "aws_service_name", "{iam}:role/aws-service-role/{name}/AWSServiceRole",
    ),
    "aws_kms_key": (("kms:CreateKey",), "", "*"),
    "aws_launch_template": (("ec2:CreateLaunchTemplate",), "", "{here}:launch-template/lt-0"),
    "aws_msk_cluster": (("kafka:CreateCluster",), "cluster_name", "{here}:cluster/{name}/0"),
    "aws_msk_serverless_cluster": (("kafka:CreateClusterV2",), "cluster_name", "{here}:cluster/{name}/0"),
    "aws_nat_gateway": (("ec2:CreateNatGateway",), "", "{here}:natgateway/nat-0"),
    "aws_opensearch_domain": (("es:CreateDomain",), "domain_name", "{here}:domain/{name}"),
    "aws_prometheus_workspace": (("aps:CreateWorkspace",), "", "*"),
    "aws_s3_bucket": (("s3:CreateBucket", "s3:PutBucketPolicy"), "bucket", "arn:{partition}:s3:::{name}"),
    "aws_security_group": (("ec2:CreateSecurityGroup",), "", "{here}:security-group/sg-0"),
    "aws_sns_topic": (("sns:CreateTopic",), "name", "{here}:{name}"),
    "aws_sqs_queue": (("sqs:CreateQueue",), "name", "{here}:{name}"),
    "aws_subnet": (("ec2:CreateSubnet",), "", "{here}:subnet/subnet-0"),
    "aws_vpc": (("ec2:CreateVpc",), "", "{here}:vpc/vpc-0"),
    "aws_vpc_endpoint": (("ec2:CreateVpcEndpoint",), "", "{here}:vpc-endpoint/vpce-0"),
}  # fmt: skip


class NeededRight(NamedTuple):
    """A right that creates a resource of one type.

    Args:
        actions: such as ``eks:CreateCluster``; all of one resource.
        resource: its ARN, or ``*``.
        conditions: condition key -> its value in the request.
        type: Terraform's type of the resource.
    """

    actions: tuple[str, ...]
    resource: str
    conditions: Mapping[str, str]
    type: str


def needed_rights(environment: Environment, partition: str, resources: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[NeededRight]:
    """The rights for the resources of stacks: one of each type, since a stack's resources have names that begin alike.

    Args:
        environment: of the stacks.
        partition: of AWS.
        resources: type and arguments of each resource that is to be created; types without an entry here need no right of their own.
    """
    seen: set[str] = set()
    for kind, arguments in resources:
        if kind not in _CREATED or kind in seen:
            continue
        actions, argument, resource = _CREATED[kind]
        name = str(arguments.get(argument) or "") if argument else ""
        # A name of another stack's resource is not known before that is applied.
        if argument and (not name or "${" in name):
            name = environment.cluster_name if argument == "cluster_name" else ""
        if not argument or name:
            seen.add(kind)
            yield NeededRight(
                actions, _filled(resource, actions[0], name, environment, partition), _conditions(environment, kind, name), kind
            )


def statement_of(environment: Environment, partition: str, action: str, resource: str) -> str:
    """The Sid of the statement of the pipeline's role that allows an action on a resource."""
    statements = json.loads(permissions(environment, partition))["Statement"]
    return next(
        str(one["Sid"])
        for one in statements
        if one["Effect"] == "Allow"
        and any(fnmatchcase(action.lower(), pattern.lower()) for pattern in one["Action"])
        and any(fnmatchcase(resource, pattern) for pattern in one["Resource"])
    )


def _filled(template: str, action: str, name: str, environment: Environment, partition: str) -> str:
    account, region = environment.spec.account, environment.spec.region
    here = f"arn:{partition}:{action.partition(':')[0]}:{region}:{account}"
    iam = f"arn:{partition}:iam::{account}"
    return template.format(partition=partition, account=account, region=region, here=here, iam=iam, name=name)


def _conditions(environment: Environment, kind: str, name: str) -> dict[str, str]:
    found = {"aws:RequestedRegion": environment.spec.region}
    if kind == "aws_iam_service_linked_role":
        found["iam:AWSServiceName"] = name
    if kind == "aws_iam_role" and environment.spec.permissions_boundary is not None:
        found["iam:PermissionsBoundary"] = environment.spec.permissions_boundary
    return found
