from __future__ import annotations

from typing import Any

import pytest

from penstock.scripts.emulation.storage_autoscaling import DIMENSION, METRIC, NAMESPACE
from tests.scripts.emulation.conftest import Account, name, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "ValidationException")
GONE = (400, "ObjectNotFoundException")


@pytest.fixture
def target(account: Account) -> dict[str, Any]:
    """A registered cluster, as named in requests."""
    group = {"InstanceType": "kafka.m7g.large", "ClientSubnets": account.subnets}
    asked = {"KafkaVersion": "3.9.x", "NumberOfBrokerNodes": 3, "BrokerNodeGroupInfo": group}
    arn = account.kafka.create_cluster(ClusterName=name("kafka"), **asked)["ClusterArn"]
    named = {"ServiceNamespace": NAMESPACE, "ResourceId": arn, "ScalableDimension": DIMENSION}
    account.client("application-autoscaling").register_scalable_target(**named, MinCapacity=1, MaxCapacity=4000, Tags={"a": "b"})
    return named


def _policy(**asked: Any) -> dict[str, Any]:
    metric = {"PredefinedMetricType": METRIC}
    tracking = {"TargetValue": 60.0, "DisableScaleIn": True, "PredefinedMetricSpecification": metric, **asked}
    return {"PolicyName": "storage", "PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": tracking}


def test_a_target_has_its_range_tags_and_policy_and_goes_with_them(account: Account, target: dict[str, Any]) -> None:
    scaling = account.client("application-autoscaling")
    (described,) = scaling.describe_scalable_targets(ServiceNamespace=NAMESPACE, ResourceIds=[target["ResourceId"]])["ScalableTargets"]
    assert (described["MinCapacity"], described["MaxCapacity"]) == (1, 4000)
    assert scaling.list_tags_for_resource(ResourceARN=described["ScalableTargetARN"])["Tags"] == {"a": "b"}
    made = scaling.put_scaling_policy(**target, **_policy())
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace=NAMESPACE, ResourceId=target["ResourceId"])["ScalingPolicies"]
    assert policy["PolicyARN"] == made["PolicyARN"]
    scaling.register_scalable_target(**target, MaxCapacity=5000)
    (again,) = scaling.describe_scalable_targets(ServiceNamespace=NAMESPACE, ResourceIds=[target["ResourceId"]])["ScalableTargets"]
    assert (again["MinCapacity"], again["MaxCapacity"]) == (1, 5000)
    scaling.deregister_scalable_target(**target)
    assert scaling.describe_scaling_policies(ServiceNamespace=NAMESPACE, ResourceId=target["ResourceId"])["ScalingPolicies"] == []
    assert refusal(lambda: scaling.deregister_scalable_target(**target)) == GONE


@pytest.mark.parametrize(
    "asked",
    [
        {"ResourceId": "arn:aws:kafka:us-east-1:123456780000:cluster/none/0-1"},
        {"MinCapacity": 10, "MaxCapacity": 9},
        {"ServiceNamespace": "moon"},
    ],
    ids=str,
)
def test_a_target_that_can_not_be_is_refused(account: Account, target: dict[str, Any], asked: dict[str, Any]) -> None:
    wanted = {**target, "MinCapacity": 1, "MaxCapacity": 2, **asked}
    assert refusal(lambda: account.client("application-autoscaling").register_scalable_target(**wanted)) == INVALID


@pytest.mark.parametrize(
    "asked",
    [
        {"TargetValue": 95.0},
        {"DisableScaleIn": False},
        {"PredefinedMetricSpecification": {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}},
    ],
    ids=str,
)
def test_a_policy_that_can_not_be_is_refused(account: Account, target: dict[str, Any], asked: dict[str, Any]) -> None:
    assert refusal(lambda: account.client("application-autoscaling").put_scaling_policy(**target, **_policy(**asked))) == INVALID
