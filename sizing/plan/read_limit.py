"""The most records that a micro-batch reads, for sources that set no limit: without one, the first micro-batch after an outage has all of
it, and again after each failure.

It does not slow a job down that keeps up: it is what the slots can read at best in some seconds, unless that would not fit into memory.
"""

from __future__ import annotations

import math

from penstock.sizing.load.load import Load
from penstock.sizing.planned import PlannedPod, ReadLimit, ThroughputPlan
from penstock.sizing.targets import Targets

# More than a slot reads. Source: benchmarks.streaming on 2026-11-23, error_logs, the cheapest of the shipped jobs: 41,000 a CPU second.
RECORDS_PER_SLOT_PER_S = 50_000
# A shorter trigger only says how soon a small micro-batch begins.
LEAST_INTERVAL_S = 10.0
# Source: Spark's cache on 2026-11-23: 212 bytes for a record of ad_impressions, of 203 bytes of JSON; 49 once it is parsed.
RECORD_BYTES = 256
# Source: "Tuning Spark", Memory Management Overview: 300 MiB are reserved; spark.memory.fraction and spark.memory.storageFraction.
_RESERVED_MIB, _FRACTION, _STORAGE_FRACTION = 300, 0.6, 0.5
_MIB = 1024**2


def read_limit(targets: Targets, executor: PlannedPod, throughput: ThroughputPlan | None) -> ReadLimit | None:
    """The limit of a job's micro-batches.

    Args:
        targets: of the job.
        executor: its planned executors.
        throughput: of its load; None: no load.

    Returns:
        Records of all topics together; None where no source needs one, and for a bounded run, which reads what there is.
    """
    if targets.trigger_s is None or targets.limited_reads:
        return None
    if targets.load is not None and throughput is not None and _is_by_load(targets.load, targets.trigger_s):
        assert throughput.max_offsets_per_trigger is not None
        return ReadLimit(records=throughput.max_offsets_per_trigger, binding="load")
    by_time, by_memory = _by_time(executor, targets.trigger_s), _by_memory(executor, targets.queries)
    return ReadLimit(records=by_time, binding="time") if by_time <= by_memory else ReadLimit(records=by_memory, binding="memory")


def assumed_records(targets: Targets, executor: PlannedPod) -> int:
    """The records of a micro-batch that the plan does not limit: of a bounded run, or with limits of the sources' own.

    Args:
        targets: of the job.
        executor: its planned executors.
    """
    return min(_by_time(executor, targets.trigger_s or LEAST_INTERVAL_S), _by_memory(executor, targets.queries))


def _is_by_load(load: Load, trigger_s: float) -> bool:
    """Whether a micro-batch for the load can end within the trigger: the load's limit is for those."""
    return trigger_s > load.batch_overhead_s


def _by_time(executor: PlannedPod, trigger_s: float) -> int:
    slots = executor.count * (executor.slots or 1)
    return math.floor(slots * RECORDS_PER_SLOT_PER_S * max(trigger_s, LEAST_INTERVAL_S))


def _by_memory(executor: PlannedPod, queries: int) -> int:
    """What fits into the memory that Spark keeps for cached rows, which are not evicted; each query has a micro-batch of its own."""
    storage_mib = max(0, executor.heap_mib - _RESERVED_MIB) * _FRACTION * _STORAGE_FRACTION
    return max(1, math.floor(executor.count * storage_mib * _MIB / (RECORD_BYTES * queries)))
