from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.cli import doctor
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.existing_principals import create_policy
from penstock.scripts.provisioning import account_checks, boundary, existing_network, state_bucket
from penstock.scripts.provisioning.account_checks import SPOT_ROLE
from penstock.scripts.provisioning.aws_access import AwsAccess, Caller
from penstock.scripts.provisioning.errors import BoundaryMissing, NetworkDiffers
from tests.emulated.small_stacks import environment


def _run(tmp_path: Path, asked: Environment, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "environment.yaml"
    file.write_text(asked.text())
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    code = doctor.run(parser.parse_args([str(file), "-o", "json"]))
    findings = json.loads(capsys.readouterr().out)["findings"]
    return code, {one["name"]: one for one in findings if one["group"].startswith("environment")}


def _zoned(asked: Environment, *zones: str) -> Environment:
    production = load("production").model_dump(by_alias=True, exclude_none=True)["spec"]
    data = asked.model_dump(by_alias=True, exclude_none=True)
    data["spec"] |= {part: production[part] for part in ("network", "eks", "nodes", "kafka")}
    data["spec"]["network"] |= {"zones": list(zones), "natGateways": 1}
    return Environment.model_validate(data)


def _push(own: Environment, tag: str) -> None:
    ecr = AwsAccess(own).client("ecr")
    name = f"{own.prefix}/jobs"
    if not any(one["repositoryName"] == name for one in ecr.describe_repositories()["repositories"]):
        ecr.create_repository(repositoryName=name)
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, "tag": tag, "layers": [], "config": {"size": 1}})
    ecr.put_image(repositoryName=name, imageManifest=manifest, imageManifestMediaType=kind, imageTag=tag)


