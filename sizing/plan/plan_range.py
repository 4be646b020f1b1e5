"""What the spread of a measured profile means for a plan: executors, nodes and cost, from the fast end of the profile to the slow one."""

from __future__ import annotations

from typing import NamedTuple

from penstock.sizing.load.load import Load
from penstock.sizing.planned import Plan, PlanRange, RangeEnd
from penstock.sizing.targets import Targets


class Ends(NamedTuple):
    """The targets at both ends of a profile: where a slot processes the most, and where it processes the least."""

    fast: Targets
    slow: Targets


def ends_of(targets: Targets) -> Ends | None:
    """The ends of a job's profile; None without a measured profile, or if its rates have no spread."""
    load = targets.load
    rate = None if load is None else load.slot_rate
    if load is None or rate is None or rate.low == rate.high:
        return None
    return Ends(fast=_at(targets, load, rate.high), slow=_at(targets, load, rate.low))


def plan_range(fast: Plan, typical: Plan, slow: Plan) -> PlanRange:
    """The range from the plans of both ends and the plan itself."""
    return PlanRange(low=_end(fast), typical=_end(typical), high=_end(slow))


def _at(targets: Targets, load: Load, events_per_slot_per_s: float) -> Targets:
    return targets.model_copy(update={"load": load.assuming(events_per_slot_per_s)})


def _end(one: Plan) -> RangeEnd:
    return RangeEnd(
        parallelism=one.parallelism.value,
        executors=one.totals.executors,
        nodes=None if one.nodes is None else one.nodes.staged.nodes,
        usd_per_month=None if one.cost is None else one.cost.total.usd_per_month,
        feasible=one.feasible,
    )
