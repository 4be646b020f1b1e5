from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from penstock.scripts.emulation.emulated_aws import EmulatedAws

BROKERS = "127.0.0.1:19092"
_numbers = count(1)


@dataclass(frozen=True)
class Account:
    """An emulated account with a network over three zones, roles and a key, and clients of all services."""

    aws: EmulatedAws

    def client(self, service: str) -> Any:
        make: Any = boto3.client
        # botocore's own parameter validation is off: the emulator's is under test.
        config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": "emulated", "aws_secret_access_key": "emulated"}
        return make(service, endpoint_url=self.aws.endpoint, region_name=self.aws.region, config=config, **keys)

    @cached_property
    def ec2(self) -> Any:
        return self.client("ec2")

    @cached_property
    def iam(self) -> Any:
        return self.client("iam")

    @cached_property
    def eks(self) -> Any:
        return self.client("eks")

    @cached_property
    def kafka(self) -> Any:
        return self.client("kafka")

    @cached_property
    def vpc(self) -> str:
        vpc: str = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        return vpc

    @cached_property
    def subnets(self) -> list[str]:
        return [self.subnet(self.vpc, f"10.0.{number}.0/24", zone) for number, zone in enumerate("abc")]

    @cached_property
    def key(self) -> str:
        arn: str = self.client("kms").create_key()["KeyMetadata"]["Arn"]
        return arn

    @cached_property
    def cluster_role(self) -> str:
        return self.role("eks.amazonaws.com")

    @cached_property
    def node_role(self) -> str:
        return self.role("ec2.amazonaws.com")

    @cached_property
    def pod_role(self) -> str:
        return self.role("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession"))

    def subnet(self, vpc: str, cidr: str, zone: str) -> str:
        made = self.ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"{self.aws.region}{zone}")
        id: str = made["Subnet"]["SubnetId"]
        return id

    def role(self, service: str, actions: Sequence[str] = ("sts:AssumeRole",)) -> str:
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        arn: str = self.iam.create_role(RoleName=name("role"), AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        return arn

    def cluster(self, **asked: Any) -> Any:
        """Create an EKS cluster and return its description."""
        own = {"name": name("cluster"), "roleArn": self.cluster_role, "version": "1.35", "accessConfig": {"authenticationMode": "API"}}
        return self.eks.create_cluster(**{**own, "resourcesVpcConfig": {"subnetIds": self.subnets}, **asked})["cluster"]


def name(kind: str) -> str:
    """An unused name."""
    return f"{kind}-{next(_numbers)}"


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    """Return the status and the error code of a failed call."""
    with pytest.raises(ClientError) as raised:
        call()
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    log = tmp_path_factory.mktemp("account") / "aws.log"
    with EmulatedAws(log=log, account="123456780000", brokers=BROKERS) as running:
        yield Account(running)
    # Bugs of the emulator are in its log, and only there if a client took them for an error of AWS.
    assert "is none of AWS's" not in log.read_text()
    assert "Traceback" not in log.read_text()
