"""Why pods are unschedulable, by NodePool, in the final state of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.sizing.catalog.labels import CAPACITY_TYPE, ON_DEMAND
from penstock.sizing.placement.decision import Reason
from penstock.sizing.placement.market import Market
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import Pool, enough_values
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.requirements import Requirements
from penstock.sizing.placement.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from penstock.sizing.placement.scheduler import Scheduler
from penstock.sizing.placement.taints import not_tolerated

_MIB = 1024 * 1024


def reasons(scheduler: Scheduler, market: Market, groups: Sequence[Group]) -> Iterator[Reason]:
    """For each group the rule by which each NodePool rejects its pods."""
    for group in groups:
        if group.ignored:
            yield Reason(group=group.name, pool="", why=group.ignored)
            continue
        for pool in scheduler.pools:
            yield Reason(group=group.name, pool=pool.name, why=_why(scheduler, market, group, pool))


def _why(scheduler: Scheduler, market: Market, group: Group, pool: Pool) -> str:
    # The final requirements, with all preferences relaxed.
    wish = group.wishes[-1]
    if not pool.types:
        return _without_spot_prices(market, pool.requirements) or (
            "no instance type offered in these zones satisfies the NodePool's requirements"
        )
    taint = not_tolerated(pool.taints, wish.tolerations)
    if taint is not None:
        return f"the pods do not tolerate its taint {taint}"
    label = pool.requirements.conflict(wish.requirements)
    if label is not None:
        wanted, has = wish.requirements.get(label), pool.requirements.by_label.get(label)
        return f"the pods require {label}: {wanted}; it allows {'no such label' if has is None else has}"
    merged = pool.requirements.plus(wish.requirements)
    types = pool.types & market.compatible(merged)
    if not types:
        both = f"no offered instance type satisfies both its requirements and those of the pods: {_shown(wish.requirements)}"
        return _without_spot_prices(market, merged) or both
    fitting = pool.fitting(market, types, group.requests)
    if not fitting:
        return f"a pod requests {amounts(group)}; {_largest(market, types, pool)}"
    by_topology = _topology(scheduler, market, group, merged, fitting)
    if by_topology is not None:
        return by_topology
    return _left(scheduler, market, pool, merged, fitting & scheduler.within_limits(pool))


def _topology(scheduler: Scheduler, market: Market, group: Group, merged: Requirements, fitting: int) -> str | None:
    """Which topology rule keeps the pods from a new node; None if none does."""
    refusal = scheduler.topology.refusal(group, group.wishes[-1], merged)
    narrowed = scheduler.topology.narrowed(group, group.wishes[-1], merged)
    if refusal is not None or narrowed is None:
        return refusal
    if not fitting & market.compatible(narrowed):
        return f"the topology rules of the pods choose {_shown(narrowed)}; no instance type that fits a pod is offered there"
    return None


def _left(scheduler: Scheduler, market: Market, pool: Pool, merged: Requirements, allowed: int) -> str:
    """What keeps pods from a new node that would fit them."""
    if not allowed:
        return f"its limits: {_limits(scheduler, pool)}, less than the smallest instance type that fits a pod"
    if merged.has_min_values and not enough_values(market, allowed, merged):
        return "fewer instance types fit a pod than minValues requires"
    return "no capacity was left for these pods"


def _without_spot_prices(market: Market, asked: Requirements) -> str | None:
    """Why there is no type where only spot is allowed and no price of it is known: Karpenter launches nothing without a price."""
    if market.has_spot_prices or asked.get(CAPACITY_TYPE).has(ON_DEMAND):
        return None
    return "only spot is allowed, and no spot price is known; set spotRatio, or use a catalog with spot prices (penstock catalog refresh)"


def amounts(group: Group) -> str:
    """The requests of one pod of a group, as text."""
    rest = {name: amount for name, amount in group.requests.items() if name not in (CPU, MEMORY, "pods") and amount}
    others = [_amount(amount, name) for name, amount in rest.items()]
    cpu, memory = group.requests.get(CPU, 0), group.requests.get(MEMORY, 0)
    return ", ".join([f"{cpu / NANO:g} CPU", f"{memory / NANO / _MIB:,.0f} MiB", *others])


def _amount(amount: int, name: str) -> str:
    return f"{amount / NANO / _MIB:,.0f} MiB of {name}" if name == EPHEMERAL_STORAGE else f"{amount / NANO:g} {name}"


def _largest(market: Market, types: int, pool: Pool) -> str:
    most_memory = market.fitting[MEMORY].largest(types)
    most_cpu = market.fitting[CPU].largest(types)
    daemons = max((overhead.requests.get(MEMORY, 0) for overhead in pool.overheads if overhead.types & types), default=0)
    beside = f", of which DaemonSets use up to {daemons / NANO / _MIB:,.0f} MiB" if daemons else ""
    return f"the allowed types have at most {most_cpu / NANO:g} CPU and {most_memory / NANO / _MIB:,.0f} MiB allocatable{beside}"


def _limits(scheduler: Scheduler, pool: Pool) -> str:
    parts = []
    for name, limit in pool.limits.items():
        left = scheduler.remaining[pool.name][name]
        in_gib = name in (MEMORY, EPHEMERAL_STORAGE)
        shown = [f"{amount / NANO / (_MIB * 1024):g} GiB" if in_gib else f"{amount / NANO:g}" for amount in (left, limit)]
        parts.append(f"{shown[0]} of {shown[1]} {name} is left")
    return "; ".join(parts)


def _shown(asked: Requirements) -> str:
    return "; ".join(f"{label}: {values}" for label, values in sorted(asked.by_label.items())) or "none"
