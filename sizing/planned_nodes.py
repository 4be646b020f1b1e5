"""The shapes of the plan's nodes; `penstock.sizing.plan.nodes` fills them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

# Empty where nothing can be launched.
CapacityType = Literal["spot", "on-demand", "reserved", ""]


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PodsOnNode(_Planned):
    """Pods of one group on one node.

    Args:
        group: ``driver`` or ``executor``; with several jobs ``<job>/driver`` or ``<job>/executor``.
        count: on that node.
        cpu_millicores: requested by one of them.
        memory_mib: requested by one of them.
    """

    group: str
    count: int
    cpu_millicores: int
    memory_mib: int


class NodeExample(_Planned):
    """One node as it would be as the cheapest of the types that may come, to see what is used and what is free.

    Args:
        instance_type: the cheapest at the prices that the node is bought at; of equal ones the first by name.
        vcpu: of the type.
        memory_mib: of the type's data sheet.
        allocatable_cpu_millicores: what pods and DaemonSets may ask for.
        allocatable_memory_mib: likewise.
        daemon_sets_cpu_millicores: what the DaemonSets ask for.
        daemon_sets_memory_mib: likewise.
        on_demand_usd_per_h: None: the catalog knows no price.
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
    """Nodes that are alike: of one pool, with the same pods and the same types that they may become.

    Args:
        count: of such nodes.
        node_pool: that they come from.
        pods: on each of them.
        capacity_type: as Karpenter would launch them.
        allocation_strategy: of the request to EC2.
        may_become: number of types that the node claim leaves open.
        launch_types: the types that are sent to EC2, at most 60, sorted.
        example: the cheapest of these; None where nothing can be launched.
        error: why nothing can be launched; empty as a rule.
        at_s: when the last of their claims is made, in seconds after the job's start; None where all the pods come at once.
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
    """What Karpenter makes of pods that come in one order.

    Args:
        groups: the nodes, those that are alike together.
        nodes: how many there are.
        unschedulable: group of pods -> how many find no node.
        reasons: group of pods -> why.
    """

    groups: tuple[NodeGroup, ...]
    nodes: int
    unschedulable: dict[str, int] = {}
    reasons: dict[str, str] = {}


class NodesPlan(_Planned):
    """The nodes of the plan, in the two orders in which the pods may come.

    Args:
        environment: its name.
        region: AWS region.
        catalog_date: date of the instance types and their prices.
        one_batch: all the pods at once, as after a drain or a restart of everything: the fewest nodes.
        staged: the driver first, then executors as Spark asks for them: a first start.
    """

    environment: str
    region: str
    catalog_date: str
    one_batch: PlacedPods
    staged: PlacedPods
