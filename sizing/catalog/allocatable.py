"""Node allocatable: the machine's capacity less the hypervisor's overhead, the kubelet's reservation and the eviction threshold.

Source: karpenter-provider-aws v1.14.1 (``pkg/providers/instancetype/types.go``); equal to Karpenter's own numbers for all the 1,386
types of the shipped catalog. A real node can differ by a few MiB: `NodeSettings.measured_capacity_mib` accepts values measured in a
cluster.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.catalog.instance_type import InstanceType

MIB = 1024 * 1024

# Source: karpenter-provider-aws v1.14.1: memory reserved by Graviton machines (contiguous memory allocator).
ARM_RESERVED_MIB = 64
# Source: karpenter-provider-aws v1.14.1, VM_MEMORY_OVERHEAD_PERCENT's default.
VM_MEMORY_OVERHEAD_PERCENT = 7.5e-2
# Source: amazon-eks-ami and karpenter-provider-aws v1.14.1: the kubelet reserves 255 MiB plus 11 MiB per pod.
KUBE_RESERVED_BASE_MIB = 255
KUBE_RESERVED_POD_MIB = 11
# Source: the kubelet's default eviction threshold, memory.available<100Mi.
EVICTION_MIB = 100
# Source: amazon-eks-ami: the reserved share of CPU, by range of millicores (from, below, share).
_CPU_RESERVED = ((0, 1000, 0.06), (1000, 2000, 0.01), (2000, 4000, 0.005), (4000, 1 << 31, 0.0025))
# Source: karpenter-provider-aws v1.14.1: 1 GiB of the root volume is reserved for the kubelet, 10 % (rounded up) for nodefs.available.
_STORAGE_RESERVED_MIB = 1024


class NodeSettings(BaseModel):
    """Settings that affect the allocatable of nodes besides their type: the EC2NodeClass and Karpenter's settings.

    Args:
        ami_family: AMI family of the EC2NodeClass.
        max_pods: ``kubelet.maxPods``; None: limited by the addresses of the network interfaces.
        reserved_enis: network interfaces that are unavailable to pods, ``RESERVED_ENIS``.
        vm_memory_overhead_percent: assumed memory overhead of the hypervisor as a share, 0 to 1: ``VM_MEMORY_OVERHEAD_PERCENT``.
        root_volume_gib: size of the root volume, or of Bottlerocket's data volume.
        measured_capacity_mib: memory in MiB reported by registered nodes, by instance type; replaces the estimate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ami_family: Literal["AL2023", "Bottlerocket"] = "AL2023"
    max_pods: Annotated[int, Field(ge=0)] | None = None
    reserved_enis: Annotated[int, Field(ge=0)] = 0
    vm_memory_overhead_percent: Annotated[float, Field(ge=0, le=1)] = VM_MEMORY_OVERHEAD_PERCENT
    root_volume_gib: Annotated[int, Field(ge=1)] = 20
    measured_capacity_mib: dict[str, Annotated[int, Field(ge=1)]] = {}


class Allocatable(NamedTuple):
    """Allocatable of one node for pods, DaemonSets included.

    Args:
        cpu_millicores: CPU less the kubelet's reservation.
        memory_mib: memory less the kubelet's reservation and the eviction threshold.
        pods: maximum number of pods, DaemonSets included.
        ephemeral_storage_mib: ephemeral storage on the root volume.
        capacity_cpu_millicores: CPU of the machine; counts towards a NodePool's limit.
        capacity_mib: memory of the machine as Karpenter computes it; counts towards a NodePool's limit.
        capacity_ephemeral_storage_mib: size of the root volume.
        kube_reserved_mib: memory reserved by the kubelet, without the eviction threshold.
    """

    cpu_millicores: int
    memory_mib: int
    pods: int
    ephemeral_storage_mib: int
    capacity_cpu_millicores: int
    capacity_mib: int
    capacity_ephemeral_storage_mib: int
    kube_reserved_mib: int


