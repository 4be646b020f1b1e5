"""An EKS cluster and a VPC that others have made: they are held against the environment, and the stacks leave both as they are."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.existing_account import prepared
from penstock.scripts.local.rehearsed_stacks import RehearsedStacks
from penstock.scripts.provisioning import existing_cluster
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.stacks import synthesized
from penstock.sizing.errors import PenstockError
from tests.emulated.small_stacks import environment
from tests.emulated.unchanged_cluster import leaves_a_cluster_as_it_was
from tests.infra.existing import OURS, THEIRS, in_existing

Change = Callable[[dict[str, Any]], None]


def _in_existing(own: Environment, cluster: dict[str, Any], change: Change | None = None) -> Environment:
    data = own.model_dump(by_alias=True, exclude_none=True)
    in_existing(data["spec"], cluster)
    if change is not None:
        change(data["spec"])
    return Environment.model_validate(data)


@pytest.fixture
def given(aws: EmulatedAws) -> Callable[..., AwsAccess]:
    """An account with the VPC and the cluster of an environment, each test's own."""

    def made(cluster: dict[str, Any], admins: bool = False) -> AwsAccess:
        own = uuid.uuid4().hex[:8]

        def change(spec: dict[str, Any]) -> None:
            # An account has Spot's role once, and the jobs' stacks take longest.
            spec["nodes"]["spotServiceRole"] = "existing"
            spec["jobs"] = []
            spec["state"] = None
            spec["eks"]["admins"] = [f"arn:aws:iam::{spec['account']}:role/teams/deploy-{own}"] if admins else []

        named = {**cluster, "name": f"platform-{own}", **({"nodeRole": f"nodes-{own}"} if "nodeRole" in cluster else {})}
        _without_role(AwsAccess(environment(aws, f"x{own}")))
        return AwsAccess(prepared(_in_existing(environment(aws, f"x{own}"), named, change)))

    return made


def _without_role(access: AwsAccess) -> None:
    """The role of the cluster, which an account has once."""
    iam = access.client("iam")
    if any(role["RoleName"] == "owners-of-the-cluster" for role in iam.list_roles()["Roles"]):
        iam.delete_role(RoleName="owners-of-the-cluster")


def _said(access: AwsAccess, tmp_path: Path, change: Change | None = None) -> list[PenstockError]:
    """The faults that are found, with their lines, if the environment's spec were another."""
    data = access.environment.model_dump(by_alias=True, exclude_none=True)
    if change is not None:
        change(data["spec"])
    file = tmp_path / "environment.yaml"
    file.write_text(Environment.model_validate(data).text(), "utf-8")
    with pytest.raises(PenstockError) as raised:
        existing_cluster.check(AwsAccess(load(file)))
    assert all(fault.at is not None and fault.at.line is not None for fault in raised.value.errors)
    return list(raised.value.errors)


def test_a_cluster_that_suits_is_said_to(given: Callable[..., AwsAccess]) -> None:
    theirs, ours = given(THEIRS), given(OURS)
    assert existing_cluster.check(theirs) == f"{theirs.environment.cluster_name}, version 1.35, karpenter: existing"
    assert existing_cluster.check(ours) == f"{ours.environment.cluster_name}, version 1.35, karpenter: create"


