"""Karpenter's labels of instance types."""

from __future__ import annotations

import pytest

from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.catalog.instance_type import InstanceType
from penstock.sizing.catalog.labels import AWS, WELL_KNOWN, ZONE, extras, is_exotic, is_restricted, labels

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def of(name: str) -> InstanceType:
    instance_type = shipped().get(name)
    assert instance_type is not None
    return instance_type


def test_a_plain_type_has_the_labels_of_its_data_sheet() -> None:
    result = labels(of("m7g.xlarge"), "us-east-1", ZONES)
    expected = {
        "node.kubernetes.io/instance-type": "m7g.xlarge",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "us-east-1",
        f"{AWS}instance-category": "m",
        f"{AWS}instance-generation": "7",
        f"{AWS}instance-family": "m7g",
        f"{AWS}instance-size": "xlarge",
        f"{AWS}instance-cpu": "4",
        f"{AWS}instance-memory": "16384",
        f"{AWS}instance-hypervisor": "nitro",
        f"{AWS}instance-cpu-manufacturer": "aws",
        f"{AWS}instance-ebs-bandwidth": "10000",
        f"{AWS}instance-network-bandwidth": "1876",
    }
    assert {label: result[label] for label in expected} == {label: (value,) for label, value in expected.items()}


@pytest.mark.parametrize("name", ["instance-gpu-count", "instance-local-nvme", "instance-accelerator-name"])
def test_a_label_that_a_type_lacks_is_not_there_at_all(name: str) -> None:
    assert AWS + name not in labels(of("m7g.xlarge"), "us-east-1", ZONES)


def test_zones_are_those_of_the_type_that_the_nodes_have_subnets_in() -> None:
    assert labels(of("m7g.xlarge"), "us-east-1", ("us-east-1a", "us-east-1z"))[ZONE] == ("us-east-1a",)


def test_bare_metal_has_an_empty_hypervisor() -> None:
    assert labels(of("m7g.metal"), "us-east-1", ZONES)[f"{AWS}instance-hypervisor"] == ("",)


@pytest.mark.parametrize(
    ("name", "manufacturer"),
    [("m7i.large", "intel"), ("m7a.large", "amd"), ("m7g.large", "aws"), ("g5.xlarge", "amd"), ("m5ad.large", "amd")],
)
def test_the_maker_of_the_processor_is_known_by_name(name: str, manufacturer: str) -> None:
    assert extras(of(name)).cpu_manufacturer == manufacturer


@pytest.mark.parametrize(
    ("name", "exotic"),
    [
        ("m7g.xlarge", False),
        ("m7g.metal", True),
        ("c7i.metal-24xl", True),
        ("g5.xlarge", True),
        ("inf2.xlarge", True),
        ("trn1.2xlarge", True),
        # Karpenter counts neither Qualcomm's accelerators nor fractional GPUs.
        ("dl2q.24xlarge", False),
        ("g6f.large", False),
    ],
)
def test_metal_gpus_and_neuron_devices_are_exotic(name: str, exotic: bool) -> None:
    assert is_exotic(of(name)) is exotic


def test_a_type_that_came_out_later_has_what_its_data_sheet_tells() -> None:
    later = InstanceType.model_validate({**of("m7a.large").model_dump(), "name": "m99a.large", "gpus": 2})
    assert extras(later).cpu_manufacturer == "amd"
    assert is_exotic(later)
    assert labels(later, "us-east-1", ZONES)[f"{AWS}instance-generation"] == ("99",)


@pytest.mark.parametrize(
    ("label", "restricted"),
    [
        ("karpenter.sh/nodepool", False),
        ("karpenter.sh/whatever", True),
        ("a.karpenter.sh/whatever", True),
        ("karpenter.k8s.aws/instance-cpu", False),
        ("karpenter.k8s.aws/instance-cpus", True),
        ("kubernetes.io/hostname", True),
        ("team", False),
        ("example.com/karpenter.sh", False),
    ],
)
def test_only_well_known_labels_may_be_used_of_karpenters_domains(label: str, restricted: bool) -> None:
    assert is_restricted(label) is restricted


def test_all_the_labels_of_all_the_types_are_well_known() -> None:
    assert {label for instance in shipped().types for label in labels(instance, "us-east-1", ZONES)} <= WELL_KNOWN
