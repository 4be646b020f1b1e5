"""The disk throughput of a job's executors, from its load."""

from __future__ import annotations

from penstock.sizing.disk_throughput import WRITE_BUFFER_BYTES, BatchIo, DiskThroughput, executor_throughput
from penstock.sizing.ephemeral_storage import local_dirs_elsewhere
from penstock.sizing.executors import Stage
from penstock.sizing.load.load import Load
from penstock.sizing.plan.needed_storage import record_bytes
from penstock.sizing.planned import PlannedPod, ReadLimit, StatePlan, ThroughputPlan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.state.checkpoint import VERSIONS_PER_SNAPSHOT
from penstock.sizing.state.memory import BLOCK_CACHE_MIB, BOUNDED_WRITE_BUFFERS_MIB, ROCKSDB_BOUNDED_MIB, unified_memory
from penstock.sizing.targets import DecidedTargets
from penstock.sizing.units import MIB


def needed_throughput(
    targets: DecidedTargets,
    settings: SparkSettings,
    executor: PlannedPod,
    state: StatePlan,
    throughput: ThroughputPlan | None,
    stages: tuple[Stage, ...],
    limit: ReadLimit | None,
) -> DiskThroughput:
    """The disk throughput of an executor while the job catches up, as fast as its load requires.

    Args:
        targets: of the job.
        settings: settings of the job.
        executor: its planned executors.
        state: its state.
        throughput: of its load; None: no load.
        stages: of a micro-batch.
        limit: the most records of a micro-batch; None: not limited by the plan.

    Returns:
        All 0 without a load, and for a bounded run, whose micro-batch lasts as long as it takes.
    """
    load, trigger_s = targets.load, targets.trigger_s
    if load is None or throughput is None or trigger_s is None:
        return DiskThroughput()
    records = throughput.target_events_per_s * trigger_s
    if limit is not None:
        records = min(records, limit.records)
    shuffle_partitions = max((stage.tasks for stage in stages if stage.kind == "shuffle"), default=1)
    changed_keys = min(float(load.state_keys), records) if state.stores else 0.0
    on_disk = state.backend == "rocksdb" and state.stores > 0
    own_stores = -(-state.stores // executor.count)
    made = executor_throughput(
        BatchIo(
            interval_s=trigger_s,
            batch_bytes=targets.queries * records * record_bytes(load),
            shuffles=known_shuffles(targets, load),
            map_tasks=sum(stage.tasks for stage in stages if stage.kind != "shuffle"),
            shuffle_partitions=shuffle_partitions,
            memory_bytes=unified_memory(executor.heap_mib * MIB).total_bytes,
            state_bytes=load.state_bytes if on_disk else 0,
            stores=state.stores if on_disk else 0,
            changed_bytes=changed_keys * load.bytes_per_key,
            changed_keys=changed_keys if on_disk else 0.0,
            batches_per_flush=VERSIONS_PER_SNAPSHOT if targets.state_incremental else 1,
            write_buffer_bytes=_write_buffer_bytes(own_stores, bounded=settings.rocksdb_bounded),
            cache_bytes=_cache_bytes(own_stores, bounded=settings.rocksdb_bounded),
            local_dirs_elsewhere=local_dirs_elsewhere(targets.spark_conf),
        ),
        executor.count,
    )
    return made if load.state_bytes or not state.stores else made.model_copy(update={"known": False})


def known_shuffles(targets: DecidedTargets, load: Load) -> int:
    """The shuffles that each row takes part in, as far as they are known.

    One for each stateful operator of the app or of its load, and a repartition. Unlike for ephemeral storage, of which a pod must not
    exceed its limit, none is assumed: a disk that is faster than needed has a price, and on a slower one only batches take longer.
    """
    return max(len(targets.stateful_operators), len(load.operators)) + (targets.stages.stateless is not None)


def _write_buffer_bytes(stores: int, *, bounded: bool) -> int:
    """Write buffers of the stores of an executor are flushed before they exceed what is for all of them."""
    return min(WRITE_BUFFER_BYTES, BOUNDED_WRITE_BUFFERS_MIB * MIB // max(1, stores)) if bounded else WRITE_BUFFER_BYTES


def _cache_bytes(stores: int, *, bounded: bool) -> int:
    return ((ROCKSDB_BOUNDED_MIB - BOUNDED_WRITE_BUFFERS_MIB) if bounded else stores * BLOCK_CACHE_MIB) * MIB