def test_missing_prerequisites_on_aws_are_reported_with_their_fixes(
    aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = _zoned(environment(aws, "doc"), "us-east-1a", "us-east-1b", "us-east-1z")
    code, result = _run(tmp_path, own, capsys)
    assert code == 4
    assert (result["credentials"]["state"], result["state bucket"]["state"], result["zones"]["state"]) == ("ok", "missing", "missing")
    assert result["state bucket"]["fix"] == f"penstock bootstrap {tmp_path / 'environment.yaml'}"
    assert "us-east-1z" in result["zones"]["said"]
    state_bucket.bootstrap(AwsAccess(own))
    _push(own, own.spec.registry.image_tag)
    _, result = _run(tmp_path, _zoned(own, "us-east-1a", "us-east-1b"), capsys)
    assert {one["state"] for one in result.values()} == {"ok"}


def test_without_an_answer_of_aws_nothing_else_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = _run(tmp_path, load("local").at("http://127.0.0.1:1"), capsys)
    assert code == 4
    assert result["credentials"]["said"].startswith("RUN-021")
    assert "zones" not in result


def _account(aws: EmulatedAws, name: str, **spec: Any) -> Environment:
    own = _zoned(environment(aws, name), "us-east-1a", "us-east-1b")
    data = own.model_dump(by_alias=True, exclude_none=True)
    for part, fields in spec.items():
        data["spec"][part] |= fields
    return Environment.model_validate(data)


def test_administrators_that_do_not_exist_are_named(aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    account = load("local").spec.account
    there, absent = (f"arn:aws:iam::{account}:role/{name}" for name in ("teams/doctor-admin", "doctor-nobody"))
    own = _account(aws, "docadmin", eks={"admins": [there, absent]})
    AwsAccess(own).client("iam").create_role(RoleName="doctor-admin", Path="/teams/", AssumeRolePolicyDocument="{}")
    code, result = _run(tmp_path, own, capsys)
    assert code == 4
    assert (result["administrators"]["state"], result["administrators"]["said"]) == ("missing", f"{absent} does not exist")
    _, result = _run(tmp_path, _account(aws, "docadmin", eks={"admins": [there]}), capsys)
    assert (result["administrators"]["state"], result["administrators"]["said"]) == ("ok", "doctor-admin")


def test_a_boundary_that_does_not_exist_is_reported_by_doctor_and_before_a_deploy(
    aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arn = f"arn:aws:iam::{load('local').spec.account}:policy/teams/doctor-boundary"
    own = environment(aws, "docbound").with_spec(permissions_boundary=arn)
    code, result = _run(tmp_path, own, capsys)
    assert (code, result["permissions boundary"]["state"]) == (4, "missing")
    with pytest.raises(BoundaryMissing) as raised:
        boundary.check(AwsAccess(load(tmp_path / "environment.yaml")))
    assert (raised.value.path, raised.value.given, raised.value.code) == ("spec.permissionsBoundary", arn, "DEP-023")
    create_policy(AwsAccess(own).client("iam"), arn)
    assert _run(tmp_path, own, capsys)[1]["permissions boundary"]["said"] == arn
    ours = own.with_spec(permissions_boundary="arn:aws:iam::aws:policy/PowerUserAccess")
    assert _run(tmp_path, ours, capsys)[1]["permissions boundary"]["state"] == "ok"


def test_the_role_of_spot_is_created_once_an_account(aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create, existing = (_account(aws, "docspot", nodes={"spotServiceRole": asked}) for asked in ("create", "existing"))
    iam = AwsAccess(create).client("iam")
    _, result = _run(tmp_path, existing, capsys)
    assert (result["Spot's role"]["state"], result["Spot's role"]["fix"]) == ("missing", "set spec.nodes.spotServiceRole: create")
    # Not by create_service_linked_role, whose roles the emulated AWS gives other names than AWS.
    iam.create_role(RoleName=SPOT_ROLE, Path="/aws-service-role/spot.amazonaws.com/", AssumeRolePolicyDocument="{}")
    try:
        assert _run(tmp_path, existing, capsys)[1]["Spot's role"]["state"] == "ok"
        _, result = _run(tmp_path, create, capsys)
        assert (result["Spot's role"]["state"], result["Spot's role"]["fix"]) == ("missing", "set spec.nodes.spotServiceRole: existing")
        iam.tag_role(RoleName=SPOT_ROLE, Tags=[{"Key": "penstock:environment", "Value": "docspot"}])
        assert _run(tmp_path, create, capsys)[1]["Spot's role"]["state"] == "ok"
    finally:
        iam.delete_role(RoleName=SPOT_ROLE)


def test_an_existing_vpc_is_held_against_the_environment(aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = AwsAccess(environment(aws, "docvpc")).client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = ("us-east-1a", "us-east-1b")
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{n}.0/24", AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for n, zone in enumerate(zones)
    ]

    def result(**changes: Any) -> tuple[str, str]:
        existing = {"vpcId": vpc, "cidr": "10.9.0.0/16", "privateSubnetIds": subnets, **changes}
        own = _zoned(environment(aws, "docvpc"), *zones).model_dump(by_alias=True, exclude_none=True)
        own["spec"]["network"] = {"zones": list(zones), "natGateways": 1, "existing": existing}
        _, findings = _run(tmp_path, Environment.model_validate(own), capsys)
        return findings["existing VPC"]["state"], findings["existing VPC"]["said"]

    assert result() == ("ok", vpc)
    differs = "DEP-051: existing VPC differs from the environment: "
    assert result(vpcId="vpc-0123456789abcdef0") == ("missing", f"{differs}vpc-0123456789abcdef0 does not exist")
    assert result(cidr="10.8.0.0/16") == ("missing", f"{differs}{vpc} has the addresses 10.9.0.0/16, not 10.8.0.0/16")
    state, said = result(privateSubnetIds=[subnets[1], "subnet-0123456789abcdef0"])
    zone = f"{subnets[1]} is in us-east-1b, not in us-east-1a"
    assert (state, said) == ("missing", f"{differs}{zone}; subnet-0123456789abcdef0 does not exist")


def test_subnets_of_two_vpcs_are_refused_with_their_lines_before_a_deploy(aws: EmulatedAws, tmp_path: Path) -> None:
    ec2 = AwsAccess(environment(aws, "doctwo")).client("ec2")
    zones, vpcs, subnets = ("us-east-1a", "us-east-1b"), [], []
    for zone in zones:
        vpcs.append(ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"])
        subnets.append(ec2.create_subnet(VpcId=vpcs[-1], CidrBlock="10.9.0.0/24", AvailabilityZone=zone)["Subnet"]["SubnetId"])
    own = _zoned(environment(aws, "doctwo"), *zones).model_dump(by_alias=True, exclude_none=True)
    existing = {"vpcId": vpcs[0], "cidr": "10.9.0.0/16", "privateSubnetIds": subnets}
    own["spec"]["network"] = {"zones": list(zones), "natGateways": 1, "existing": existing}
    file = tmp_path / "environment.yaml"
    file.write_text(Environment.model_validate(own).text())
    with pytest.raises(NetworkDiffers) as raised:
        existing_network.check(AwsAccess(load(file)))
    (line,) = [number for number, text in enumerate(file.read_text().splitlines(), start=1) if subnets[1] in text]
    assert (raised.value.code, raised.value.path) == ("DEP-051", "spec.network.existing.privateSubnetIds[1]")
    assert raised.value.given == f"{subnets[1]} is in {vpcs[1]}, not in {vpcs[0]}"
    assert raised.value.at is not None and raised.value.at.line == line


def test_a_tag_that_is_not_in_the_repository_is_named_with_the_jobs_that_would_run_it(
    aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = load("production").spec.job_paths[0]
    data = _account(aws, "docimage").model_dump(by_alias=True, exclude_none=True)
    data["spec"] |= {"jobs": [str(spec)], "registry": {"imageTag": "1.4.2"}}
    own = Environment.model_validate(data)
    repository = f"{own.prefix}/jobs"
    _, result = _run(tmp_path, own, capsys)
    assert result["image"]["state"] == "missing"
    assert result["image"]["said"].startswith(f"{repository} has no tag 1.4.2, which 1 job would run: ")
    _push(own, "1.4.1")
    _, result = _run(tmp_path, own, capsys)
    assert result["image"]["state"] == "missing"
    _push(own, "1.4.2")
    _, result = _run(tmp_path, own, capsys)
    assert (result["image"]["state"], result["image"]["said"]) == ("ok", repository)


@pytest.mark.parametrize(
    ("caller", "admin", "is_it"),
    [
        ("arn:aws:sts::111122223333:assumed-role/ops/me", "arn:aws:iam::111122223333:role/teams/ops", True),
        ("arn:aws:sts::111122223333:assumed-role/ops/me", "arn:aws:iam::444455556666:role/ops", False),
        ("arn:aws:sts::111122223333:assumed-role/ops/me", "arn:aws:iam::111122223333:user/ops", False),
        ("arn:aws:iam::111122223333:user/me", "arn:aws:iam::111122223333:user/me", True),
        ("arn:aws:iam::111122223333:user/me", "arn:aws:iam::111122223333:role/me", False),
    ],
)
def test_a_session_of_a_role_is_the_role(caller: str, admin: str, is_it: bool) -> None:
    assert account_checks.is_principal(Caller("111122223333", caller), admin) == is_it
