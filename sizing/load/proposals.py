"""Values that a violation of a load proposes. Each is planned again before it is said."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator

from penstock.sizing.kafka.brokers import cheapest
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.kafka.serverless import serverless_use
from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import Load
from penstock.sizing.load.micro_batch import least_trigger_s, max_offsets
from penstock.sizing.load.parallelism import needed_partitions, needed_slots
from penstock.sizing.load.planning import kafka_demand, plan_load
from penstock.sizing.load.target_rate import drain_rate, needed_rate
from penstock.sizing.state.checkpoint import checkpoint_violations

# Kind of the environment's Kafka -> what else carries a load that it does not.
KAFKA_ELSEWHERE = {
    "standard": "several clusters, or a higher broker quota",
    "express": "several clusters, or a higher broker quota",
    "serverless": "a provisioned cluster: kind: express or standard",
}
_MINUTES = 60
# Longer triggers are no longer a stream.
_LONGEST_TRIGGER_S = 86_400


def most_sustained(load: Load, capacity_events_per_s: float) -> int:
    """The highest average rate, in whole events/s and below the load's, whose target a capacity reaches; 0: none."""
    return _most(math.ceil(load.events_per_s), lambda rate: needed_rate(_at(load, rate)) <= capacity_events_per_s)


def rate_text(events_per_s: int) -> str:
    """A rate for people: ``62,686 events/s``."""
    return f"{events_per_s:,} events/s"


def shortest_trigger_s(load: Load, job: JobShape, capacity_events_per_s: float) -> int | None:
    """A trigger, in whole seconds, whose micro-batches drain the backlog of a restart in time; None: no trigger does.

    Args:
        load: the load.
        job: the job; where its parallelism follows from the load, a longer trigger takes fewer slots.
        capacity_events_per_s: throughput of the plan.
    """
    least = least_trigger_s(load, capacity_events_per_s)
    if least is None:
        return None
    # The formula is exact but for whole events of a micro-batch, which count where there are few.
    steps = [least + 1, *(least + 2**power for power in range(1, 18))]
    return next((trigger for trigger in steps if trigger <= _LONGEST_TRIGGER_S and _drains(load, job, trigger)), None)


def written_trigger_s(load: Load, job: JobShape, least_s: int) -> int | None:
    """A trigger, in whole seconds, in which the objects of a micro-batch can be written; None: none of those that were tried.

    Args:
        load: the load.
        job: the job; where its parallelism follows from the load, another trigger takes other slots, and writes other objects.
        least_s: that of the planned objects.
    """
    steps = [least_s, *(least_s + 2**power for power in range(5))]
    return next((trigger for trigger in steps if _written(load, job, trigger)), None)


def kafka_proposals(load: Load, job: JobShape) -> Iterator[str]:
    """A lower rate, and a shorter retention, with which the environment's kind of Kafka carries the load, where there are any."""
    rate = _most(math.ceil(load.events_per_s), lambda rate: _carried(_at(load, rate), job))
    if rate:
        yield f"at most {rate_text(rate)}"
    minutes = math.ceil(load.retention_h * _MINUTES)
    kept = _most(minutes, lambda minute: _carried(load.model_copy(update={"retention_h": minute / _MINUTES}), job))
    if kept:
        yield f"retention: {kept}m or shorter"


def _written(load: Load, job: JobShape, trigger_s: int) -> bool:
    longer = job.model_copy(update={"trigger_s": float(trigger_s)})
    return not checkpoint_violations(plan_load(load, longer).checkpoint, float(trigger_s))


def _at(load: Load, events_per_s: float) -> Load:
    return load.model_copy(update={"events_per_s": float(events_per_s)})


def _drains(load: Load, job: JobShape, trigger_s: int) -> bool:
    planned = plan_load(load, job.model_copy(update={"trigger_s": float(trigger_s)}))
    return max_offsets(load, planned.capacity_events_per_s, trigger_s) >= drain_rate(load) * trigger_s


def _carried(load: Load, job: JobShape) -> bool:
    fewest = needed_partitions(load, job.parallelism or needed_slots(load, job.trigger_s).slots).partitions
    demand = kafka_demand(load, job, sum(asked or fewest for asked in job.topics.values()) + job.written_partitions)
    try:
        if job.kafka.kind == "serverless":
            serverless_use(demand)
        elif job.kafka.kind != "none":
            cheapest(demand, job.kafka.kind)
    except KafkaOutOfReach:
        return False
    return True


def _most(too_much: int, fits: Callable[[int], bool]) -> int:
    """The largest fitting value below one that does not fit; 0: none. More fits only where less does."""
    return bisect_right(range(1, too_much), False, key=lambda value: not fits(value))
