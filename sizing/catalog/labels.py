"""The labels that Karpenter sets for an instance type, and the resources that only some types have.

Source: karpenter-provider-aws v1.14.1 (``pkg/providers/instancetype/types.go``, ``pkg/apis/v1/labels.go``). Values that the data sheet
of `InstanceType` lacks (CPU manufacturer, GPU names ...) are in ``data/instance-labels.csv``: EC2's DescribeInstanceTypes as shipped
with moto 5.2.5, and the network bandwidths of karpenter-provider-aws v1.14.1; both are the same in every region.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from penstock.sizing.catalog.instance_type import InstanceType

AWS = "karpenter.k8s.aws/"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
NODE_POOL = "karpenter.sh/nodepool"
NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass"
ZONE = "topology.kubernetes.io/zone"
ZONE_ID = "topology.k8s.aws/zone-id"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
SIZE = f"{AWS}instance-size"
TENANCY = f"{AWS}instance-tenancy"

SPOT = "spot"
ON_DEMAND = "on-demand"
RESERVED = "reserved"

# Labels of capacity reservations; no node of this catalog has them.
RESERVATION = (f"{AWS}capacity-reservation-id", f"{AWS}capacity-reservation-type", f"{AWS}capacity-reservation-interruptible")

_OF_A_TYPE = (
    "instance-category",
    "instance-capability-flex",
    "instance-family",
    "instance-generation",
    "instance-size",
    "instance-local-nvme",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-memory",
    "instance-ebs-bandwidth",
    "instance-network-bandwidth",
    "instance-gpu-name",
    "instance-gpu-manufacturer",
    "instance-gpu-count",
    "instance-gpu-memory",
    "instance-accelerator-name",
    "instance-accelerator-manufacturer",
    "instance-accelerator-count",
    "instance-hypervisor",
    "instance-encryption-in-transit-supported",
    "instance-tenancy",
    "placement-group-id",
    "placement-group-partition",
)

# Labels whose values Karpenter knows: a pod may require them even if no NodePool defines them.
WELL_KNOWN = frozenset(
    {
        NODE_POOL,
        ZONE,
        ZONE_ID,
        REGION,
        INSTANCE_TYPE,
        ARCH,
        OS,
        CAPACITY_TYPE,
        "node.kubernetes.io/windows-build",
        *RESERVATION,
        *(AWS + name for name in _OF_A_TYPE),
    }
)

# Deprecated names, which Karpenter maps to the current ones.
NORMALIZED = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

# Domains that allow only well-known labels.
RESTRICTED_DOMAINS = ("karpenter.sh", "karpenter.k8s.aws")

_DATA = Path(__file__).parent.parent / "data" / "instance-labels.csv"


class Extras(NamedTuple):
    """Labels and resources of a type that its data sheet lacks; texts are empty where the label does not exist.

    Args:
        cpu_manufacturer: ``intel``, ``amd``, ``aws``.
        cpu_mhz: sustained clock speed in MHz.
        encryption_in_transit: ``true`` or ``false``.
        ebs_peak_mbps: maximum EBS bandwidth in Mbit/s; only for types that are EBS-optimized by default.
        network_mbps: network bandwidth in Mbit/s.
        gpu_name: label value, as the five that follow.
        gpu_manufacturer: manufacturer.
        gpu_count: number of GPUs; 0 for types with a fractional GPU.
        gpu_memory_mib: memory of one GPU.
        accelerator_name: name of the accelerator, such as Inferentia or Trainium.
        accelerator_manufacturer: manufacturer.
        accelerator_count: number of accelerators.
        nvidia_gpus: the resource ``nvidia.com/gpu``.
        amd_gpus: the resource ``amd.com/gpu``.
        gaudis: the resource ``habana.ai/gaudi``.
        neurons: the resource ``aws.amazon.com/neuron``.
        neuron_cores: the resource ``aws.amazon.com/neuroncore``.
    """

    cpu_manufacturer: str
    cpu_mhz: str
    encryption_in_transit: str
    ebs_peak_mbps: str
    network_mbps: str
    gpu_name: str
    gpu_manufacturer: str
    gpu_count: str
    gpu_memory_mib: str
    accelerator_name: str
    accelerator_manufacturer: str
    accelerator_count: str
    nvidia_gpus: int
    amd_gpus: int
    gaudis: int
    neurons: int
    neuron_cores: int


def is_restricted(label: str) -> bool:
    """Whether Karpenter rejects a label in a NodePool, or ignores a pod that requires it."""
    if label in WELL_KNOWN:
        return False
    domain, slash, _ = label.partition("/")
    inside = bool(slash) and any(domain == restricted or domain.endswith(f".{restricted}") for restricted in RESTRICTED_DOMAINS)
    return inside or label == HOSTNAME


def extras(instance: InstanceType) -> Extras:
    """Labels and resources of a type; derived from the data sheet for a type that is newer than the shipped data."""
    return _extras().get(instance.name) or _guessed(instance)


def is_exotic(instance: InstanceType) -> bool:
    """Whether Karpenter launches this type only if no other type fits: bare metal, GPUs, Neuron devices, Gaudi.

    Source: karpenter-provider-aws v1.14.1, ``ExoticInstanceTypeFilter``.
    """
    known = extras(instance)
    return "metal" in instance.size or any((known.nvidia_gpus, known.amd_gpus, known.gaudis, known.neurons, known.neuron_cores))


def label_values(label: str, instance: InstanceType, region: str, zones: Sequence[str]) -> tuple[str, ...]:
    """Possible values of one label on nodes of this type; empty: the label does not exist on them."""
    if label == REGION:
        return (region,)
    if label == ZONE:
        return tuple(zone for zone in instance.zones if zone in zones)
    if label == CAPACITY_TYPE:
        return (ON_DEMAND, SPOT) if instance.spot else (ON_DEMAND,)
    if label == TENANCY:
        return ("default", "dedicated")
    read = _OF_THE_TYPE.get(label) or _OF_THE_EXTRAS.get(label)
    value = read(instance) if read else None
    return () if value is None else (str(value),)


def labels(instance: InstanceType, region: str, zones: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Possible values of each label on nodes of this type; a missing label does not exist on them.

    Args:
        instance: the type.
        region: its region.
        zones: zones with a subnet of the NodeClass.
    """
    known = (REGION, ZONE, CAPACITY_TYPE, TENANCY, *_OF_THE_TYPE, *_OF_THE_EXTRAS)
    by_label = {label: label_values(label, instance, region, zones) for label in known}
    return {label: values for label, values in by_label.items() if values or label == ZONE}


