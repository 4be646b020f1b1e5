"""How large a micro-batch may be so that it is done before the next begins, and how many slots that takes."""

from __future__ import annotations

import math
from bisect import bisect_left

from penstock.sizing.load.load import MOST_SLOTS, Load
from penstock.sizing.load.target_rate import drain_rate


def max_offsets(load: Load, capacity_events_per_s: float, trigger_s: float) -> int:
    """The most events of a micro-batch that is processed within its trigger: capacity * (trigger - what a batch takes beside its rows).

    Returns:
        Events of all topics together, at least 1.
    """
    return max(1, math.floor(capacity_events_per_s * (trigger_s - load.batch_overhead_s)))


def least_trigger_s(load: Load, capacity_events_per_s: float) -> int | None:
    """The shortest trigger, in whole seconds, whose micro-batches keep up and catch up; None: no trigger does with this capacity."""
    spare = 1 - drain_rate(load) / capacity_events_per_s
    return max(1, math.ceil(load.batch_overhead_s / spare)) if spare > 0 else None


def slots_for_trigger(load: Load, trigger_s: float) -> int | None:
    """The fewest slots whose bounded micro-batches drain the backlog of a restart in time; None where none do."""
    if trigger_s <= load.batch_overhead_s:
        return None
    needed = math.ceil(drain_rate(load) * trigger_s)
    found = bisect_left(range(1, MOST_SLOTS + 1), needed, key=lambda slots: max_offsets(load, load.throughput(slots), trigger_s))
    return found + 1 if found < MOST_SLOTS else None
