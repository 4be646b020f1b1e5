"""The permissions of Karpenter's controller on AWS, and of the senders to its queue.

Source: the CloudFormation template of karpenter-provider-aws v1.14.1 (``website/content/en/v1.14/getting-started``), statement by
statement under its own names, except the template's permission for SQS itself on the queue: nothing is sent there by SQS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.infra.policies import Condition, Statement, allow, allow_service, tls_only

EVENTS_SERVICE = "events.amazonaws.com"
# China has its own service principal.
_EC2_SERVICES = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
_CREATED = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
_READ = (
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
)
_NODE_POOL = "karpenter.sh/nodepool"
_NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass"
_CLUSTER_NAME = "eks:eks-cluster-name"
_REGION = "topology.kubernetes.io/region"


class Home(NamedTuple):
    """The cluster of a controller.

    Args:
        partition: of AWS, such as ``aws``.
        region: of the cluster.
        account: its 12 digits.
        cluster: the cluster's name.
    """

    partition: str
    region: str
    account: str
    cluster: str

    def ec2(self, kind: str, account: str = "*") -> str:
        """ARN of all EC2 resources of a kind in this region.

        Args:
            kind: such as ``subnet``.
            account: by default any, because subnets may be shared; images and snapshots have none.
        """
        return f"arn:{self.partition}:ec2:{self.region}:{account}:{kind}/*"

    @property
    def instance_profiles(self) -> str:
        """ARN of the account's instance profiles."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return f"arn:{self.partition}:eks:{self.region}:{self.account}:cluster/{self.cluster}"

    @property
    def owned(self) -> str:
        """The tag that identifies the cluster of a resource."""
        return f"kubernetes.io/cluster/{self.cluster}"


def controller_statements(home: Home, node_role_arn: str, queue_arn: str) -> list[Statement]:
    """The permissions of the controller.

    Args:
        home: its cluster.
        node_role_arn: the only role that its nodes may have.
        queue_arn: the only queue that it reads.
    """
    return [*_launching(home), *_of_instance_profiles(home, node_role_arn), *_of_its_cluster(home, queue_arn), *_reading(home)]


def queue_statements(home: Home, queue_arn: str, rules: Sequence[str]) -> list[Statement]:
    """The policy of the interruption queue: EventBridge may send for these rules of this account, and requests without TLS are denied.

    Args:
        home: the cluster.
        queue_arn: the queue.
        rules: names of the rules.
    """
    arns = [f"arn:{home.partition}:events:{home.region}:{home.account}:rule/{rule}" for rule in rules]
    of_rules = {"ArnEquals": {"aws:SourceArn": arns}}
    return [allow_service("Interruptions", EVENTS_SERVICE, ["sqs:SendMessage"], [queue_arn], of_rules), tls_only("sqs:*", [queue_arn])]