_OF_THE_TYPE: dict[str, Callable[[InstanceType], object]] = {
    INSTANCE_TYPE: lambda instance: instance.name,
    ARCH: lambda instance: instance.arch,
    OS: lambda instance: "linux",
    f"{AWS}instance-category": lambda instance: instance.category,
    f"{AWS}instance-generation": lambda instance: instance.generation,
    f"{AWS}instance-family": lambda instance: instance.family,
    SIZE: lambda instance: instance.size,
    f"{AWS}instance-capability-flex": lambda instance: "true" if "-flex" in instance.family else "false",
    f"{AWS}instance-cpu": lambda instance: instance.vcpu,
    f"{AWS}instance-memory": lambda instance: instance.memory_mib,
    f"{AWS}instance-hypervisor": lambda instance: instance.hypervisor,
    f"{AWS}instance-local-nvme": lambda instance: instance.local_nvme_gib or None,
}
_OF_THE_EXTRAS: dict[str, Callable[[InstanceType], object]] = {
    f"{AWS}instance-cpu-manufacturer": lambda instance: extras(instance).cpu_manufacturer,
    f"{AWS}instance-cpu-sustained-clock-speed-mhz": lambda instance: extras(instance).cpu_mhz,
    f"{AWS}instance-encryption-in-transit-supported": lambda instance: extras(instance).encryption_in_transit,
    f"{AWS}instance-ebs-bandwidth": lambda instance: extras(instance).ebs_peak_mbps or None,
    f"{AWS}instance-network-bandwidth": lambda instance: extras(instance).network_mbps or None,
    f"{AWS}instance-gpu-name": lambda instance: extras(instance).gpu_name or None,
    f"{AWS}instance-gpu-manufacturer": lambda instance: extras(instance).gpu_manufacturer or None,
    f"{AWS}instance-gpu-count": lambda instance: extras(instance).gpu_count or None,
    f"{AWS}instance-gpu-memory": lambda instance: extras(instance).gpu_memory_mib or None,
    f"{AWS}instance-accelerator-name": lambda instance: extras(instance).accelerator_name or None,
    f"{AWS}instance-accelerator-manufacturer": lambda instance: extras(instance).accelerator_manufacturer or None,
    f"{AWS}instance-accelerator-count": lambda instance: extras(instance).accelerator_count or None,
}


@cache
def _extras() -> dict[str, Extras]:
    lines = csv.reader(_DATA.read_text("utf-8").splitlines())
    next(lines)
    return {line[0]: Extras._make([*line[1:13], *map(int, line[13:])]) for line in lines}


def _guessed(instance: InstanceType) -> Extras:
    letters = instance.family[len(instance.category or "") :]
    maker = "aws" if instance.arch == "arm64" else "amd" if "a" in letters else "intel"
    bandwidth = str(int(instance.network_baseline_gbps * 1000))
    gpus, accelerators = (str(count) if count else "" for count in (instance.gpus, instance.accelerators))
    nothing_known = ("",) * 3
    return Extras(
        maker, "0", "true", "", bandwidth, "", "", gpus, *nothing_known, accelerators, instance.gpus, 0, 0, instance.accelerators, 0
    )
