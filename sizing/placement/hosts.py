"""What pods are placed on: existing nodes, and claims in progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from penstock.sizing.placement.market import Amounts
from penstock.sizing.placement.pools import Pool
from penstock.sizing.placement.requirements import Requirements
from penstock.sizing.placement.taints import Taint


class Claim:
    """A claim in progress: its pods and its remaining instance types.

    Args:
        number: counted from 0, in the order of creation.
        pool: the NodePool.
        requirements: combined requirements of its pods and the NodePool.
        types: the instance types that fit.
        totals: total requests of its pods, without DaemonSets.
    """

    def __init__(self, number: int, pool: Pool, requirements: Requirements, types: int, totals: Amounts) -> None:
        self.number = number
        self.pool = pool
        self.requirements = requirements
        self.types = types
        self.totals = totals
        self.pods: Counter[str] = Counter()

    @property
    def host(self) -> str:
        """A host name that no node has, as Karpenter gives it one until it has a node."""
        return f"hostname-placeholder-{self.number:04d}"


class Node:
    """An existing or launching node.

    Args:
        name: Karpenter tries nodes in the order of their names.
        pool: name of its NodePool.
        initialized: initialized nodes are tried first.
        requirements: its labels.
        taints: taints that pods must tolerate.
        room: remaining amounts for pods, by resource in the scheduler's order.
        capacity: capacity that counts against the NodePool's limits.
        running: number of pods that it runs already, by group, without DaemonSets.
    """

    def __init__(
        self,
        name: str,
        pool: str,
        initialized: bool,
        requirements: Requirements,
        taints: Sequence[Taint],
        room: Mapping[str, int],
        capacity: Mapping[str, int],
        running: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self.pool = pool
        self.initialized = initialized
        self.requirements = requirements
        self.taints = tuple(taints)
        self.room = dict(room)
        self.capacity = capacity
        self.running: Counter[str] = Counter(running or {})
        self.pods: Counter[str] = Counter()