def _launching(home: Home) -> list[Statement]:
    """Instances may only be created with the tags of this cluster, and only resources with these tags may be changed or terminated."""
    new = [home.ec2(kind) for kind in _CREATED]
    instances, templates = home.ec2("instance"), home.ec2("launch-template")
    mine = _tagged(home, "ResourceTag")
    asked = _tagged(home, "RequestTag", {f"aws:RequestTag/{_CLUSTER_NAME}": home.cluster})
    while_created = _tagged(
        home,
        "RequestTag",
        {f"aws:RequestTag/{_CLUSTER_NAME}": home.cluster, "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]},
    )
    renamed: Condition = {
        **mine,
        "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER_NAME}": home.cluster},
        "ForAllValues:StringEquals": {"aws:TagKeys": [_CLUSTER_NAME, "karpenter.sh/nodeclaim", "Name"]},
    }
    return [
        allow("AllowScopedEC2InstanceAccessActions", ["ec2:RunInstances", "ec2:CreateFleet"], _used(home)),
        allow("AllowScopedEC2LaunchTemplateAccessActions", ["ec2:RunInstances", "ec2:CreateFleet"], [templates], mine),
        allow("AllowScopedEC2InstanceActionsWithTags", ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"], new, asked),
        allow("AllowScopedResourceCreationTagging", ["ec2:CreateTags"], new, while_created),
        allow("AllowScopedResourceTagging", ["ec2:CreateTags"], [instances], renamed),
        allow("AllowScopedDeletion", ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"], [instances, templates], mine),
    ]


def _used(home: Home) -> Sequence[str]:
    """The resources that an instance is launched with."""
    of_accounts = ("security-group", "subnet", "capacity-reservation", "placement-group")
    return [*(home.ec2(kind, account="") for kind in ("image", "snapshot")), *(home.ec2(kind) for kind in of_accounts)]


def _of_instance_profiles(home: Home, node_role_arn: str) -> list[Statement]:
    """Instance profiles of this cluster and region, with no other role than the nodes'."""
    mine = _profile_tags(home, "ResourceTag")
    asked = _profile_tags(home, "RequestTag", {f"aws:RequestTag/{_CLUSTER_NAME}": home.cluster})
    both = {operator: {**mine[operator], **asked[operator]} for operator in mine}
    profiles = [home.instance_profiles]
    changes = ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"]
    return [
        allow("AllowPassingInstanceRole", ["iam:PassRole"], [node_role_arn], {"StringEquals": {"iam:PassedToService": _EC2_SERVICES}}),
        allow("AllowScopedInstanceProfileCreationActions", ["iam:CreateInstanceProfile"], profiles, asked),
        allow("AllowScopedInstanceProfileTagActions", ["iam:TagInstanceProfile"], profiles, both),
        allow("AllowScopedInstanceProfileActions", changes, profiles, mine),
    ]


def _of_its_cluster(home: Home, queue_arn: str) -> list[Statement]:
    shifted: Condition = {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": home.cluster_arn}}
    return [
        allow("AllowAPIServerEndpointDiscovery", ["eks:DescribeCluster"], [home.cluster_arn]),
        allow("AllowInterruptionQueueActions", ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], [queue_arn]),
        allow("AllowZonalShiftStatusReadOnly", ["arc-zonal-shift:GetManagedResource"], ["*"], shifted),
    ]


def _reading(home: Home) -> list[Statement]:
    """Actions that cannot be limited to resources: EC2's describe actions are limited to the region, those of prices and profiles are
    not limited.
    """
    images = f"arn:{home.partition}:ssm:{home.region}::parameter/aws/service/*"
    return [
        allow("AllowRegionalReadActions", _READ, ["*"], {"StringEquals": {"aws:RequestedRegion": home.region}}),
        allow("AllowSSMReadActions", ["ssm:GetParameter"], [images]),
        allow("AllowPricingReadActions", ["pricing:GetProducts"], ["*"]),
        allow("AllowUnscopedInstanceProfileListAction", ["iam:ListInstanceProfiles"], ["*"]),
        allow("AllowInstanceProfileReadActions", ["iam:GetInstanceProfile"], [home.instance_profiles]),
    ]


def _tagged(home: Home, tags: str, more: Mapping[str, object] | None = None) -> Condition:
    """The tags of this cluster's nodes, on a resource or in a request."""
    equal = {f"aws:{tags}/{home.owned}": "owned", **(more or {})}
    return {"StringEquals": equal, "StringLike": {f"aws:{tags}/{_NODE_POOL}": "*"}}


def _profile_tags(home: Home, tags: str, more: Mapping[str, object] | None = None) -> Condition:
    """The tags of this cluster's instance profiles. Profiles are global in an account, so the tags include the region."""
    equal = {f"aws:{tags}/{home.owned}": "owned", f"aws:{tags}/{_REGION}": home.region, **(more or {})}
    return {"StringEquals": equal, "StringLike": {f"aws:{tags}/{_NODE_CLASS}": "*"}}
