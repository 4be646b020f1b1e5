"""Application Auto Scaling of MSK storage, instead of moto's, whose targets have no tags, which Terraform reads.

Volumes do not actually grow. Dimensions of other services are not emulated.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.applicationautoscaling.models import applicationautoscaling_backends

from penstock.scripts.emulation.checked_service import Answer, Asked, CheckedService, Operation, Place, Refused
from penstock.scripts.emulation.msk.service import SERVICE as MSK

NAMESPACE, DIMENSION = "kafka", "kafka:broker-storage:VolumeSize"
METRIC = "KafkaBrokerStorageUtilization"
# Source: IAM user guide, service-linked roles; MSK's developer guide, "Set up automatic scaling".
_ROLE = "role/aws-service-role/kafka.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_KafkaCluster"


@dataclass
class Autoscaling:
    """Scalable targets in one account and region.

    Args:
        place: the account and region.
        targets: descriptions in the API's format, by the cluster's ARN.
        tags: tags by the target's ARN.
        policies: policies by the cluster's ARN and the policy's name.
    """

    place: Place
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    policies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def target(self, asked: Asked) -> dict[str, Any]:
        """Return the target that a request names.

        Raises:
            Refused: ObjectNotFoundException, ValidationException.
        """
        _need_dimension(asked)
        if asked["ResourceId"] not in self.targets:
            raise Refused("ObjectNotFoundException", f"No scalable target found for {asked['ResourceId']}, {DIMENSION}")
        return self.targets[asked["ResourceId"]]


def register_scalable_target(scaling: Autoscaling, asked: Asked) -> Answer:
    """RegisterScalableTarget: of an existing provisioned cluster; repeated, it changes the target."""
    _need_dimension(asked)
    at, id = scaling.place, asked["ResourceId"]
    cluster = MSK.state_of(at).clusters.get(id)
    if cluster is None or "StorageInfo" not in cluster.about.get("BrokerNodeGroupInfo", {}):
        raise Refused("ValidationException", f"{id} is no MSK cluster whose brokers have volumes")
    before = scaling.targets.get(id, {})
    size = {key: asked.get(key, before.get(key)) for key in ("MinCapacity", "MaxCapacity")}
    if None in size.values() or size["MinCapacity"] > size["MaxCapacity"]:
        raise Refused("ValidationException", f"MinCapacity {size['MinCapacity']} and MaxCapacity {size['MaxCapacity']} are no range")
    arn = (
        before.get("ScalableTargetARN")
        or f"arn:{at.partition}:application-autoscaling:{at.region}:{at.account}:scalable-target/{uuid.uuid4()}"
    )
    scaling.targets[id] = {
        "ServiceNamespace": NAMESPACE,
        "ResourceId": id,
        "ScalableDimension": DIMENSION,
        **size,
        "RoleARN": asked.get("RoleARN") or f"arn:{at.partition}:iam::{at.account}:{_ROLE}",
        "CreationTime": before.get("CreationTime") or datetime.now(UTC),
        "SuspendedState": {
            "DynamicScalingInSuspended": False,
            "DynamicScalingOutSuspended": False,
            "ScheduledScalingSuspended": False,
            **asked.get("SuspendedState", {}),
        },
        "ScalableTargetARN": arn,
    }
    scaling.tags.setdefault(arn, {}).update(asked.get("Tags", {}))
    return {"ScalableTargetARN": arn}


def describe_scalable_targets(scaling: Autoscaling, asked: Asked) -> Answer:
    """DescribeScalableTargets."""
    wanted = asked.get("ResourceIds") or list(scaling.targets)
    targets = [target for id, target in scaling.targets.items() if id in wanted and asked["ServiceNamespace"] == NAMESPACE]
    return {"ScalableTargets": targets}


def deregister_scalable_target(scaling: Autoscaling, asked: Asked) -> Answer:
    """DeregisterScalableTarget: also deletes its policies."""
    gone = scaling.target(asked)
    del scaling.targets[gone["ResourceId"]]
    scaling.tags.pop(gone["ScalableTargetARN"], None)
    scaling.policies = {key: policy for key, policy in scaling.policies.items() if key[0] != gone["ResourceId"]}
    return {}


def put_scaling_policy(scaling: Autoscaling, asked: Asked) -> Answer:
    """PutScalingPolicy: target tracking of storage utilization, without scale-in."""
    target = scaling.target(asked)
    tracking = asked.get("TargetTrackingScalingPolicyConfiguration")
    if asked.get("PolicyType") != "TargetTrackingScaling" or not tracking:
        raise Refused("ValidationException", "MSK's storage scales by TargetTrackingScaling only")
    metric = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    if metric != METRIC or not 10 <= tracking["TargetValue"] <= 80:
        raise Refused("ValidationException", f"MSK's storage scales by {METRIC} at 10 to 80 percent, not by {metric}")
    if not tracking.get("DisableScaleIn"):
        raise Refused("ValidationException", "MSK's storage can't shrink: DisableScaleIn must be true")
    at, name = scaling.place, asked["PolicyName"]
    key = (target["ResourceId"], name)
    before = scaling.policies.get(key, {})
    new_arn = (
        f"arn:{at.partition}:autoscaling:{at.region}:{at.account}:scalingPolicy:{uuid.uuid4()}:resource/kafka/{key[0]}:policyName/{name}"
    )
    scaling.policies[key] = {
        "PolicyARN": before.get("PolicyARN", new_arn),
        "PolicyName": name,
        "ServiceNamespace": NAMESPACE,
        "ResourceId": key[0],
        "ScalableDimension": DIMENSION,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": tracking,
        "Alarms": [],
        "CreationTime": before.get("CreationTime") or datetime.now(UTC),
    }
    return {"PolicyARN": scaling.policies[key]["PolicyARN"], "Alarms": []}


def describe_scaling_policies(scaling: Autoscaling, asked: Asked) -> Answer:
    """DescribeScalingPolicies."""
    id, names = asked.get("ResourceId"), asked.get("PolicyNames")
    policies = [policy for (of, name), policy in scaling.policies.items() if id in (None, of) and (not names or name in names)]
    return {"ScalingPolicies": policies if asked["ServiceNamespace"] == NAMESPACE else []}


def delete_scaling_policy(scaling: Autoscaling, asked: Asked) -> Answer:
    """DeleteScalingPolicy."""
    key = (scaling.target(asked)["ResourceId"], asked["PolicyName"])
    if key not in scaling.policies:
        raise Refused("ObjectNotFoundException", f"No scaling policy found for {key[0]}: {key[1]}")
    del scaling.policies[key]
    return {}


def tag_resource(scaling: Autoscaling, asked: Asked) -> Answer:
    """TagResource."""
    _tags(scaling, asked).update(asked["Tags"])
    return {}


def untag_resource(scaling: Autoscaling, asked: Asked) -> Answer:
    """UntagResource."""
    for key in asked["TagKeys"]:
        _tags(scaling, asked).pop(key, None)
    return {}


def list_tags_for_resource(scaling: Autoscaling, asked: Asked) -> Answer:
    """ListTagsForResource."""
    return {"Tags": _tags(scaling, asked)}


def _need_dimension(asked: Asked) -> None:
    if (asked["ServiceNamespace"], asked["ScalableDimension"]) != (NAMESPACE, DIMENSION):
        raise Refused("ValidationException", f"Only {DIMENSION} of {NAMESPACE} is emulated")


def _tags(scaling: Autoscaling, asked: Asked) -> dict[str, str]:
    if asked["ResourceARN"] not in scaling.tags:
        raise Refused("ResourceNotFoundException", f"Resource not found: {asked['ResourceARN']}", ResourceName=asked["ResourceARN"])
    return scaling.tags[asked["ResourceARN"]]


OPERATIONS: Mapping[str, Operation] = {
    "RegisterScalableTarget": register_scalable_target,
    "DescribeScalableTargets": describe_scalable_targets,
    "DeregisterScalableTarget": deregister_scalable_target,
    "PutScalingPolicy": put_scaling_policy,
    "DescribeScalingPolicies": describe_scaling_policies,
    "DeleteScalingPolicy": delete_scaling_policy,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsForResource": list_tags_for_resource,
}

SERVICE = CheckedService(
    "application-autoscaling",
    hosts=r"https?://application-autoscaling\.(.+)\.amazonaws.com",
    operations=OPERATIONS,
    state=Autoscaling,
    malformed="ValidationException",
)


def add() -> None:
    """Serve Application Auto Scaling in this process."""
    SERVICE.take_over(applicationautoscaling_backends)
