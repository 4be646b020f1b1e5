from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment_file import load
from penstock.sizing.errors import PenstockError
from tests.infra.environments import Change, read

PRIVATE = ["10.0.0.0/19", "10.0.32.0/19", "10.0.64.0/19"]
PUBLIC = ["10.0.224.0/24", "10.0.225.0/24", "10.0.226.0/24"]
EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "cidr": "172.20.0.0/16",
    "privateSubnetIds": ["subnet-00000000", "subnet-00000001", "subnet-00000002"],
}


def _changed(fields: dict[str, Any]) -> Change:
    return lambda spec: spec.update(network={"zones": ["us-east-1a", "us-east-1b", "us-east-1c"], "natGateways": 3, **fields})


def _faults(folder: Path, **network: Any) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        read(folder, _changed(network))
    return list(raised.value.errors)


@pytest.mark.parametrize(
    ("fields", "field", "need"),
    [
        ({"zones": ["us-east-1a"], "natGateways": 1}, ".zones", "2"),
        ({"zones": ["us-east-1-bos-1a", "us-east-1a"], "natGateways": 1}, ".zones", "zones such as us-east-1a"),
        ({"zones": ["us-east-1a", "us-east-10a"], "natGateways": 1}, "", "not in this region: us-east-10a"),
        ({"natGateways": 4}, ".natGateways", "at most one NAT gateway per zone: 3"),
        ({"natGateways": -1}, ".natGateways", "0"),
        ({"cidr": "10.0.0.0/15"}, ".cidr", "a prefix length from /16 to /21"),
        ({"cidr": "10.0.0.0/22"}, ".cidr", "private subnets with room for pods; not /22"),
        ({"cidr": "10.0.3.0/16"}, ".cidr", "the network address of the block: 10.0.0.0/16"),
        ({"cidr": "8.8.0.0/16"}, ".cidr", "private addresses"),
        ({"cidr": "ten"}, ".cidr", "an IPv4 CIDR block"),
        ({"privateSubnets": PRIVATE}, "", "both privateSubnets and publicSubnets, or neither"),
        ({"publicSubnets": PUBLIC}, "", "both privateSubnets and publicSubnets, or neither"),
        (
            {"privateSubnets": PRIVATE[:2], "publicSubnets": PUBLIC},
            ".privateSubnets",
            "one subnet per zone, in the order of the zones: 3, not 2",
        ),
        (
            {"privateSubnets": ["10.0.0.0/25", *PRIVATE[1:]], "publicSubnets": PUBLIC},
            ".privateSubnets",
            "a prefix length from /16 to /24; 10.0.0.0/25 has 128 addresses",
        ),
        (
            {"privateSubnets": ["10.1.0.0/19", *PRIVATE[1:]], "publicSubnets": PUBLIC},
            ".privateSubnets",
            "within the VPC's CIDR block 10.0.0.0/16; 10.1.0.0/19 is outside",
        ),
        (
            {"privateSubnets": ["10.0.32.0/20", *PRIVATE[1:]], "publicSubnets": PUBLIC},
            ".privateSubnets",
            "10.0.32.0/19 overlaps 10.0.32.0/20",
        ),
        (
            {"privateSubnets": PRIVATE, "publicSubnets": ["10.0.64.0/24", *PUBLIC[1:]]},
            ".publicSubnets",
            "10.0.64.0/24 overlaps 10.0.64.0/19",
        ),
        ({"natGateways": 0, "privateSubnets": PRIVATE, "publicSubnets": PUBLIC}, ".publicSubnets", "none if natGateways is 0"),
        ({"natGateways": 0, "interfaceEndpoints": ["ecr.api"]}, ".interfaceEndpoints", "also ec2, ecr.dkr, eks, eks-auth, sqs, ssm, sts"),
        ({"interfaceEndpoints": ["sts", "s3"]}, ".interfaceEndpoints", "no s3"),
        ({"interfaceEndpoints": ["sts", "sts"]}, ".interfaceEndpoints", "duplicate: sts"),
        ({"interfaceEndpoints": ["com amazonaws"]}, ".interfaceEndpoints[0]", "a-z0-9"),
        ({"flowLogRetentionDays": 31}, ".flowLogRetentionDays", "30"),
        ({"existing": {**EXISTING, "vpcId": "vpc-1"}}, ".existing.vpcId", "vpc-"),
        ({"existing": {**EXISTING, "cidr": "172.20.0.0/29"}}, ".existing.cidr", "a prefix length from /16 to /28"),
        (
            {"existing": {**EXISTING, "privateSubnetIds": ["subnet-00000000"]}},
            ".existing",
            "one subnet per zone, in the order of the zones: 3, not 1",
        ),
        (
            {"existing": {**EXISTING, "privateSubnetIds": ["subnet-00000000"] * 3}},
            ".existing.privateSubnetIds",
            "duplicate: subnet-00000000",
        ),
        ({"existing": {**EXISTING, "publicSubnetIds": EXISTING["privateSubnetIds"]}}, ".existing", "disjoint private and public subnets"),
        ({"existing": EXISTING, "cidr": "10.0.0.0/16"}, ".existing", "no settings of a new VPC together with existing: cidr"),
        ({"existing": EXISTING, "flowLogRetentionDays": 30}, ".existing", "flowLogRetentionDays"),
    ],
)
def test_an_invalid_network_is_reported_with_its_line(tmp_path: Path, fields: dict[str, Any], field: str, need: str) -> None:
    (fault,) = _faults(tmp_path, **fields)
    assert (fault.code, fault.path) == ("SPEC-006", f"spec.network{field}")
    assert need in fault.need
    assert fault.at is not None
    lines = (tmp_path / "environment.yaml").read_text().splitlines()
    name = fault.path.partition("[")[0].rpartition(".")[2]
    assert fault.at.line is not None
    assert f"{name}:" in lines[fault.at.line - 1] or "[" in fault.path


def test_all_faults_of_a_network_are_reported_at_once(tmp_path: Path) -> None:
    faults = _faults(tmp_path, natGateways=7, cidr="10.0.0.0/30", interfaceEndpoints=["s3"], flowLogRetentionDays=2)
    assert sorted(fault.path for fault in faults) == [
        "spec.network.cidr",
        "spec.network.flowLogRetentionDays",
        "spec.network.interfaceEndpoints",
        "spec.network.natGateways",
    ]


def test_several_faults_of_one_field_are_reported_together(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, privateSubnets=["10.1.0.0/25", "10.1.0.0/26"], publicSubnets=PUBLIC)
    for need in ("one subnet per zone", "10.1.0.0/25 has 128 addresses", "10.1.0.0/26 is outside", "overlaps"):
        assert need in fault.need


def test_a_network_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    shapes: list[dict[str, Any]] = [{"existing": EXISTING}, {"privateSubnets": PRIVATE, "publicSubnets": PUBLIC, "interfaceEndpoints": []}]
    for fields in shapes:
        first = read(tmp_path, _changed(fields))
        (tmp_path / "again.yaml").write_text(first.text())
        assert load(tmp_path / "again.yaml").spec.network == first.spec.network


def test_a_vpc_that_is_made_needs_no_more_than_its_zones(tmp_path: Path) -> None:
    network = read(tmp_path, lambda spec: spec.update(network={"zones": ["us-east-1a", "us-east-1b"]})).spec.network
    assert network is not None
    assert (network.addresses, network.nat_gateways) == ("10.0.0.0/16", 1)
    assert network.subnets.private == ("10.0.0.0/19", "10.0.32.0/19")
