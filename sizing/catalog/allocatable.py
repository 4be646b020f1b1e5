"""What Kubernetes can allocate of a node: the machine less what the hypervisor, the kubelet and the eviction threshold keep back.

Source: karpenter-provider-aws v1.14.1 (``pkg/providers/instancetype/types.go``); equal to Karpenter's own numbers for all the 1,386 types
of the shipped catalog. A real node can differ by a few MiB: `NodeSettings.measured_capacity_mib` takes what a cluster has shown.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.catalog.instance_type import InstanceType

MIB = 1024 * 1024

# Source: karpenter-provider-aws v1.14.1: memory that Graviton machines keep for themselves (contiguous memory allocator).
ARM_RESERVED_MIB = 64
# Source: karpenter-provider-aws v1.14.1, VM_MEMORY_OVERHEAD_PERCENT's default.
VM_MEMORY_OVERHEAD_PERCENT = 7.5e-2
# Source: amazon-eks-ami and karpenter-provider-aws v1.14.1: the kubelet's reserve is 255 MiB and 11 MiB a pod.
KUBE_RESERVED_BASE_MIB = 255
KUBE_RESERVED_POD_MIB = 11
# Source: the kubelet's default eviction threshold, memory.available<100Mi.
EVICTION_MIB = 100
# Source: amazon-eks-ami: the share of CPU kept back, by range of millicores (from, below, share).
_CPU_RESERVED = ((0, 1000, 0.06), (1000, 2000, 0.01), (2000, 4000, 0.005), (4000, 1 << 31, 0.0025))
# Source: karpenter-provider-aws v1.14.1: 1 GiB of the root volume is kept for the kubelet, 10 % (rounded up) for nodefs.available.
_STORAGE_RESERVED_MIB = 1024


class NodeSettings(BaseModel):
    """What bears on the allocatable of nodes apart from their type: the EC2NodeClass and Karpenter's settings.

    Args:
        ami_family: of the EC2NodeClass.
        max_pods: ``kubelet.maxPods``; None: as many as the network interfaces have addresses for.
        reserved_enis: interfaces that pods don't get, ``RESERVED_ENIS``.
        vm_memory_overhead_percent: share of the memory that the hypervisor is taken to keep, 0 to 1: ``VM_MEMORY_OVERHEAD_PERCENT``.
        root_volume_gib: size of the root volume, or of Bottlerocket's data volume.
        measured_capacity_mib: memory in MiB that registered nodes of a type have shown, by type: it stands for the estimate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ami_family: Literal["AL2023", "Bottlerocket"] = "AL2023"
    max_pods: Annotated[int, Field(ge=0)] | None = None
    reserved_enis: Annotated[int, Field(ge=0)] = 0
    vm_memory_overhead_percent: Annotated[float, Field(ge=0, le=1)] = VM_MEMORY_OVERHEAD_PERCENT
    root_volume_gib: Annotated[int, Field(ge=1)] = 20
    measured_capacity_mib: dict[str, Annotated[int, Field(ge=1)]] = {}


class Allocatable(NamedTuple):
    """What pods, DaemonSets included, can have of one node.

    Args:
        cpu_millicores: after the kubelet's reserve.
        memory_mib: after the kubelet's reserve and the eviction threshold.
        pods: how many, DaemonSets included.
        ephemeral_storage_mib: of the root volume.
        capacity_cpu_millicores: of the machine; what a NodePool's limit counts.
        capacity_mib: memory of the machine as Karpenter takes it; what a NodePool's limit counts.
        capacity_ephemeral_storage_mib: the root volume.
        kube_reserved_mib: memory that the kubelet keeps back, without the eviction threshold.
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
    """What pods can have of a node of this type.

    Returns:
        The amounts in MiB, millicores and pods; memory can be below 0 for a type too small for the kubelet.
    """
    pods = max_pods(instance, settings)
    # AL2023 reserves for as many pods as the interfaces could serve, whatever maxPods says; Bottlerocket for those that may come.
    reserved_for = eni_pods(instance) if settings.ami_family == "AL2023" else pods
    capacity_mib = settings.measured_capacity_mib.get(instance.name) or estimated_capacity_mib(instance, settings)
    kube_reserved_mib = KUBE_RESERVED_BASE_MIB + KUBE_RESERVED_POD_MIB * reserved_for
    storage_mib = settings.root_volume_gib * 1024
    return Allocatable(
        cpu_millicores=instance.vcpu * 1000 - cpu_reserved_millicores(instance.vcpu),
        memory_mib=capacity_mib - kube_reserved_mib - EVICTION_MIB,
        pods=pods,
        ephemeral_storage_mib=storage_mib - _STORAGE_RESERVED_MIB - math.ceil(storage_mib / 100 * 10),
        capacity_cpu_millicores=instance.vcpu * 1000,
        capacity_mib=capacity_mib,
        capacity_ephemeral_storage_mib=storage_mib,
        kube_reserved_mib=kube_reserved_mib,
    )


def estimated_capacity_mib(instance: InstanceType, settings: NodeSettings) -> int:
    """The memory that a node of this type is taken to show, in MiB, before one has been seen."""
    sheet_mib = instance.memory_mib - (ARM_RESERVED_MIB if instance.arch == "arm64" else 0)
    # In floating point and in this order, as Karpenter does: the ceiling must fall on the same side.
    return sheet_mib - math.ceil(float(sheet_mib * MIB) * settings.vm_memory_overhead_percent / 1024 / 1024)


def eni_pods(instance: InstanceType, reserved_enis: int = 0) -> int:
    """The pods that the network interfaces have addresses for, and two on the host's network."""
    usable = max(instance.enis - reserved_enis, 0)
    return usable * (instance.ipv4_per_eni - 1) + 2 if usable else 0


def max_pods(instance: InstanceType, settings: NodeSettings) -> int:
    """The pods that a node of this type takes."""
    return settings.max_pods if settings.max_pods is not None else eni_pods(instance, settings.reserved_enis)


def prefix_delegation_pods(instance: InstanceType) -> int:
    """The pods with prefix delegation: Karpenter knows nothing of it, so this is what to set ``kubelet.maxPods`` to.

    Source: amazon-eks-ami's max-pods calculator: 16 addresses a prefix, at most 250 pods above 30 vCPUs, 110 else.
    """
    return min(250 if instance.vcpu > 30 else 110, instance.enis * (instance.ipv4_per_eni - 1) * 16 + 2)


@cache
def cpu_reserved_millicores(vcpu: int) -> int:
    """The CPU that the kubelet keeps back, in millicores; each range by itself is cut to a whole millicore."""
    millicores = vcpu * 1000
    return sum(int((min(millicores, below) - start) * share) for start, below, share in _CPU_RESERVED if millicores >= start)