def test_one_that_does_not_exist_is_named(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    def other(spec: dict[str, Any]) -> None:
        spec["eks"]["existing"]["name"] = "nobodys"

    (fault,) = _said(given(THEIRS), tmp_path, other)
    assert (fault.code, fault.path, fault.given) == ("DEP-052", "spec.eks.existing.name", "nobodys")


def test_another_version_and_another_vpc_are_found_together(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(THEIRS)
    asked = access.environment.spec.network
    assert asked is not None and asked.existing is not None
    vpc = asked.existing.vpc_id

    def other(spec: dict[str, Any]) -> None:
        spec["eks"]["version"] = "1.34"
        spec["network"]["existing"]["vpcId"] = "vpc-0123456789abcdef0"

    version, network = _said(access, tmp_path, other)
    assert (version.code, version.path, version.fix) == ("INF-058", "spec.eks.version", 'version: "1.35"')
    assert (network.code, network.path) == ("INF-058", "spec.network.existing.vpcId")
    assert network.fix.startswith(f"vpcId: {vpc}")


def test_a_cluster_without_access_entries_or_the_agent_is_unfit(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(OURS)
    eks, existing = access.client("eks"), access.environment.cluster_name
    network = access.environment.spec.network
    assert network is not None and network.existing is not None
    role = eks.describe_cluster(name=existing)["cluster"]["roleArn"]
    old = {"name": f"old-{existing}", "version": "1.35", "roleArn": role, "accessConfig": {"authenticationMode": "CONFIG_MAP"}}
    eks.create_cluster(**old, resourcesVpcConfig={"subnetIds": network.existing.private_subnet_ids})

    def other(spec: dict[str, Any]) -> None:
        spec["eks"]["existing"]["name"] = old["name"]

    mode, agent = _said(access, tmp_path, other)
    assert (mode.code, mode.given) == ("DEP-054", "its authentication mode is CONFIG_MAP")
    assert "authenticationMode=API_AND_CONFIG_MAP" in mode.fix
    assert (agent.code, agent.given) == ("DEP-054", "it has no add-on eks-pod-identity-agent")
    assert agent.fix.endswith(f"create-addon --region us-east-1 --cluster-name {old['name']} --addon-name eks-pod-identity-agent")


def test_security_groups_and_the_role_of_nodes_must_be_there(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(THEIRS)
    stranger = access.client("ec2").create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    other_group = access.client("ec2").create_security_group(GroupName="other", Description="other", VpcId=stranger)["GroupId"]

    def other(spec: dict[str, Any]) -> None:
        spec["eks"]["existing"] |= {"securityGroupIds": ["sg-0123456789abcdef0", other_group], "nodeRole": "nobodys"}

    absent, elsewhere, role = _said(access, tmp_path, other)
    assert (absent.code, absent.path) == ("INF-058", "spec.eks.existing.securityGroupIds[0]")
    assert (elsewhere.code, elsewhere.given) == ("INF-058", other_group)
    assert stranger in elsewhere.need
    assert (role.code, role.given) == ("DEP-055", "nobodys does not exist")


def test_where_another_karpenter_is_none_is_installed(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(OURS)
    trust = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    name = f"their-{access.environment.name}"
    arn = access.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    at = {"clusterName": access.environment.cluster_name, "namespace": "kube-system", "serviceAccount": "karpenter"}
    access.client("eks").create_pod_identity_association(**at, roleArn=arn)
    (fault,) = _said(access, tmp_path)
    assert (fault.code, fault.path, fault.given) == (
        "DEP-055",
        "spec.eks.existing.karpenter",
        f"kube-system/karpenter has the role {arn}",
    )
    assert not existing_cluster.has_own_controller(access)


def test_the_jobs_of_another_environment_are_found_before_any_chart_is_there(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(THEIRS)
    iam, eks, cluster = access.client("iam"), access.client("eks"), access.environment.cluster_name
    principal = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [principal]})
    role = iam.create_role(RoleName=f"{cluster}-clicks", AssumeRolePolicyDocument=trust)["Role"]["Arn"]

    def associated(job: str, environment: str) -> None:
        tags = {"penstock:environment": environment}
        asked = {"namespace": f"job-{job}", "serviceAccount": f"{job}-driver", "roleArn": role}
        eks.create_pod_identity_association(clusterName=cluster, tags=tags, **asked)

    associated("clicks", "first")
    associated("ours", access.environment.name)
    assert existing_cluster.check(access, ["ours", "orders"])
    file = tmp_path / "environment.yaml"
    file.write_text(access.environment.text(), "utf-8")
    with pytest.raises(PenstockError) as raised:
        existing_cluster.check(AwsAccess(load(file)), ["clicks", "ours"])
    (fault,) = raised.value.errors
    assert (fault.code, fault.given) == ("INF-064", "job-clicks, of environment first")
    assert fault.at is not None and fault.at.line is not None


def test_administrators_whom_its_owners_have_admitted_are_not_admitted_again(given: Callable[..., AwsAccess], tmp_path: Path) -> None:
    access = given(OURS)
    name = f"admin-{access.environment.name}"
    arn = access.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    access.client("eks").create_access_entry(clusterName=access.environment.cluster_name, principalArn=arn)

    def admitted(spec: dict[str, Any]) -> None:
        spec["eks"]["admins"] = [arn]

    (fault,) = _said(access, tmp_path, admitted)
    assert (fault.code, fault.path, fault.given) == ("INF-059", "spec.eks.admins[0]", arn)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("cluster", [THEIRS, pytest.param(OURS, marks=pytest.mark.chaos)], ids=["their-karpenter", "our-karpenter"])
def test_stacks_are_applied_planned_again_and_destroyed_and_what_was_there_stays_as_it_was(
    given: Callable[..., AwsAccess], tmp_path: Path, cluster: dict[str, Any]
) -> None:
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    access = given(cluster, admins=True)
    environment = access.environment
    stacks = synthesized(environment, tmp_path, only=["karpenter"], state=tmp_path / "state")
    assert {stack.name for stack in stacks} == {"network", "cluster", "karpenter"}
    leaves_a_cluster_as_it_was(RehearsedStacks(stacks, access), access, created=cluster["karpenter"] == "create")
