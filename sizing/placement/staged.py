"""The realistic order: pods arrive over time, Karpenter decides batch by batch, and nodes that are on their way take further pods.

What holds at each batch (karpenter v1.14.1, ``provisioner.go``, ``batcher.go``, ``pkg/controllers/state``):

- A batch begins with the first pod that comes and ends when none has come for ``batchIdle_s``, or after ``batchMax_s``. A pod that comes
  in the very moment of the end belongs to the next batch.
- Every pod that does not run yet is placed anew, those too for which a node is on its way: a claim once sent to EC2 is a node like any
  other, of the type that EC2 chose, with that type's room. Nodes that are ready come before those that are not, then by name.
- Pods that found no place come up again after 10 s: a limit that counted the largest type of a claim counts the type that came.

What can't be foretold, and what is taken instead:

- EC2 chooses a launch's type: on-demand by the lowest price, which is known; spot by price and free capacity, which nobody outside of AWS
  knows. Here it is the cheapest of the launch in both cases, in the zone where it is cheapest; of several of one price the first by name.
- The names of nodes are random: here they follow the order of creation.
- Kubernetes binds waiting pods to a node that becomes ready in an order of its own: here they go where Karpenter meant them to go.
- A launch takes no time; a node is ready ``boot_s`` after its claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.placement.batch import groups_of, keeps_min_values, market_of, node_claim
from penstock.sizing.placement.decision import Decision, NodeClaim, Reason
from penstock.sizing.placement.market import Market
from penstock.sizing.placement.nodes import existing_nodes, node_of, occupy
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import pools
from penstock.sizing.placement.reasons import reasons
from penstock.sizing.placement.scenario import Scenario
from penstock.sizing.placement.scheduler import Claim, Node, Scheduler

# Source: karpenter v1.14.1 (pkg/controllers/provisioning/controller.go): a pod that waits triggers anew.
RETRY_S = 10.0


@dataclass
class Standing:
    """A node over time.

    Args:
        node: as it is without the pods of this run.
        ready_s: when it is ready.
        claim: what it came from; None for a node of the scenario.
        bound: pods of this run that run on it.
        meant: pods that wait for it to be ready.
    """

    node: Node
    ready_s: float
    claim: NodeClaim | None = None
    bound: Counter[str] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)


def place_staged(scenario: Scenario, catalog: Catalog, node_settings: NodeSettings, zones: Sequence[str] | None = None) -> Decision:
    """Which nodes Karpenter makes when the pods come one after another.

    Args:
        scenario: with `arrivals`; groups that don't arrive are there at 0 s. Without arrivals this is one batch.
        catalog: instance types and prices.
        node_settings: what bears on the allocatable of nodes.
        zones: that the NodeClass has subnets in; None: the region's a, b and c.

    Returns:
        The node claims with the second of their batch (`at_s`), the pods that they end up with, and what stays unschedulable.

    Raises:
        NoSpotPrice: SIZ-025.
        UnknownName: SIZ-024, for the instance type of an existing node.
    """
    market = market_of(scenario, catalog, node_settings, zones)
    return _Timeline(scenario, market).run()


def batches(scenario: Scenario) -> list[tuple[float, dict[str, int]]]:
    """When each batch ends, and the pods that came in it."""
    coming = sorted((arrival.at_s, arrival.group, arrival.count) for arrival in scenario.arrivals)
    arriving = {arrival.group for arrival in scenario.arrivals}
    coming = [(0.0, group.name, group.count) for group in scenario.pods if group.count and group.name not in arriving] + coming
    coming.sort(key=lambda arrival: arrival[0])
    found: list[tuple[float, dict[str, int]]] = []
    while coming:
        begin = coming[0][0]
        end = begin + min(scenario.batch_idle_s, scenario.batch_max_s)
        pods: Counter[str] = Counter()
        while coming and (coming[0][0] < end or coming[0][0] == begin):
            at_s, name, count = coming.pop(0)
            pods[name] += count
            end = min(at_s + scenario.batch_idle_s, begin + scenario.batch_max_s)
        found.append((end, dict(pods)))
    return found


class _Timeline:
    """The nodes and the waiting pods from batch to batch."""

    def __init__(self, scenario: Scenario, market: Market) -> None:
        self._scenario = scenario
        self._market = market
        self._node_pools = {pool.name: pool for pool in scenario.node_pools}
        self._standing = [Standing(node, 0.0) for node in existing_nodes(scenario, market, groups_of(scenario))]
        self._waiting: Counter[str] = Counter()
        self._unplaced: dict[str, int] = {}
        self._reasons: tuple[Reason, ...] = ()

    def run(self) -> Decision:
        coming = batches(self._scenario)
        retry_s: float | None = None
        while coming or retry_s is not None:
            now_s = min(coming[0][0] if coming else retry_s or 0.0, retry_s if retry_s is not None else float("inf"))
            if coming and coming[0][0] == now_s:
                self._waiting.update(coming.pop(0)[1])
            progress = self._batch(now_s)
            retry_s = now_s + RETRY_S if self._unplaced and progress else None
        return self._decision()

    def _batch(self, now_s: float) -> bool:
        """One run of the scheduler.

        Returns:
            Whether it changed anything that could help the pods that found no place.
        """
        groups = {group.name: group for group in groups_of(self._scenario)}
        before = dict(self._unplaced)
        self._make_ready(now_s, groups)
        nodes = [_as_seen(standing, now_s) for standing in self._standing]
        tried = pools(self._scenario.node_pools, self._scenario.daemon_sets, self._market)
        scheduler = Scheduler(self._market, tried, nodes, list(groups.values()))
        self._unplaced = scheduler.run(self._waiting)
        self._reasons = tuple(reasons(scheduler, self._market, [groups[name] for name in self._unplaced]))
        for standing, node in zip(self._standing, nodes, strict=True):
            standing.meant = node.pods
        launched = [self._launch(claim, now_s) for claim in scheduler.claims]
        self._make_ready(now_s, groups)
        return any(launched) or self._unplaced != before

    def _make_ready(self, now_s: float, groups: dict[str, Group]) -> None:
        """Nodes that are ready run the pods that wait for them."""
        for standing in self._standing:
            if standing.ready_s <= now_s and standing.meant:
                for name, count in standing.meant.items():
                    occupy(standing.node, groups[name], count)
                self._waiting -= standing.meant
                standing.bound += standing.meant
                standing.meant = Counter()

    def _launch(self, claim: Claim, now_s: float) -> bool:
        made = node_claim(claim, self._market, at_s=now_s)
        if made.cheapest_type is None or made.zone is None or not keeps_min_values(claim, self._market):
            # Nothing could be launched: the pods wait on.
            for name, count in claim.pods.items():
                self._unplaced[name] = self._unplaced.get(name, 0) + count
            return False
        node = node_of(
            f"{made.node_pool}-{len(self._standing):06d}",
            self._node_pools[made.node_pool],
            self._scenario.daemon_sets,
            self._market,
            (made.cheapest_type, made.zone, made.launch.capacity_type),
            initialized=False,
            narrowed=claim.requirements,
        )
        self._standing.append(Standing(node, now_s + self._scenario.boot_s, made, meant=Counter(claim.pods)))
        return True

    def _decision(self) -> Decision:
        claims = [
            standing.claim.model_copy(update={"pods": dict(sorted((standing.bound + standing.meant).items()))})
            for standing in self._standing
            if standing.claim
        ]
        there = {
            standing.node.name: dict(sorted((standing.bound + standing.meant).items()))
            for standing in self._standing
            if not standing.claim and (standing.bound or standing.meant)
        }
        return Decision(
            node_claims=tuple(claims),
            unschedulable=dict(sorted(self._unplaced.items())),
            existing_nodes=there if self._scenario.existing_nodes else None,
            reasons=self._reasons,
        )


def _as_seen(standing: Standing, now_s: float) -> Node:
    """The node as one run of the scheduler changes it."""
    node = standing.node
    ready = standing.ready_s <= now_s
    return Node(node.name, node.pool, ready, node.requirements, node.taints, node.room, node.capacity)
