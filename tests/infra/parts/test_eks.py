from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.parts.eks import arm
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read

ADMIN = "arn:aws:iam::111122223333:role/deploy"


def _faults(folder: Path, **eks: Any) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        read(folder, lambda spec: spec["eks"].update(eks))
    return list(raised.value.errors)


@pytest.mark.parametrize(
    ("fields", "path", "need"),
    [
        ({"publicAccessCidrs": ["0.0.0.0/0"]}, "publicAccessCidrs[0]", "opens the API server to most of the Internet"),
        ({"publicAccessCidrs": ["::/0"]}, "publicAccessCidrs[0]", "opens the API server to most of the Internet"),
        ({"publicAccessCidrs": ["0.0.0.0/1"]}, "publicAccessCidrs[0]", "no larger than /8"),
        ({"publicAccessCidrs": ["2000::/3"]}, "publicAccessCidrs[0]", "no larger than /16"),
        ({"publicAccessCidrs": ["10.0.0.0/8"]}, "publicAccessCidrs[0]", "public addresses, not the private ones"),
        ({"publicAccessCidrs": ["192.168.1.0/24"]}, "publicAccessCidrs[0]", "public addresses, not the private ones"),
        ({"publicAccessCidrs": ["203.0.113.7/24"]}, "publicAccessCidrs[0]", "the network address of the block: 203.0.113.0/24"),
        ({"publicAccessCidrs": ["office"]}, "publicAccessCidrs[0]", "a CIDR block such as 203.0.113.0/24"),
        ({"publicAccessCidrs": ["203.0.113.0/24"] * 2}, "publicAccessCidrs", "duplicate: 203.0.113.0/24"),
        ({"publicAccessCidrs": [f"203.0.113.{n}/32" for n in range(41)]}, "publicAccessCidrs", "40"),
        ({"privateAccessCidrs": ["0.0.0.0/0"]}, "privateAccessCidrs[0]", "opens the API server to most of the Internet"),
        ({"admins": ["deploy"]}, "admins[0]", "arn:aws"),
        ({"admins": ["arn:aws:sts::111122223333:assumed-role/deploy/me"]}, "admins[0]", "iam"),
        ({"admins": ["arn:aws:iam::111122223333:root"]}, "admins[0]", "role|user"),
        ({"admins": [ADMIN, ADMIN]}, "admins", "duplicate"),
        ({"admins": [ADMIN, "arn:aws:iam::111122223333:role/a/b", "arn:aws:iam::111122223333:role/a-b"]}, "admins", "the same address"),
        ({"logRetentionDays": 100}, "logRetentionDays", "90"),
        ({"systemNodes": {"instanceTypes": ["m7i.large", "m7g.large"]}}, "systemNodes.instanceTypes", "a single architecture"),
        ({"systemNodes": {"instanceTypes": []}}, "systemNodes.instanceTypes", "1"),
        ({"systemNodes": {"instanceTypes": ["large"]}}, "systemNodes.instanceTypes[0]", "a-z0-9"),
        ({"systemNodes": {"min": 4}}, "systemNodes", "min of at most max, 3; min is 4"),
        ({"addOnVersions": {"coredns": "1.12"}}, "addOnVersions.coredns", "eksbuild"),
        ({"addOnVersions": {"flannel": "v1.0.0-eksbuild.1"}}, "addOnVersions.flannel", "vpc-cni"),
    ],
)
def test_an_invalid_cluster_is_reported_with_its_line(tmp_path: Path, fields: dict[str, Any], path: str, need: str) -> None:
    (fault,) = _faults(tmp_path, **fields)
    assert (fault.code, fault.path) == ("SPEC-006", f"spec.eks.{path}")
    assert need in fault.need
    assert fault.at is not None
    assert fault.at.line is not None


def test_all_faults_of_a_cluster_are_reported_at_once(tmp_path: Path) -> None:
    faults = _faults(tmp_path, publicAccessCidrs=["0.0.0.0/0", "10.0.0.0/8"], admins=["me"], version="35")
    assert sorted(fault.path for fault in faults) == [
        "spec.eks.admins[0]",
        "spec.eks.publicAccessCidrs[0]",
        "spec.eks.publicAccessCidrs[1]",
        "spec.eks.version",
    ]


def test_ranges_of_a_single_owner_are_accepted(tmp_path: Path) -> None:
    ranges = ["203.0.113.0/24", "198.51.100.7/32", "2001:db8::/32"]
    eks = read(tmp_path, lambda spec: spec["eks"].update(publicAccessCidrs=ranges)).spec.eks
    assert eks is not None
    assert eks.public_access_cidrs == ranges


def test_a_graviton_type_is_known_by_its_name() -> None:
    for instance in shipped().types:
        assert arm(instance.name) == (instance.arch == "arm64"), instance.name
