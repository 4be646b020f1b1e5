"""Converts a result of EC2's DescribeInstanceTypes to the `InstanceType` of the sizing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sizing.catalog.instance_type import InstanceType

# EC2's architectures and Kubernetes's; others (macOS, 32 bits) cannot be nodes.
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}


def instance_type(answer: Mapping[str, Any], zones: Sequence[str], on_demand_usd_per_h: float | None) -> InstanceType | None:
    """Converts one instance type.

    Args:
        answer: an element of ``InstanceTypes``, as boto3 returns it.
        zones: where the type is offered.
        on_demand_usd_per_h: None: unknown.

    Returns:
        None for a machine that cannot be a Linux node: macOS, or 32 bits.
    """
    arch = _architecture(answer)
    if arch is None:
        return None
    card = _default_card(answer["NetworkInfo"])
    return InstanceType.model_validate(
        {
            "name": answer["InstanceType"],
            "vcpu": answer["VCpuInfo"]["DefaultVCpus"],
            "memory_mib": answer["MemoryInfo"]["SizeInMiB"],
            "arch": arch,
            "hypervisor": answer.get("Hypervisor", ""),
            "bare_metal": answer["BareMetal"],
            "burstable": answer["BurstablePerformanceSupported"],
            "current_generation": answer["CurrentGeneration"],
            "gpus": _count(answer, "GpuInfo", "Gpus"),
            "accelerators": _accelerators(answer),
            "local_nvme_gib": _local_nvme_gib(answer),
            "enis": card.get("MaximumNetworkInterfaces", 0),
            "ipv4_per_eni": answer["NetworkInfo"].get("Ipv4AddressesPerInterface", 0),
            "network_baseline_gbps": card.get("BaselineBandwidthInGbps", 0.0),
            "network_peak_gbps": card.get("PeakBandwidthInGbps", 0.0),
            "ebs_baseline_mbps": answer.get("EbsInfo", {}).get("EbsOptimizedInfo", {}).get("BaselineBandwidthInMbps"),
            "spot": "spot" in answer.get("SupportedUsageClasses", ()),
            "on_demand_usd_per_h": on_demand_usd_per_h,
            "zones": tuple(sorted(zones)),
        }
    )


def _architecture(answer: Mapping[str, Any]) -> str | None:
    supported = answer["ProcessorInfo"]["SupportedArchitectures"]
    return next((_ARCHITECTURES[name] for name in supported if name in _ARCHITECTURES), None)


def _default_card(network: Mapping[str, Any]) -> Mapping[str, Any]:
    """The card that pods get their addresses from; what the others add is not for them."""
    default = network.get("DefaultNetworkCardIndex", 0)
    cards: Sequence[Mapping[str, Any]] = network.get("NetworkCards", ())
    return next((card for card in cards if card["NetworkCardIndex"] == default), network)


def _count(answer: Mapping[str, Any], info: str, devices: str) -> int:
    return sum(device.get("Count", 0) for device in answer.get(info, {}).get(devices, ()))


def _accelerators(answer: Mapping[str, Any]) -> int:
    """Trainium and Inferentia are reported as Neuron devices, and the older ones a second time as inference accelerators."""
    neuron = _count(answer, "NeuronInfo", "NeuronDevices")
    return neuron or _count(answer, "InferenceAcceleratorInfo", "Accelerators")


def _local_nvme_gib(answer: Mapping[str, Any]) -> int:
    storage = answer.get("InstanceStorageInfo", {})
    return 0 if storage.get("NvmeSupport", "unsupported") == "unsupported" else int(storage.get("TotalSizeInGB", 0))
