"""A role that lacks a right of the deploy, found by IAM's simulation before anything is applied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.pipeline.deploy_role import permissions
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning import cloud, deploy_rights
from penstock.scripts.provisioning.aws_access import AwsAccess, Caller
from penstock.scripts.provisioning.errors import RightMissing
from penstock.sizing.errors import Faults, PenstockError
from tests.emulated.small_stacks import environment

RESOURCES: list[tuple[str, dict[str, Any]]] = [
    ("aws_vpc", {}),
    ("aws_iam_role", {"name": "penstock-rights-driver"}),
    ("aws_eks_cluster", {"name": "penstock-rights"}),
    ("aws_s3_bucket", {"bucket": "penstock-rights-output"}),
]


def role(own: Environment, name: str, *, without: str = "", extra: Any = None) -> Caller:
    """A session of a role with the policy of the pipeline's role, less a statement or with another."""
    statements = [one for one in json.loads(permissions(own, "aws"))["Statement"] if one["Sid"] != without]
    policy = json.dumps({"Version": "2012-10-17", "Statement": [*statements, *([extra] if extra else [])]})
    iam = AwsAccess(own).client("iam")
    iam.create_role(RoleName=name, Path="/teams/", AssumeRolePolicyDocument="{}")
    iam.put_role_policy(RoleName=name, PolicyName="deploy", PolicyDocument=policy)
    return Caller(own.spec.account, f"arn:aws:sts::{own.spec.account}:assumed-role/{name}/session")


@pytest.fixture
def own(aws: EmulatedAws) -> Environment:
    return environment(aws, "rights")


def test_the_pipelines_role_may_create_the_stacks(own: Environment) -> None:
    access, caller = AwsAccess(own), role(own, "rights-whole")
    assert deploy_rights.is_simulated(access, caller)
    assert deploy_rights.check(access, caller, RESOURCES) == "7 actions are allowed"


def test_a_missing_statement_is_named_with_the_actions_that_it_gives(own: Environment) -> None:
    with pytest.raises(Faults) as raised:
        deploy_rights.check(AwsAccess(own), role(own, "rights-no-grants", without="Grants"), RESOURCES)
    first = raised.value.errors[0]
    assert [type(fault) for fault in raised.value.errors] == [RightMissing] * 3 and first.code == "DEP-063"
    assert first.path == f"arn:aws:iam::{own.spec.account}:role/teams/rights-no-grants"
    arn = f"arn:aws:iam::{own.spec.account}:role/penstock-rights-driver"
    assert first.given == f"iam:CreateRole on {arn}, which no policy allows"
    assert first.need == "the right to create aws_iam_role: statement Grants of the role's policy"
    assert "penstock.infra.pipeline role" in first.fix


def test_a_role_of_another_region_may_create_nothing_regional(own: Environment) -> None:
    elsewhere = own.with_spec(region="eu-west-1")
    caller = role(elsewhere, "rights-elsewhere")
    with pytest.raises(Faults) as raised:
        deploy_rights.check(AwsAccess(own), caller, RESOURCES)
    assert [fault.given.partition(" on ")[0] for fault in raised.value.errors] == ["ec2:CreateVpc", "eks:CreateCluster"]
    assert all("statement Stacks" in fault.need for fault in raised.value.errors)


def test_a_denial_is_told_from_a_right_that_is_not_given(own: Environment) -> None:
    extra = {"Sid": "No", "Effect": "Deny", "Action": ["s3:PutBucketPolicy"], "Resource": ["*"]}
    with pytest.raises(RightMissing) as raised:
        deploy_rights.check(AwsAccess(own), role(own, "rights-denied", extra=extra), RESOURCES)
    assert raised.value.given == "s3:PutBucketPolicy on arn:aws:s3:::penstock-rights-output, which a policy denies"
    assert raised.value.fix.startswith("take that denial")


@pytest.mark.parametrize("resource", ["root", "user/nobody", "federated-user/x"])
def test_a_caller_that_iam_does_not_simulate_is_a_note(own: Environment, resource: str) -> None:
    caller = Caller(own.spec.account, f"arn:aws:iam::{own.spec.account}:{resource}")
    assert not deploy_rights.is_simulated(AwsAccess(own), caller)
    assert deploy_rights.check(AwsAccess(own), caller, RESOURCES).startswith("not checked: ")


def test_doctor_asks_for_what_the_synthesized_stacks_have(own: Environment) -> None:
    assert cloud._rights(AwsAccess(own), role(own, "rights-doctor")).endswith(" actions are allowed")
    with pytest.raises(PenstockError) as raised:
        cloud._rights(AwsAccess(own), role(own, "rights-doctor-less", without="Everywhere"))
    assert {fault.given.partition(" on ")[0] for fault in raised.value.errors} >= {"s3:CreateBucket", "s3:PutBucketPolicy"}
    assert all("statement Everywhere" in fault.need for fault in raised.value.errors)
