"""The cluster of an environment, as sizing models it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.cluster import cluster
from penstock.infra.environment_file import load
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.cluster import Cluster
from penstock.sizing.cost import prices as price_lists
from penstock.sizing.errors import PenstockError
from tests.infra.environments import BARE, Change, pool, read, written


def cluster_of(folder: Path, change: Change | None = None, catalog: Catalog | None = None) -> Cluster:
    made = cluster(read(folder, change), catalog)
    assert made is not None
    return made


def faults(folder: Path, change: Change) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        cluster(read(folder, change))
    return list(raised.value.errors)


def of_region(region: str) -> Catalog:
    return Catalog.model_construct(**{**dict(shipped()), "region": region})


def test_an_environment_without_a_cluster_has_none() -> None:
    assert cluster(load(BARE)) is None


def test_production_is_what_its_file_says() -> None:
    made = cluster(load("production"))
    assert made is not None
    assert (made.name, made.region, made.eks_version, made.nat_gateways) == ("production", "us-east-1", "1.35", 3)
    assert [one.name for one in made.node_pools] == ["drivers", "executors"]
    assert [one.metadata.name for one in made.daemon_sets] == [
        "aws-node",
        "kube-proxy",
        "ebs-csi-node",
        "eks-pod-identity-agent",
        "fluent-bit",
    ]
    assert (made.boot_s, made.spot_ratio, made.node_settings.root_volume_gib) == (60.0, 0.4, 50)
    assert made.driver.node_selector == {"penstock.dev/role": "driver"}
    assert made.kafka is not None
    assert (made.kafka.retention_h, made.kafka.replication, made.kafka.brokers) == (24.0, 3, None)
    assert made.prices is not None


def test_settings_of_the_nodes_come_with_their_units(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        nodes = {
            "maxPods": 50,
            "reservedEnis": 1,
            "vmMemoryOverheadPercent": 0.05,
            "measuredCapacity": {"m6i.large": "7800m"},
            "boot": "90s",
        }
        spec["nodes"].update(nodes)
        spec["quotas"] = {"onDemandVcpus": 64, "spotVcpus": 128, "mskBrokers": 12}

    made = cluster_of(tmp_path, change)
    node = made.node_settings
    assert (node.max_pods, node.reserved_enis, node.vm_memory_overhead_percent, node.measured_capacity_mib) == (
        50,
        1,
        0.05,
        {"m6i.large": 7800},
    )
    assert made.boot_s == 90.0
    assert (made.quotas.on_demand_vcpus, made.quotas.spot_vcpus, made.quotas.msk_brokers) == (64, 128, 12)


def test_an_environment_without_kafka_has_none(tmp_path: Path) -> None:
    assert cluster_of(tmp_path, lambda spec: spec.pop("kafka")).kafka is None


def test_all_that_karpenter_would_refuse_of_the_pools_comes_at_once(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        pool(spec, "drivers")["labels"] = {"karpenter.sh/nodepool": "mine"}
        pool(spec, "executors")["limits"] = {"cpu": "many"}
        pool(spec, "executors")["requirements"].append({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["x"]})

    raised = faults(tmp_path, change)
    assert {fault.code for fault in raised} == {"INF-004"}
    paths = [fault.path for fault in raised]
    assert paths[0].startswith("spec.nodes.pools[0] (drivers)")
    assert any("limits" in path for path in paths)
    assert any("requirements" in path for path in paths)


def _executor(**place: Any) -> Change:
    return lambda spec: spec["nodes"]["pods"]["executor"].update(place)


def _daemon(**request: Any) -> Change:
    return lambda spec: spec["nodes"]["daemonSets"].append({"name": "own", **request})


@pytest.mark.parametrize(
    "change",
    [
        _executor(nodeSelector={"disk": "a b"}),
        _executor(nodeSelector={"a/b/c": "x"}),
        _executor(nodeSelector={"disk": "x" * 64}),
        _executor(tolerations=[{"operator": "Equal", "value": "x"}]),
        _executor(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        _executor(tolerations=[{"key": "a b", "operator": "Exists"}]),
        _daemon(nodeSelector={"disk": "a b"}),
        _daemon(tolerations=[{}]),
        lambda spec: spec["nodes"].update(measuredCapacity={"m6i.large": "0"}),
        lambda spec: spec["nodes"].update(rootVolume="1m"),
    ],
)
def test_what_kubernetes_or_ec2_refuses_is_a_fault_with_its_line(tmp_path: Path, change: Change) -> None:
    (fault,) = faults(tmp_path, change)
    assert fault.code == "SPEC-006"
    assert fault.at is not None
    assert fault.at.line is not None
    assert fault.path.startswith("spec.nodes.")


def test_an_environment_s_text_is_read_back_as_it_was(tmp_path: Path) -> None:
    first = read(tmp_path, _executor(tolerations=[{"operator": "Exists"}]))
    again = tmp_path / "again.yaml"
    again.write_text(first.text())
    assert load(again) == first


def test_a_region_whose_catalog_is_not_shipped_says_how_to_get_it(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["region"] = "eu-west-1"
        spec["network"]["zones"] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]

    (fault,) = faults(tmp_path, change)
    assert fault.code == "SIZ-030"
    assert fault.fix.startswith("penstock catalog refresh --region eu-west-1 --out catalog.eu-west-1.json")
    prices = cluster_of(tmp_path, change, of_region("eu-west-1")).prices
    assert prices is not None
    assert (prices.region, prices.source) == ("eu-west-1", "no prices for eu-west-1")
    assert prices.eks_standard_usd_per_h is None


def test_the_environment_s_own_prices_are_read_relative_to_its_file(tmp_path: Path) -> None:
    own = price_lists.shipped().model_copy(update={"eks_standard_usd_per_h": 0.5})
    (tmp_path / "prices.json").write_text(own.model_dump_json(), "utf-8")
    prices = cluster_of(tmp_path, lambda spec: spec.update(prices="prices.json")).prices
    assert prices is not None
    assert prices.eks_standard_usd_per_h == 0.5


def test_prices_that_can_not_be_read_are_a_coded_error(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, lambda spec: spec.update(prices="missing.json"))
    assert (fault.code, fault.path) == ("INF-005", "spec.prices")


def test_a_catalog_of_another_region_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        cluster(read(tmp_path), of_region("eu-west-1"))
    assert (raised.value.code, raised.value.given, raised.value.fix) == (
        "SIZ-052",
        "eu-west-1",
        "penstock catalog refresh --region us-east-1",
    )


def test_the_environment_s_own_snapshot_is_read_relative_to_its_file(tmp_path: Path) -> None:
    snapshot = Catalog.model_construct(**{**dict(shipped()), "date": "2026-11-20"})
    (tmp_path / "prices.json").write_text(snapshot.model_dump_json(), "utf-8")
    assert cluster_of(tmp_path, lambda spec: spec.update(catalog="prices.json")).catalog.date == "2026-11-20"


@pytest.mark.parametrize(("content", "code"), [(None, "INF-005"), (b"\xff\xfe", "INF-005"), (b"{}", "SIZ-031"), (b"no", "SIZ-031")])
def test_a_snapshot_that_can_not_be_read_is_a_coded_error(tmp_path: Path, content: bytes | None, code: str) -> None:
    if content is not None:
        (tmp_path / "prices.json").write_bytes(content)
    (fault,) = faults(tmp_path, lambda spec: spec.update(catalog="prices.json"))
    assert fault.code == code


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    assert read(tmp_path) == load(written(tmp_path)) == load("production")
