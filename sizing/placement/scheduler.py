"""Karpenter's scheduling of one batch of pods: onto existing nodes, then onto the claims of this batch, then onto a new claim.

Source: karpenter v1.14.1 (``scheduler.go``, ``nodeclaim.go``, ``existingnode.go``, ``queue.go``).

What a pod fails on is remembered where it can only get worse: claims and nodes fill up, limits get tighter. Topology rules are the
exception: a domain that is full now may be open again after other pods, so only their failures on host names are remembered.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import filterfalse

from penstock.sizing.placement.go_sort import sort_slice
from penstock.sizing.placement.hosts import Claim, Node
from penstock.sizing.placement.market import Amounts, Market
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import Pool, enough_values
from penstock.sizing.placement.requirements import Requirements
from penstock.sizing.placement.resources import CPU, MEMORY, NODES
from penstock.sizing.placement.taints import not_tolerated
from penstock.sizing.placement.topology import Topology
from penstock.sizing.placement.wishes import Wish

# The requirements, instance types and total requests of a claim with one more pod.
Added = tuple[Requirements, int, Amounts]


class Scheduler:
    """One scheduling run over one batch of pods.

    Args:
        market: the instance types and offerings.
        pools: the NodePools in the order in which they are tried.
        nodes: existing and launching nodes.
        groups: the groups of pods.
    """

    def __init__(self, market: Market, pools: Sequence[Pool], nodes: Iterable[Node], groups: Sequence[Group]) -> None:
        self._market = market
        self._groups = groups
        self.pools = tuple(pools)
        self._pools = [pool for pool in pools if pool.types]
        self._nodes = sorted(nodes, key=lambda node: (not node.initialized, node.name))
        self.topology = Topology(market, pools, self._nodes, groups)
        self._has_topology = not self.topology.is_empty
        self._resources = _resources(pools, groups)
        self._requests = {group.name: tuple(group.requests.get(name, 0) for name in self._resources) for group in groups}
        self._rooms = [[node.room.get(name, 0) for name in self._resources] for node in self._nodes]
        self._overheads = {
            pool.name: [(overhead.types, tuple(overhead.requests.get(name, 0) for name in self._resources)) for overhead in pool.overheads]
            for pool in self._pools
        }
        self._fitting = [market.fitting[name] for name in self._resources]
        self.remaining = {pool.name: dict(pool.limits) for pool in pools}
        for node in self._nodes:
            self._count_against_limits(node)
        self.claims: list[Claim] = []
        # In the order in which Karpenter tries them, with the number of pods of each.
        self._order: list[int] = []
        self._pod_counts: list[int] = []
        self._sorted = True
        self._changes = 0
        self._failed_at: dict[str, int] = {}
        self._failed_nodes: dict[Wish, set[int]] = {}

    def run(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Places pods.

        Args:
            counts: number of pods by group.

        Returns:
            Number of unschedulable pods by group.
        """
        queue = deque(group for group in self._in_order() for _ in range(counts.get(group.name, 0)) if not group.ignored)
        for group in self._groups:
            if counts.get(group.name, 0) and not group.ignored:
                self.topology.add(group)
        # Karpenter stops when a pod is dequeued again and the queue has not become shorter since it was requeued.
        put_back: deque[int] = deque([0] * len(queue))
        while queue and put_back[0] != len(queue):
            pod = queue.popleft()
            put_back.popleft()
            if not self._place(pod):
                queue.append(pod)
                put_back.append(len(queue))
        unplaced = Counter(group.name for group in queue)
        for group in self._groups:
            if group.ignored and counts.get(group.name, 0):
                unplaced[group.name] += counts[group.name]
        return dict(unplaced)

    def _in_order(self) -> list[Group]:
        return sorted(self._groups, key=lambda group: (-group.requests.get(CPU, 0), -group.requests.get(MEMORY, 0), group.index))

    def _place(self, group: Group) -> bool:
        if self._failed_at.get(group.name) == self._changes:
            return False
        for wish in group.wishes:
            self.topology.relaxed(wish)
            if self._onto_node(group, wish) or self._onto_claim(group, wish) or self._onto_new_claim(group, wish):
                self._changes += 1
                return True
        self._failed_at[group.name] = self._changes
        return False

    def _onto_node(self, group: Group, wish: Wish) -> bool:
        if not self._nodes:
            return False
        failed = self._failed_nodes.setdefault(wish, set())
        requests = self._requests[group.name]
        for index in filterfalse(failed.__contains__, range(len(self._nodes))):
            node, room = self._nodes[index], self._rooms[index]
            fits = min(room) >= 0 and all(request <= left for request, left in zip(requests, room, strict=True))
            if (
                not fits
                or not_tolerated(node.taints, wish.tolerations) is not None
                or node.requirements.conflict(wish.requirements, undefined_well_known=False) is not None
            ):
                failed.add(index)
                continue
            narrowed = self._on_domains(group, wish, node.requirements.plus(wish.requirements), node.name, undefined_well_known=False)
            if narrowed is not None:
                self._rooms[index] = [left - request for request, left in zip(requests, room, strict=True)]
                self._narrow_node(index, narrowed)
                node.pods[group.name] += 1
                self.topology.record(group, node.name, node.taints, narrowed)
                return True
            if self.topology.is_full(group, wish, node.name):
                failed.add(index)
        return False

    def _narrow_node(self, index: int, requirements: Requirements) -> None:
        node = self._nodes[index]
        if requirements is not node.requirements:
            node.requirements = requirements
            for failed in self._failed_nodes.values():
                failed.discard(index)

    def _onto_claim(self, group: Group, wish: Wish) -> bool:
        if not self._sorted:
            sort_slice(self._pod_counts, self._order)
            self._sorted = True
        failed = wish.failed_claims
        for number in filterfalse(failed.__contains__, self._order):
            claim = self.claims[number]
            added = self._added(claim, group, wish)
            if added is None:
                if self._is_final(claim, group, wish):
                    failed.add(number)
                continue
            self._add(claim, group, *added)
            self._pod_counts[self._order.index(number)] += 1
            self._sorted = False
            return True
        return False

    def _onto_new_claim(self, group: Group, wish: Wish) -> bool:
        for pool in self._pools:
            if pool.name in wish.failed_pools:
                continue
            number = len(self.claims)
            claim = Claim(number, pool, pool.requirements, self.within_limits(pool), (0,) * len(self._resources))
            added = self._added(claim, group, wish)
            if added is None:
                if self._is_final(claim, group, wish):
                    wish.failed_pools.add(pool.name)
                continue
            self._add(claim, group, *added)
            self.claims.append(claim)
            self._order.append(number)
            self._pod_counts.append(1)
            self._sorted = False
            self._subtract_largest(claim)
            return True
        return False

    def _added(self, claim: Claim, group: Group, wish: Wish) -> Added | None:
        """The claim with one more pod, or None if the pod does not fit."""
        merged = _merged(claim, wish)
        narrowed = self._on_domains(group, wish, merged, claim.host) if merged is not None else None
        return self._fitted(claim, group, narrowed) if narrowed is not None else None

    def _is_final(self, claim: Claim, group: Group, wish: Wish) -> bool:
        """Whether a pod that does not fit a claim will never fit it."""
        if not self._has_topology or not self.topology.concerns(group, wish):
            return True
        if self.topology.is_full(group, wish, claim.host):
            return True
        merged = _merged(claim, wish)
        return merged is None or self._fitted(claim, group, merged) is None

    def _on_domains(
        self, group: Group, wish: Wish, merged: Requirements, host: str, *, undefined_well_known: bool = True
    ) -> Requirements | None:
        """The requirements of a node with the domains that the topology rules choose; None if they cannot be met."""
        if not self._has_topology or not self.topology.concerns(group, wish):
            return merged
        if not self.topology.on_host(group, wish, host):
            return None
        return self.topology.narrowed(group, wish, merged, undefined_well_known=undefined_well_known)

    def _fitted(self, claim: Claim, group: Group, narrowed: Requirements) -> Added | None:
        types = claim.types
        if narrowed is not claim.requirements:
            types &= self._market.compatible(narrowed)
        summed = tuple(map(int.__add__, claim.totals, self._requests[group.name]))
        types = self._fit(claim.pool, types, summed)
        if not types or (narrowed.has_min_values and not enough_values(self._market, types, narrowed)):
            return None
        return narrowed, types, summed

    def _fit(self, pool: Pool, types: int, totals: Amounts) -> int:
        fitting_types = 0
        for mine, overhead in self._overheads[pool.name]:
            fitting = mine & types
            for steps, amount, more in zip(self._fitting, totals, overhead, strict=True):
                if not fitting:
                    break
                fitting &= steps.at_least(amount + more)
            fitting_types |= fitting
        return fitting_types

    def _add(self, claim: Claim, group: Group, requirements: Requirements, types: int, totals: Amounts) -> None:
        if requirements is not claim.requirements:
            # A label added by this pod may admit a pod that failed before.
            for other in self._groups:
                for wish in other.wishes:
                    wish.failed_claims.discard(claim.number)
        claim.requirements, claim.types, claim.totals = requirements, types, totals
        claim.pods[group.name] += 1
        self.topology.record(group, claim.host, claim.pool.taints, requirements)

    def within_limits(self, pool: Pool) -> int:
        """The types of a pool within its remaining limits."""
        types, remaining = pool.types, self.remaining[pool.name]
        if remaining.get(NODES) == 0:
            return 0
        for name, amount in remaining.items():
            if name == NODES:
                types = types if amount > 0 else 0
            else:
                types &= ~self._market.capacities[name].more_than(amount)
        return types

    def _subtract_largest(self, claim: Claim) -> None:
        """Karpenter subtracts the largest type of a new claim from the limits, as the worst case; the node limit is not changed."""
        remaining = self.remaining[claim.pool.name]
        for name in remaining.keys() - {NODES}:
            remaining[name] -= self._market.capacities[name].largest(claim.types)

    def _count_against_limits(self, node: Node) -> None:
        remaining = self.remaining.get(node.pool, {})
        for name in remaining:
            remaining[name] -= node.capacity.get(name, 0)


def _merged(claim: Claim, wish: Wish) -> Requirements | None:
    if not claim.types or not _tolerates(claim.pool, wish) or claim.requirements.conflict(wish.requirements) is not None:
        return None
    return claim.requirements.plus(wish.requirements)


def _tolerates(pool: Pool, wish: Wish) -> bool:
    tolerated = pool.tolerated.get(wish)
    if tolerated is None:
        tolerated = pool.tolerated[wish] = not_tolerated(pool.taints, wish.tolerations) is None
    return tolerated


def _resources(pools: Iterable[Pool], groups: Iterable[Group]) -> tuple[str, ...]:
    """The requested resources, in a fixed order."""
    asked = {name for group in groups for name in group.requests}
    asked |= {name for pool in pools for overhead in pool.overheads for name in overhead.requests}
    return tuple(sorted(asked))
