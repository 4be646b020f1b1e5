"""Allocatable of nodes.

``allocatable.csv.gz`` contains results of the real Karpenter code (karpenter-provider-aws v1.14.1, recorded 2026-11-21) for all types.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.catalog.allocatable import NodeSettings, allocatable, cpu_reserved_millicores, eni_pods, prefix_delegation_pods
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.catalog.instance_type import InstanceType

RECORDED = Path(__file__).with_name("allocatable.csv.gz")


def of(name: str) -> InstanceType:
    instance_type = shipped().get(name)
    assert instance_type is not None
    return instance_type


def test_all_types_are_equal_to_karpenters_own() -> None:
    rows = list(csv.DictReader(gzip.decompress(RECORDED.read_bytes()).decode().splitlines()))
    assert len(rows) == len(shipped().types) == 1386
    columns = [column for column in rows[0] if column != "type"]
    for row in rows:
        result = allocatable(of(row["type"]), NodeSettings())
        assert {column: getattr(result, column) for column in columns} == {column: int(row[column]) for column in columns}, row["type"]


# Source: karpenter-provider-aws, website/content/en/preview/reference/instance-types.md; those with max_pods follow from its code.
@pytest.mark.parametrize(
    ("name", "settings", "cpu_millicores", "memory_mib", "pods", "capacity_mib", "kube_reserved_mib"),
    [
        ("t3.medium", NodeSettings(), 1930, 3246, 17, 3788, 442),
        ("m5.large", NodeSettings(), 1930, 6903, 29, 7577, 574),
        ("m5.xlarge", NodeSettings(), 3920, 14162, 58, 15155, 893),
        ("r6i.2xlarge", NodeSettings(), 7910, 59627, 58, 60620, 893),
        ("c7g.4xlarge", NodeSettings(), 15890, 27322, 234, 30251, 2829),
        ("m7g.xlarge", NodeSettings(), 3920, 14103, 58, 15096, 893),
        ("r7g.2xlarge", NodeSettings(), 7910, 59568, 58, 60561, 893),
        ("m7i.4xlarge", NodeSettings(), 15890, 57691, 234, 60620, 2829),
        ("m7i.48xlarge", NodeSettings(), 191450, 718987, 737, 727449, 8362),
        ("c7g.4xlarge", NodeSettings(max_pods=110), 15890, 27322, 110, 30251, 2829),
        ("c7g.4xlarge", NodeSettings(max_pods=110, ami_family="Bottlerocket"), 15890, 28686, 110, 30251, 1465),
    ],
)
def test_the_worked_examples_hold(
    name: str, settings: NodeSettings, cpu_millicores: int, memory_mib: int, pods: int, capacity_mib: int, kube_reserved_mib: int
) -> None:
    result = allocatable(of(name), settings)
    assert (result.cpu_millicores, result.memory_mib, result.pods) == (cpu_millicores, memory_mib, pods)
    assert (result.capacity_mib, result.kube_reserved_mib) == (capacity_mib, kube_reserved_mib)


def test_reserved_interfaces_take_pods_but_leave_the_reserve_on_al2023() -> None:
    plain, reserved = allocatable(of("m5.xlarge"), NodeSettings()), allocatable(of("m5.xlarge"), NodeSettings(reserved_enis=1))
    assert (plain.pods, reserved.pods) == (58, 44)
    assert reserved.kube_reserved_mib == plain.kube_reserved_mib


def test_reserved_interfaces_lower_the_reserve_on_bottlerocket() -> None:
    result = allocatable(of("m5.xlarge"), NodeSettings(reserved_enis=1, ami_family="Bottlerocket"))
    assert result.kube_reserved_mib == 255 + 11 * 44


def test_with_all_interfaces_reserved_no_pod_fits() -> None:
    assert eni_pods(of("m5.xlarge"), 4) == eni_pods(of("m5.xlarge"), 9) == 0


def test_a_measured_capacity_stands_for_the_estimate() -> None:
    result = allocatable(of("m5.xlarge"), NodeSettings(measured_capacity_mib={"m5.xlarge": 15_500}))
    assert (result.capacity_mib, result.memory_mib) == (15_500, 15_500 - 893 - 100)


def test_without_overhead_the_capacity_is_that_of_the_data_sheet() -> None:
    settings = NodeSettings(vm_memory_overhead_percent=0.0)
    assert allocatable(of("m5.xlarge"), settings).capacity_mib == 16384
    assert allocatable(of("m7g.xlarge"), settings).capacity_mib == 16384 - 64


def test_a_larger_root_volume_gives_more_ephemeral_storage() -> None:
    assert allocatable(of("m5.xlarge"), NodeSettings()).ephemeral_storage_mib == 17 * 1024
    assert allocatable(of("m5.xlarge"), NodeSettings(root_volume_gib=100)).ephemeral_storage_mib == 89 * 1024


def test_prefix_delegation_is_capped_by_the_vcpus() -> None:
    assert prefix_delegation_pods(of("m5.xlarge")) == 110
    assert prefix_delegation_pods(of("m7i.48xlarge")) == 250
    assert prefix_delegation_pods(of("t3.micro")) == 2 * 1 * 16 + 2


@given(st.integers(1, 2000))
def test_the_cpu_reserve_grows_with_the_vcpus_and_stays_a_small_share(vcpu: int) -> None:
    reserved = cpu_reserved_millicores(vcpu)
    assert cpu_reserved_millicores(vcpu + 1) >= reserved
    assert 0 < reserved <= vcpu * 60


@given(st.sampled_from(shipped().types), st.integers(0, 500), st.sampled_from(["AL2023", "Bottlerocket"]))
def test_more_pods_never_leave_more_memory(instance: InstanceType, max_pods: int, family: str) -> None:
    fewer, more = (
        allocatable(instance, NodeSettings.model_validate({"ami_family": family, "max_pods": pods})) for pods in (max_pods, max_pods + 1)
    )
    assert more.memory_mib <= fewer.memory_mib < fewer.capacity_mib
