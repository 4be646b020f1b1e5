from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from moto.core.request import Request

from penstock.scripts.emulation.checked_service import CheckedService, Operation, Place, Refused

SIGNED = "AWS4-HMAC-SHA256 Credential=emulated/20261121/eu-west-1/kafka/aws4_request, SignedHeaders=host, Signature=0"
ARN = "arn%3Aaws%3Akafka%3Aeu-west-1%3A0%3Acluster%2Fa%2Fb"


class Service(CheckedService):
    """MSK with the test's own operations, and a state without moto."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        super().__init__("kafka", hosts="", operations=operations, state=lambda place: place, malformed="BadRequestException")

    def state_of(self, place: Place) -> Place:
        return place

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str | None, Any]:
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Authorization": SIGNED, "Content-Type": "application/json"}
        request = Request.from_primitives(method, f"http://localhost{path}", headers, sent)
        request.environ["RAW_URI"] = path
        status, answered, said = self.answer(request, f"http://localhost{path}", headers)
        return status, answered.get("x-amzn-errortype"), json.loads(said)


def test_an_operation_gets_what_was_asked_in_the_models_names_and_its_place() -> None:
    got: list[Any] = []

    def operation(place: Place, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        got.extend((place, dict(asked)))
        return {"ClusterArn": asked["ClusterArn"], "ClusterOperationArn": "o"}

    service = Service({"UpdateBrokerCount": operation})
    asked = {"currentVersion": "K1", "targetNumberOfBrokerNodes": 6}
    status, _, said = service.ask("PUT", f"/v1/clusters/{ARN}/nodes/count", asked)
    arn = "arn:aws:kafka:eu-west-1:0:cluster/a/b"
    assert (status, said) == (200, {"clusterArn": arn, "clusterOperationArn": "o"})
    assert got[1] == {"ClusterArn": arn, "CurrentVersion": "K1", "TargetNumberOfBrokerNodes": 6}
    assert (got[0].region, got[0].partition) == ("eu-west-1", "aws")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        {},
        {"currentVersion": "K1", "targetNumberOfBrokerNodes": "six"},
        {"currentVersion": 1, "targetNumberOfBrokerNodes": 6},
        {"currentVersion": "K1", "targetNumberOfBrokerNodes": 0},
    ],
    ids=str,
)
def test_a_request_that_does_not_fit_the_model_reaches_no_operation(body: Any) -> None:
    service = Service({"UpdateBrokerCount": lambda place, asked: pytest.fail("it was asked")})
    status, code, said = service.ask("PUT", f"/v1/clusters/{ARN}/nodes/count", body)
    assert (status, code) == (400, "BadRequestException")
    assert said["message"]


def test_a_refusal_has_the_status_and_the_names_of_the_model() -> None:
    def refuse(place: Place, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        raise Refused("ConflictException", "it is there", InvalidParameter="name")

    status, code, said = Service({"CreateClusterV2": refuse}).ask("POST", "/api/v2/clusters", {"clusterName": "a"})
    assert (status, code) == (409, "ConflictException")
    assert said == {"__type": "ConflictException", "message": "it is there", "invalidParameter": "name"}


@pytest.mark.parametrize(
    "error",
    [Refused("NoSuchException", "x"), Refused("ConflictException", "x"), Refused("BadRequestException", "x", Colour="red")],
    ids=lambda error: error.code + "".join(error.members),
)
def test_a_refusal_that_aws_would_not_give_is_a_fault_of_the_emulator(error: Refused) -> None:
    def refuse(place: Place, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    status, code, said = Service({"ListKafkaVersions": refuse}).ask("GET", "/v1/kafka-versions")
    assert (status, code) == (500, "InternalFailure")
    assert "none of AWS's" in said["message"]


@pytest.mark.parametrize("answer", [{"Versions": []}, {"KafkaVersions": [{"Version": 3}]}, {"KafkaVersions": [{"Status": "OLD"}]}], ids=str)
def test_an_answer_that_aws_would_not_give_is_a_fault_of_the_emulator(answer: dict[str, Any]) -> None:
    status, code, said = Service({"ListKafkaVersions": lambda place, asked: answer}).ask("GET", "/v1/kafka-versions")
    assert (status, code) == (500, "InternalFailure")
    assert "ListKafkaVersions" in said["message"]


def test_what_is_not_emulated_is_named() -> None:
    status, code, said = Service({}).ask("GET", "/v1/kafka-versions")
    assert (status, code) == (501, "NotImplemented")
    assert said["message"] == "kafka ListKafkaVersions is not emulated"
    assert Service({}).ask("GET", "/v9/nothing")[2]["message"] == "kafka GET /v9/nothing is not emulated"
