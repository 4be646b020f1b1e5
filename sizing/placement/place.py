"""One batch: all pods of a scenario at once, as Karpenter decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.placement.batch import groups_of, keeps_min_values, market_of, node_claim
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.nodes import existing_nodes
from penstock.sizing.placement.pools import pools
from penstock.sizing.placement.reasons import reasons
from penstock.sizing.placement.scenario import Scenario
from penstock.sizing.placement.scheduler import Scheduler


def place(scenario: Scenario, catalog: Catalog, node_settings: NodeSettings, zones: Sequence[str] | None = None) -> Decision:
    """Places the pods of a scenario, all in one batch.

    Args:
        scenario: NodePools, DaemonSets, pods, and existing nodes; arrivals count as present from the start.
        catalog: instance types and prices.
        node_settings: settings that affect the allocatable of nodes.
        zones: zones with a subnet of the NodeClass; None: the region's a, b and c.

    Returns:
        The node claims and the unschedulable pods.

    Raises:
        NoSpotPrice: SIZ-025.
        UnknownName: SIZ-024, for the instance type of an existing node.
    """
    market = market_of(scenario, catalog, node_settings, zones)
    groups = groups_of(scenario)
    nodes = existing_nodes(scenario, market, groups)
    scheduler = Scheduler(market, pools(scenario.node_pools, scenario.daemon_sets, market), nodes, groups)
    unschedulable = Counter(scheduler.run(counts(scenario)))
    kept = [claim for claim in scheduler.claims if keeps_min_values(claim, market)]
    for claim in scheduler.claims:
        if claim not in kept:
            unschedulable += claim.pods
    claims = [node_claim(claim, market) for claim in kept]
    return Decision(
        node_claims=tuple(sorted(claims, key=lambda claim: (claim.node_pool, sorted(claim.pods.items()), claim.instance_types))),
        unschedulable=dict(sorted(unschedulable.items())),
        existing_nodes={node.name: dict(sorted(node.pods.items())) for node in nodes if node.pods} if nodes else None,
        reasons=tuple(reasons(scheduler, market, [group for group in groups if group.name in unschedulable])),
    )


def counts(scenario: Scenario) -> dict[str, int]:
    """Total number of pods of each group."""
    arriving = {group.name: sum(arrival.count for arrival in scenario.arrivals if arrival.group == group.name) for group in scenario.pods}
    return {group.name: arriving[group.name] or group.count for group in scenario.pods}
