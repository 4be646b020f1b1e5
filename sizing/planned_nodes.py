"""The models of the plan's nodes; computed by `penstock.sizing.plan.nodes`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS

# Empty if nothing can be launched.
CapacityType = Literal["spot", "on-demand", "reserved", ""]


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PodsOnNode(_Planned):
    """Pods of one group on one node.

    Args:
        group: ``driver`` or ``executor``; with several jobs ``<job>/driver`` or ``<job>/executor``.
        count: number of these pods on the node.
        cpu_millicores: CPU request of one pod.
        memory_mib: memory request of one pod.
    """

    group: str
    count: int
    cpu_millicores: int
    memory_mib: int


class NodeExample(_Planned):
    """One node as the cheapest eligible type, with its used and free resources.

    Args:
        instance_type: the cheapest type for the node's capacity type; on ties the first by name.
        vcpu: vCPUs of the type.
        memory_mib: memory in the type's data sheet.
        allocatable_cpu_millicores: allocatable CPU for pods and DaemonSets.
        allocatable_memory_mib: allocatable memory for pods and DaemonSets.
        daemon_sets_cpu_millicores: CPU requests of the DaemonSets.
        daemon_sets_memory_mib: memory requests of the DaemonSets.
        on_demand_usd_per_h: None: the catalog has no price.
    """

    instance_type: str
    vcpu: int
    memory_mib: int
    allocatable_cpu_millicores: int
    allocatable_memory_mib: int
    daemon_sets_cpu_millicores: int
    daemon_sets_memory_mib: int
    on_demand_usd_per_h: float | None


class NodeGroup(_Planned):
    """Identical nodes: of one pool, with the same pods and the same eligible types.

    Args:
        count: number of these nodes.
        node_pool: their NodePool.
        pods: pods on each of them.
        capacity_type: capacity type of the launch.
        allocation_strategy: allocation strategy of the request to EC2.
        may_become: number of instance types in the node claim.
        launch_types: the types sent to EC2, at most 60, sorted.
        example: a node of the cheapest of these types; None if nothing can be launched.
        error: why nothing can be launched; usually empty.
        at_s: time of the last of their claims, in seconds after the job's start; None if all pods arrive at once.
    """

    count: int
    node_pool: str
    pods: tuple[PodsOnNode, ...]
    capacity_type: CapacityType
    allocation_strategy: str
    may_become: int
    launch_types: tuple[str, ...]
    example: NodeExample | None
    error: str = ""
    at_s: float | None = None


class PlacedPods(_Planned):
    """Karpenter's decision for pods in one order of arrival.

    Args:
        groups: the nodes, identical ones grouped.
        nodes: number of nodes.
        unschedulable: group of pods -> number of unschedulable pods.
        reasons: group of pods -> why they are unschedulable.
    """

    groups: tuple[NodeGroup, ...]
    nodes: int
    unschedulable: dict[str, int] = {}
    reasons: dict[str, str] = {}


class RootVolumePlan(_Planned):
    """The performance of the nodes' gp3 root volumes, the same for all nodes.

    Args:
        needed_iops: I/O operations per second of the executors on the node that needs the most.
        needed_mibps: their throughput in MiB/s.
        iops: provisioned IOPS.
        mibps: provisioned throughput in MiB/s.
    """

    needed_iops: int = 0
    needed_mibps: float = 0.0
    iops: int = GP3_FREE_IOPS
    mibps: int = GP3_FREE_MIBPS


class NodesPlan(_Planned):
    """The nodes of the plan, in both orders of arrival.

    Args:
        environment: its name.
        region: AWS region.
        catalog_date: date of the instance types and their prices.
        one_batch: all pods at once, as after a drain or a complete restart: the fewest nodes.
        staged: the driver first, then executors as Spark requests them: a first start.
        root_volume: performance of their root volumes.
    """

    environment: str
    region: str
    catalog_date: str
    one_batch: PlacedPods
    staged: PlacedPods
    root_volume: RootVolumePlan = RootVolumePlan()
