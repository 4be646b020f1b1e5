"""The realistic order: pods arrive over time, Karpenter decides batch by batch, and launching nodes accept further pods.

Rules of each batch (karpenter v1.14.1, ``provisioner.go``, ``batcher.go``, ``pkg/controllers/state``):

- A batch starts with the first arriving pod and ends when none has arrived for ``batchIdle_s``, or after ``batchMax_s``. A pod that
  arrives at the exact end belongs to the next batch.
- Every pod that is not running yet is placed again, including those with a launching node: a claim sent to EC2 is a node like any other,
  of the type that EC2 chose, with that type's allocatable. Ready nodes are tried before others, then by name.
- Unschedulable pods are retried after 10 s: a limit that counted the largest type of a claim then counts the launched type.

Assumptions for what cannot be predicted:

- EC2 chooses a launch's type: on-demand by the lowest price, which is known; spot by price and free capacity, which is known only to
  AWS. In both cases the cheapest type of the launch is assumed, in its cheapest zone; of several with one price the first by name.
- The names of nodes are random: here they follow the order of creation.
- Kubernetes binds pending pods to a node that becomes ready in its own order: here they are bound as Karpenter planned.
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
from penstock.sizing.placement.hosts import Claim, Node
from penstock.sizing.placement.market import Market
from penstock.sizing.placement.nodes import existing_nodes, node_of, occupy
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import pools
from penstock.sizing.placement.reasons import reasons
from penstock.sizing.placement.scenario import Scenario
from penstock.sizing.placement.scheduler import Scheduler

# Source: karpenter v1.14.1 (pkg/controllers/provisioning/controller.go): a pending pod triggers provisioning again.
RETRY_S = 10.0


@dataclass
class Standing:
    """A node over time.

    Args:
        node: the node without the pods of this run.
        ready_s: time at which it is ready.
        claim: its claim; None for a node of the scenario.
        bound: pods of this run that run on it.
        meant: pods that wait for it to be ready.
    """

    node: Node
    ready_s: float
    claim: NodeClaim | None = None
    bound: Counter[str] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)


def place_staged(scenario: Scenario, catalog: Catalog, node_settings: NodeSettings, zones: Sequence[str] | None = None) -> Decision:
    """Places pods that arrive over time.

    Args:
        scenario: with `arrivals`; groups without arrivals are present at 0 s. Without arrivals this is one batch.
        catalog: instance types and prices.
        node_settings: settings that affect the allocatable of nodes.
        zones: zones with a subnet of the NodeClass; None: the region's a, b and c.

    Returns:
        The node claims with the second of their batch (`at_s`) and their final pods, and the unschedulable pods.

    Raises:
        NoSpotPrice: SIZ-025.
        UnknownName: SIZ-024, for the instance type of an existing node.
    """
    market = market_of(scenario, catalog, node_settings, zones)
    return _Timeline(scenario, market).run()


def batches(scenario: Scenario) -> list[tuple[float, dict[str, int]]]:
    """The end of each batch, and the pods that arrived in it."""
    coming = sorted((arrival.at_s, arrival.group, arrival.count) for arrival in scenario.arrivals)
    arriving = {arrival.group for arrival in scenario.arrivals}
    coming = [(0.0, group.name, group.count) for group in scenario.pods if group.count and group.name not in arriving] + coming
    coming.sort(key=lambda arrival: arrival[0])
    ended: list[tuple[float, dict[str, int]]] = []
    while coming:
        begin = coming[0][0]
        end = begin + min(scenario.batch_idle_s, scenario.batch_max_s)
        pods: Counter[str] = Counter()
        while coming and (coming[0][0] < end or coming[0][0] == begin):
            at_s, name, count = coming.pop(0)
            pods[name] += count
            end = min(at_s + scenario.batch_idle_s, begin + scenario.batch_max_s)
        ended.append((end, dict(pods)))
    return ended


class _Timeline:
    """The nodes and the pending pods from batch to batch."""

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
        """One scheduling run.

        Returns:
            Whether it changed anything that could make unschedulable pods schedulable.
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
        """Ready nodes run the pods that wait for them."""
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
            # Nothing could be launched: the pods stay pending.
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
        on_existing = {
            standing.node.name: dict(sorted((standing.bound + standing.meant).items()))
            for standing in self._standing
            if not standing.claim and (standing.bound or standing.meant)
        }
        return Decision(
            node_claims=tuple(claims),
            unschedulable=dict(sorted(self._unplaced.items())),
            existing_nodes=on_existing if self._scenario.existing_nodes else None,
            reasons=self._reasons,
        )


def _as_seen(standing: Standing, now_s: float) -> Node:
    """A copy of the node for one scheduling run to modify."""
    node = standing.node
    ready = standing.ready_s <= now_s
    return Node(node.name, node.pool, ready, node.requirements, node.taints, node.room, node.capacity, node.running)