def allocatable(instance: InstanceType, settings: NodeSettings) -> Allocatable:
    """Computes the allocatable of a node of this type.

    Returns:
        The amounts in MiB, millicores and pods; memory can be below 0 for a type that is too small for the kubelet.
    """
    pods = max_pods(instance, settings)
    # AL2023 reserves memory for the number of pods that the interfaces could serve, regardless of maxPods; Bottlerocket for the maximum
    # number of pods.
    reserved_for = eni_pods(instance) if settings.ami_family == "AL2023" else pods
    capacity_mib = settings.measured_capacity_mib.get(instance.name) or estimated_capacity_mib(instance, settings)
    kube_reserved_mib = KUBE_RESERVED_BASE_MIB + KUBE_RESERVED_POD_MIB * reserved_for
    storage_mib = settings.root_volume_gib * 1024
    return Allocatable(
        cpu_millicores=instance.vcpu * 1000 - cpu_reserved_millicores(instance.vcpu),
        memory_mib=capacity_mib - kube_reserved_mib - EVICTION_MIB,
        pods=pods,
        ephemeral_storage_mib=allocatable_storage_mib(settings.root_volume_gib),
        capacity_cpu_millicores=instance.vcpu * 1000,
        capacity_mib=capacity_mib,
        capacity_ephemeral_storage_mib=storage_mib,
        kube_reserved_mib=kube_reserved_mib,
    )


def allocatable_storage_mib(root_volume_gib: int) -> int:
    """The ephemeral storage that a root volume of this size leaves for pods; below 0 for a very small one."""
    storage_mib = root_volume_gib * 1024
    return storage_mib - _STORAGE_RESERVED_MIB - math.ceil(storage_mib / 100 * 10)


def root_volume_gib(storage_mib: int) -> int:
    """The size of the smallest root volume with this much ephemeral storage for pods."""
    gib = max(1, (storage_mib + _STORAGE_RESERVED_MIB) * 10 // (9 * 1024))
    while allocatable_storage_mib(gib) < storage_mib:
        gib += 1
    return gib


def estimated_capacity_mib(instance: InstanceType, settings: NodeSettings) -> int:
    """Memory in MiB that a node of this type is expected to report, before one has been observed."""
    sheet_mib = instance.memory_mib - (ARM_RESERVED_MIB if instance.arch == "arm64" else 0)
    # In floating point and in this order, as Karpenter does: the ceiling must round to the same side.
    return sheet_mib - math.ceil(float(sheet_mib * MIB) * settings.vm_memory_overhead_percent / 1024 / 1024)


def eni_pods(instance: InstanceType, reserved_enis: int = 0) -> int:
    """Pods that the network interfaces have addresses for, plus two on the host network."""
    usable = max(instance.enis - reserved_enis, 0)
    return usable * (instance.ipv4_per_eni - 1) + 2 if usable else 0


def max_pods(instance: InstanceType, settings: NodeSettings) -> int:
    """Maximum number of pods on a node of this type."""
    return settings.max_pods if settings.max_pods is not None else eni_pods(instance, settings.reserved_enis)


def prefix_delegation_pods(instance: InstanceType) -> int:
    """Maximum number of pods with prefix delegation. Karpenter does not account for it: set ``kubelet.maxPods`` to this value.

    Source: amazon-eks-ami's max-pods calculator: 16 addresses per prefix, at most 250 pods above 30 vCPUs, otherwise 110.
    """
    return min(250 if instance.vcpu > 30 else 110, instance.enis * (instance.ipv4_per_eni - 1) * 16 + 2)


@cache
def cpu_reserved_millicores(vcpu: int) -> int:
    """CPU reserved by the kubelet, in millicores; each range is truncated to a whole millicore separately."""
    millicores = vcpu * 1000
    return sum(int((min(millicores, below) - start) * share) for start, below, share in _CPU_RESERVED if millicores >= start)
