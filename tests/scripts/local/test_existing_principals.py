"""The roles and users that an emulated account has before an environment is applied to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.existing_principals import create_principals

ACCOUNT = "123456780000"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    with EmulatedAws(log=tmp_path / "aws.log", account=ACCOUNT) as aws:
        own = aws.environment()

        made: Any = boto3.Session(
            aws_access_key_id=own["AWS_ACCESS_KEY_ID"], aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"], region_name=own["AWS_REGION"]
        )
        yield lambda service: made.client(service, endpoint_url=aws.endpoint)


def test_roles_and_users_have_the_arns_that_the_environment_names(session: Any) -> None:
    iam = session("iam")
    roles = [f"arn:aws:iam::{ACCOUNT}:role/admin", f"arn:aws:iam::{ACCOUNT}:role/teams/data/deploy"]
    user = f"arn:aws:iam::{ACCOUNT}:user/ops/first"
    create_principals(iam, [*roles, user, roles[0]])
    assert [iam.get_role(RoleName=name)["Role"]["Arn"] for name in ("admin", "deploy")] == roles
    assert iam.get_user(UserName="first")["User"]["Arn"] == user


def test_an_access_entry_of_eks_takes_them(session: Any) -> None:
    """Without, EKS refuses the entry: the emulator asks its IAM, as AWS does."""
    iam, eks = session("iam"), session("eks")
    admin, nodes = (f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("admin", "cluster"))
    trust = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName="cluster", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    subnets = [one["SubnetId"] for one in session("ec2").describe_subnets()["Subnets"]][:2]
    eks.create_cluster(name="one", roleArn=nodes, resourcesVpcConfig={"subnetIds": subnets}, accessConfig={"authenticationMode": "API"})
    with pytest.raises(eks.exceptions.InvalidParameterException, match="invalid principal"):
        eks.create_access_entry(clusterName="one", principalArn=admin)
    create_principals(iam, [admin])
    assert eks.create_access_entry(clusterName="one", principalArn=admin)["accessEntry"]["principalArn"] == admin
