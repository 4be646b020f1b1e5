"""The parallelism for a load, and the partitions that it requires."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import MOST_SLOTS, Load
from penstock.sizing.load.micro_batch import slots_for_trigger
from penstock.sizing.load.target_rate import needed_rate


class NeededSlots(NamedTuple):
    """The minimum number of slots for a load.

    Args:
        slots: 1 to `MOST_SLOTS`.
        binding: ``target rate``, or ``trigger`` if bounded micro-batches need more slots to catch up.
        enough: whether they carry the load; otherwise `slots` is the maximum.
    """

    slots: int
    binding: Literal["target rate", "trigger"]
    enough: bool


class NeededPartitions(NamedTuple):
    """The minimum number of partitions of a topic, and its binding constraint."""

    partitions: int
    binding: Literal["parallelism", "producers", "consumers"]


def needed_slots(load: Load, trigger_s: float | None) -> NeededSlots:
    """The minimum number of slots that reaches the target rate and whose micro-batches drain a backlog in time.

    Args:
        load: the load.
        trigger_s: None for a bounded run, whose single batch is unbounded.
    """
    by_rate = load.slots_for(needed_rate(load))
    if by_rate is None:
        return NeededSlots(MOST_SLOTS, "target rate", False)
    by_trigger = by_rate if trigger_s is None else slots_for_trigger(load, trigger_s)
    if by_trigger is None:
        return NeededSlots(by_rate, "trigger", False)
    return NeededSlots(max(by_rate, by_trigger), "trigger" if by_trigger > by_rate else "target rate", True)


def needed_partitions(load: Load, parallelism: int) -> NeededPartitions:
    """The minimum number of partitions of a topic: one per task, and enough for the ingress and egress of one partition.

    The rule rate / rate of one partition, for producers and consumers, is secondary, as are the rates of one partition. Each topic is
    counted with the whole load, because a spec does not define how the load is distributed.
    """
    peak_mibps = load.mibps(load.peak_events_per_s)
    by: dict[Literal["parallelism", "producers", "consumers"], int] = {
        "parallelism": parallelism,
        "producers": math.ceil(peak_mibps / load.partition_in_mibps),
        "consumers": math.ceil(peak_mibps / load.partition_out_mibps),
    }
    binding = max(by, key=lambda constraint: by[constraint])
    return NeededPartitions(by[binding], binding)


def reading_tasks(job: JobShape, partitions: dict[str, int], parallelism: int) -> int:
    """Tasks with input: limited by the total number of partitions."""
    return min(parallelism, sum(partitions.values())) if job.topics else parallelism
