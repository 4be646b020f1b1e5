from __future__ import annotations

from typing import Any

import botocore.session
import pytest

from penstock.scripts.emulation.service_model_check import RAISED_LIMITS, answer_faults, request_faults


@pytest.fixture(scope="module")
def kafka() -> Any:
    return botocore.session.get_session().get_service_model("kafka")


def _faults(kafka: Any, operation: str, **asked: Any) -> list[str]:
    return request_faults(asked, kafka.operation_model(operation).input_shape)


def test_a_request_that_fits_has_no_fault(kafka: Any) -> None:
    assert _faults(kafka, "CreateConfiguration", Name="a", ServerProperties=b"", KafkaVersions=["3.9.x"]) == []


def test_every_error_is_reported_with_its_location(kafka: Any) -> None:
    group = {"InstanceType": "m5", "ClientSubnets": ["subnet-0", 1]}
    faults = _faults(kafka, "CreateCluster", ClusterName="", KafkaVersion=39, BrokerNodeGroupInfo=group, EnhancedMonitoring="ALL", Moon=1)
    assert faults == [
        "NumberOfBrokerNodes is missing",
        "ClusterName has 0, less than 1",
        "KafkaVersion is int, not string",
        "BrokerNodeGroupInfo.InstanceType has 2, less than 5",
        "BrokerNodeGroupInfo.ClientSubnets[1] is int, not string",
        "EnhancedMonitoring is 'ALL', not one of DEFAULT, PER_BROKER, PER_TOPIC_PER_BROKER, PER_TOPIC_PER_PARTITION",
        "Moon is not known",
    ]


def test_a_truth_is_no_number(kafka: Any) -> None:
    assert (
        "is bool, not integer" in _faults(kafka, "UpdateBrokerCount", TargetNumberOfBrokerNodes=True, ClusterArn="", CurrentVersion="")[0]
    )


def test_a_limit_that_aws_has_raised_is_not_botocores(kafka: Any) -> None:
    (most,) = RAISED_LIMITS.values()
    asked = {"ClusterArn": "a", "CurrentVersion": "K"}
    assert _faults(kafka, "UpdateBrokerCount", **asked, TargetNumberOfBrokerNodes=most) == []
    assert len(_faults(kafka, "UpdateBrokerCount", **asked, TargetNumberOfBrokerNodes=most + 1)) == 1


def test_an_answer_may_be_empty_where_a_request_may_not() -> None:
    shape = botocore.session.get_session().get_service_model("eks").operation_model("DescribeCluster").output_shape
    assert answer_faults({"cluster": {"tags": {}}}, shape) == []
    assert answer_faults({"cluster": {"colour": "red"}}, shape) == ["cluster.colour is not known"]
    assert answer_faults({"a": 1}, None) == ["a is not in an empty answer"]
