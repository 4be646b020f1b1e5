"""Existing and launching nodes, as the scheduler sees them.

Source: karpenter v1.14.1 (``pkg/controllers/state/statenode.go``, ``existingnode.go``) and karpenter-provider-aws v1.14.1
(``instanceToNodeClaim``): a node has the labels of its NodePool and the single-valued labels of its type; the requests of all its
DaemonSets are subtracted from its allocatable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.sizing.catalog.labels import CAPACITY_TYPE, NODE_CLASS, NODE_POOL, TENANCY, WELL_KNOWN, ZONE
from penstock.sizing.catalog.labels import labels as labels_of_type
from penstock.sizing.placement.errors import UnknownName
from penstock.sizing.placement.hosts import Node
from penstock.sizing.placement.market import Market, capacity_of, held_by
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet
from penstock.sizing.placement.pods import Group, requests
from penstock.sizing.placement.pools import READY_LABELS, tolerates_as_daemon
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.requirements import Requirements, one_of, requirements
from penstock.sizing.placement.resources import NODES
from penstock.sizing.placement.scenario import Scenario
from penstock.sizing.placement.wishes import required_terms, strict_requirements


def existing_nodes(scenario: Scenario, market: Market, groups: Sequence[Group]) -> list[Node]:
    """The initial nodes of a scenario.

    Raises:
        UnknownName: SIZ-024, for an instance type that is not in the catalog.
    """
    by_group = {group.name: group for group in groups}
    nodes = []
    for index, node in enumerate(scenario.existing_nodes):
        if node.instance_type not in market.index:
            path = f"existingNodes[{index}].instanceType"
            raise UnknownName(path=path, given=node.instance_type, need="an instance type of the catalog", fix="check the name")
        pool = next(pool for pool in scenario.node_pools if pool.name == node.node_pool)
        bought = (node.instance_type, node.zone, node.capacity_type)
        labels = {**_only_values(pool), **node.labels}
        made = node_of(node.name, pool, scenario.daemon_sets, market, bought, initialized=True, labels=labels)
        for name, count in node.pods.items():
            occupy(made, by_group[name], count)
        nodes.append(made)
    return nodes


def node_of(
    name: str,
    pool: NodePool,
    daemon_sets: Sequence[DaemonSet],
    market: Market,
    bought: tuple[str, str, str],
    *,
    initialized: bool,
    narrowed: Requirements | None = None,
    labels: Mapping[str, str] | None = None,
) -> Node:
    """A node of a NodePool.

    Args:
        name: name of the node.
        pool: its NodePool.
        daemon_sets: DaemonSets, which run on every node that they fit.
        market: the instance types.
        bought: instance type, zone and capacity type.
        initialized: whether it is ready.
        narrowed: requirements of its claim, which may have fixed the pool's own labels.
        labels: further labels of the node.
    """
    instance_type, zone, capacity_type = bought
    index = market.index[instance_type]
    all_labels = {
        **(labels or {}),
        **_own_labels(pool, narrowed),
        **{
            label: values[0]
            for label, values in labels_of_type(market.types[index], market.region, market.zones).items()
            if len(values) == 1
        },
        ZONE: zone,
        CAPACITY_TYPE: capacity_type,
        TENANCY: "default",
        NODE_POOL: pool.name,
        NODE_CLASS: pool.spec.template.spec.node_class_ref.name,
        **(READY_LABELS if initialized else {}),
    }
    has = requirements((label, one_of((value,))) for label, value in all_labels.items())
    taints = [taint.taint for taint in pool.spec.template.spec.taints]
    room = held_by(market, index)
    for wanted in _daemons(daemon_sets, taints_of=pool, has=has):
        for resource, amount in wanted.items():
            room[resource] = room.get(resource, 0) - amount
    return Node(name, pool.name, initialized, has, taints, room, {**capacity_of(market, index), NODES: NANO})


def occupy(node: Node, group: Group, count: int) -> None:
    """Adds pods that run on a node, and subtracts their requests."""
    node.running[group.name] += count
    for resource, amount in group.requests.items():
        node.room[resource] = node.room.get(resource, 0) - amount * count


def _own_labels(pool: NodePool, narrowed: Requirements | None) -> Mapping[str, str]:
    """Labels from the NodePool; of several values of a custom label Karpenter picks any, here the first."""
    settled = narrowed.by_label if narrowed else {}
    free = {
        label: min(values.values)
        for label, values in settled.items()
        if label not in WELL_KNOWN and label not in READY_LABELS and not values.complement and values.values
    }
    return {**free, **pool.spec.template.metadata.labels}


def _only_values(pool: NodePool) -> dict[str, str]:
    """The labels that a NodePool requires with one value: Karpenter puts them on each of its nodes."""
    asked = pool.spec.template.spec.requirements
    return {each.key: each.values[0] for each in asked if each.operator == "In" and len(each.values) == 1 and each.key not in WELL_KNOWN}


def _daemons(daemon_sets: Sequence[DaemonSet], taints_of: NodePool, has: Requirements) -> Iterator[Mapping[str, int]]:
    taints = [taint.taint for taint in taints_of.spec.template.spec.taints]
    # A launching node gets these labels together with its DaemonSet pods.
    ready = has.plus(requirements((label, one_of((value,))) for label, value in READY_LABELS.items()))
    for daemon_set in daemon_sets:
        spec = daemon_set.spec.template.spec
        wanted = (strict_requirements(spec, term) for term in required_terms(spec) or (None,))
        if tolerates_as_daemon(spec, taints) and any(ready.conflict(each, undefined_well_known=False) is None for each in wanted):
            yield {**requests(spec), "pods": NANO}
