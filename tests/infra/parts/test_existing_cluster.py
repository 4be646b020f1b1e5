from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment_file import load
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read
from tests.infra.existing import NODE_ROLE, OURS, THEIR_POOLS, THEIRS, in_existing


@pytest.mark.parametrize("cluster", [THEIRS, OURS, THEIR_POOLS])
def test_an_existing_cluster_is_read_written_and_read_again(tmp_path: Path, cluster: dict[str, Any]) -> None:
    environment = read(tmp_path, lambda spec: in_existing(spec, cluster))
    assert environment.cluster_name == "platform"
    (tmp_path / "again.yaml").write_text(environment.text(), "utf-8")
    assert load(tmp_path / "again.yaml").spec.eks == environment.spec.eks


@pytest.mark.parametrize(
    ("cluster", "need"),
    [
        ({"name": "platform"}, "karpenter"),
        ({"name": "no spaces", "karpenter": "create"}, "a string matching"),
        ({"name": "platform", "karpenter": "existing"}, "nodeRole, the IAM role"),
        ({"name": "platform", "karpenter": "create", "nodeRole": NODE_ROLE}, "no nodeRole"),
        ({**THEIR_POOLS, "nodeRole": NODE_ROLE}, "no nodeRole"),
        ({"name": "platform", "karpenter": "create", "nodePools": "existing"}, "nodePools: create"),
        ({**THEIRS, "securityGroupIds": ["default"]}, "ids of security groups"),
        ({**THEIRS, "securityGroupIds": ["sg-01234567", "sg-01234567"]}, "each security group once"),
    ],
)
def test_what_does_not_go_together_is_refused_with_its_line(tmp_path: Path, cluster: dict[str, Any], need: str) -> None:
    with pytest.raises(PenstockError, match=need) as raised:
        read(tmp_path, lambda spec: in_existing(spec, cluster))
    assert all(fault.at is not None and fault.at.line is not None for fault in raised.value.errors)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("publicAccessCidrs", ["203.0.113.0/24"]),
        ("privateAccessCidrs", ["10.8.0.0/16"]),
        ("logRetentionDays", 90),
        ("systemNodes", {"min": 1}),
        ("addOnVersions", {"coredns": "v1.12.4-eksbuild.1"}),
        ("karpenterVersion", "1.13.0"),
    ],
)
def test_settings_of_a_new_cluster_are_refused(tmp_path: Path, field: str, value: object) -> None:
    def change(spec: dict[str, Any]) -> None:
        in_existing(spec, THEIRS)
        spec["eks"][field] = value

    with pytest.raises(PenstockError, match=f"together with existing: {field}"):
        read(tmp_path, change)


def test_it_needs_its_own_vpc(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        network = spec["network"]
        in_existing(spec, THEIRS)
        spec["network"] = network

    with pytest.raises(PenstockError, match=r"network\.existing, the VPC of the existing cluster") as raised:
        read(tmp_path, change)
    (fault,) = raised.value.errors
    assert fault.path == "spec.eks"


def test_names_that_its_owners_may_have_are_the_environments_own(tmp_path: Path) -> None:
    theirs, own = read(tmp_path, lambda spec: in_existing(spec, OURS)), load("production")
    assert (theirs.release("fluent-bit"), theirs.node_class) == ("penstock-production-fluent-bit", "penstock-production")
    assert (own.release("fluent-bit"), own.node_class, own.cluster_name) == ("fluent-bit", "default", "penstock-production")
