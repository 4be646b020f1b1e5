"""The maximum size of a micro-batch that completes within the trigger interval, and the slots that it requires."""

from __future__ import annotations

import math
from bisect import bisect_left

from penstock.sizing.load.load import MOST_SLOTS, Load
from penstock.sizing.load.target_rate import drain_rate


def max_offsets(load: Load, capacity_events_per_s: float, trigger_s: float) -> int:
    """The maximum number of events of a micro-batch that completes within its trigger: capacity * (trigger - fixed cost of a batch).

    Returns:
        Events of all topics together, at least 1.
    """
    return max(1, math.floor(capacity_events_per_s * (trigger_s - load.batch_overhead_s)))


def least_trigger_s(load: Load, capacity_events_per_s: float) -> int | None:
    """The shortest trigger, in whole seconds, whose micro-batches keep up and catch up; None: no trigger does with this capacity."""
    spare = 1 - drain_rate(load) / capacity_events_per_s
    return max(1, math.ceil(load.batch_overhead_s / spare)) if spare > 0 else None


def slots_for_trigger(load: Load, trigger_s: float) -> int | None:
    """The minimum number of slots whose bounded micro-batches drain the backlog of a restart in time; None: no number does."""
    if trigger_s <= load.batch_overhead_s:
        return None
    needed = math.ceil(drain_rate(load) * trigger_s)
    position = bisect_left(range(1, MOST_SLOTS + 1), needed, key=lambda slots: max_offsets(load, load.throughput(slots), trigger_s))
    return position + 1 if position < MOST_SLOTS else None
