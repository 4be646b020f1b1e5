from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.cluster import cluster
from penstock.infra.deployable import refuse_undeployable
from penstock.infra.environment_file import load
from penstock.infra.private_network import endpoint_services
from penstock.sizing.errors import PenstockError
from tests.infra.environments import Change, read, written

TODAY = "2026-11-21"
ADMIN = "arn:aws:iam::111122223333:role/deploy"


def _faults(folder: Path, change: Change, today: str = TODAY) -> list[PenstockError]:
    def administrated(spec: dict[str, Any]) -> None:
        spec["eks"]["admins"] = [ADMIN]
        change(spec)

    environment = load(written(folder, administrated))
    try:
        refuse_undeployable(environment, cluster(environment), today=today)
    except PenstockError as error:
        return list(error.errors)
    return []


def _of_eks(**fields: Any) -> Change:
    return lambda spec: spec["eks"].update(fields)


def test_an_environment_on_a_supported_version_with_an_administrator_is_accepted(tmp_path: Path) -> None:
    assert _faults(tmp_path, _of_eks()) == []


@pytest.mark.parametrize(
    ("version", "extended", "today", "code"),
    [
        ("1.34", False, "2026-12-02", None),
        ("1.34", False, "2026-12-03", "INF-020"),
        ("1.34", True, "2026-12-03", None),
        ("1.34", True, "2027-12-03", "INF-020"),
        ("1.33", False, TODAY, "INF-020"),
        ("1.33", True, TODAY, None),
        ("1.30", True, TODAY, "INF-020"),
        ("1.29", False, TODAY, "INF-021"),
        ("1.36", False, TODAY, None),
    ],
)
def test_a_version_is_held_against_the_date(tmp_path: Path, version: str, extended: bool, today: str, code: str | None) -> None:
    faults = _faults(tmp_path, _of_eks(version=version, extendedSupport=extended), today)
    assert [fault.code for fault in faults] == ([code] if code else [])


def test_a_version_out_of_support_is_reported_with_its_line_and_what_to_take(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, _of_eks(version="1.33"))
    assert (fault.path, fault.given, fault.exit_code) == ("spec.eks.version", "1.33", 2)
    assert "ended on 2026-07-29" in fault.need
    assert fault.fix.startswith('version: "1.35", in standard support until 2027-03-27; or extendedSupport: true')
    assert fault.at is not None
    assert "version:" in (tmp_path / "environment.yaml").read_text().splitlines()[(fault.at.line or 0) - 1]


def test_a_date_after_all_that_is_known_has_no_version_to_name(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, _of_eks(), "2030-01-01")
    assert (fault.code, fault.fix) == ("INF-020", "use a version that EKS supports")


def test_a_cluster_without_an_administrator_is_rejected(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, _of_eks(admins=[]))
    assert (fault.code, fault.path) == ("INF-022", "spec.eks.admins")
    assert fault.fix == "admins: [arn:aws:iam::111122223333:role/NAME]"


def test_an_emulated_cluster_needs_no_administrator(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["eks"]["admins"] = []
        spec["endpoints"] = {"aws": "http://127.0.0.1:4566"}

    assert _faults(tmp_path, change) == []


def test_a_zone_in_which_nothing_is_sold_is_refused(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, lambda spec: spec["network"].update(zones=["us-east-1a", "us-east-1b", "us-east-1z"]))
    assert (fault.code, fault.path, fault.given) == ("INF-023", "spec.network.zones[2]", "us-east-1z")
    assert "us-east-1a" in fault.need
    assert fault.at is not None


def test_everything_that_prevents_a_deploy_is_reported_at_once(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["eks"].update(version="1.33", admins=[])
        spec["network"]["zones"] = ["us-east-1a", "us-east-1b", "us-east-1z"]

    assert [fault.code for fault in _faults(tmp_path, change)] == ["INF-020", "INF-022", "INF-023"]


def test_an_environment_without_a_cluster_has_nothing_to_be_held_against() -> None:
    environment = load(Path(__file__).parent / "bare.yaml")
    refuse_undeployable(environment, cluster(environment), today=TODAY)


ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
MIRRORS = {"public.ecr.aws": f"{ECR}/ecr-public", "cr.fluentbit.io": f"{ECR}/fluent-bit", "quay.io": f"{ECR}/quay"}
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:bank-AbCdEf"
BANK = {"kind": "postgres", "url": "postgresql://bank.internal:5432/bank?sslmode=verify-full", "secret": SECRET}


def _private(**changes: Any) -> Change:
    def change(spec: dict[str, Any]) -> None:
        spec["network"] = {"zones": spec["network"]["zones"], "natGateways": 0, **changes.pop("network", {})}
        spec.update(changes)

    return change


def test_without_a_nat_gateway_each_registry_needs_a_mirror(tmp_path: Path) -> None:
    faults = _faults(tmp_path, _private(mirrors={"quay.io": MIRRORS["quay.io"]}, observability={"prometheus": "cluster"}))
    assert [(fault.code, fault.path, fault.given) for fault in faults] == [("INF-056", "spec.mirrors", "quay.io")] * 2
    assert ["public.ecr.aws" in faults[0].need, "cr.fluentbit.io" in faults[1].need] == [True, True]
    assert _faults(tmp_path, _private(mirrors=MIRRORS)) == []


def test_prometheus_needs_a_mirror_where_it_runs(tmp_path: Path) -> None:
    two = {registry: mirror for registry, mirror in MIRRORS.items() if registry != "quay.io"}
    assert _faults(tmp_path, _private(mirrors=two, observability={"prometheus": "none"})) == []
    (fault,) = _faults(tmp_path, _private(mirrors=two, observability={"prometheus": "cluster"}))
    assert "for Prometheus" in fault.need


def test_without_a_nat_gateway_secrets_are_read_through_an_endpoint(tmp_path: Path) -> None:
    endpoints = ["ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts"]
    with_secret = {"mirrors": MIRRORS, "connections": {"bank": BANK}}
    (fault,) = _faults(tmp_path, _private(**with_secret, network={"interfaceEndpoints": endpoints}))
    assert (fault.code, fault.path) == ("INF-057", "spec.network.interfaceEndpoints")
    assert _faults(tmp_path, _private(**with_secret, network={"interfaceEndpoints": [*endpoints, "secretsmanager"]})) == []
    assert _faults(tmp_path, _private(**with_secret)) == []
    assert "secretsmanager" in endpoint_services(read(tmp_path, _private(**with_secret)))
    assert "secretsmanager" not in endpoint_services(read(tmp_path, _private(mirrors=MIRRORS)))
    assert "secretsmanager" not in endpoint_services(read(tmp_path, lambda spec: spec.update(connections={"bank": BANK})))


@pytest.mark.parametrize("mirrors", [{"docker.io": ECR}, {"quay.io": f"https://{ECR}"}, {"quay.io": f"{ECR}/"}])
def test_a_mirror_is_a_host_and_a_prefix_of_a_registry_that_is_used(tmp_path: Path, mirrors: dict[str, str]) -> None:
    with pytest.raises(PenstockError) as raised:
        read(tmp_path, lambda spec: spec.update(mirrors=mirrors))
    assert [fault.path.startswith("spec.mirrors") for fault in raised.value.errors] == [True]
