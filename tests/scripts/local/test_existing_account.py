"""What an environment expects in its account, in an emulated one; with roles and keys in a second emulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import file_of
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.existing_account import prepared
from penstock.scripts.provisioning.aws_access import AwsAccess

ACCOUNT, ADMIN = "123456780000", "arn:aws:iam::123456780000:role/admin"
PRIVATE = [f"subnet-0123456789abcde{number}" for number in range(3)]
PUBLIC = [f"subnet-0123456789abcdf{number}" for number in range(3)]
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


def _environment(endpoint: str, services: dict[str, str] | None = None, public: tuple[str, ...] = ()) -> Environment:
    document: Any = yaml.safe_load(file_of("local").read_text("utf-8"))
    existing = {"vpcId": "vpc-0123456789abcdef0", "cidr": "10.7.0.0/16", "privateSubnetIds": PRIVATE, "publicSubnetIds": list(public)}
    document["spec"] |= {"account": ACCOUNT, "network": {"zones": ZONES, "existing": existing}, "jobs": []}
    document["spec"]["eks"]["admins"] = [ADMIN]
    return Environment.model_validate(document).at(endpoint, services)


@pytest.mark.parametrize("public", [(), tuple(PUBLIC)])
def test_the_vpc_is_made_with_its_subnets_in_their_zones(tmp_path: Path, public: tuple[str, ...]) -> None:
    with EmulatedAws(log=tmp_path / "aws.log", account=ACCOUNT) as aws:
        environment = prepared(_environment(aws.endpoint, public=public))
        network = environment.spec.network
        assert network is not None and network.existing is not None
        access = AwsAccess(environment)
        ids = [*network.existing.private_subnet_ids, *network.existing.public_subnet_ids]
        described = {one["SubnetId"]: one for one in access.client("ec2").describe_subnets(SubnetIds=ids)["Subnets"]}
        assert [described[id]["AvailabilityZone"] for id in ids] == ZONES * (2 if public else 1)
        assert {described[id]["VpcId"] for id in ids} == {network.existing.vpc_id}
        assert len({described[id]["CidrBlock"] for id in ids}) == len(ids)
        assert access.client("iam").get_role(RoleName="admin")["Role"]["Arn"] == ADMIN


def test_a_cluster_has_its_role_in_one_emulator_and_its_subnets_in_another(tmp_path: Path) -> None:
    """As with LocalStack: what EKS asks for is looked up where it is."""
    with (
        EmulatedAws(log=tmp_path / "roles.log", account=ACCOUNT) as roles,
        EmulatedAws(log=tmp_path / "aws.log", account=ACCOUNT, neighbours={"iam": roles.endpoint}) as aws,
    ):
        environment = prepared(_environment(aws.endpoint, {"iam": roles.endpoint}))
        existing = environment.spec.network.existing if environment.spec.network else None
        assert existing is not None
        access = AwsAccess(environment)
        trust = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        eks = access.client("eks")

        def create(role: str) -> Any:
            arn, subnets = f"arn:aws:iam::{ACCOUNT}:role/{role}", existing.private_subnet_ids
            return eks.create_cluster(name="one", roleArn=arn, resourcesVpcConfig={"subnetIds": subnets})

        with pytest.raises(eks.exceptions.InvalidParameterException):
            create("nodes")
        access.client("iam").create_role(RoleName="nodes", AssumeRolePolicyDocument=document)
        assert create("nodes")["cluster"]["resourcesVpcConfig"]["vpcId"] == existing.vpc_id
