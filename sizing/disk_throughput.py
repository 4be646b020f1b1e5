"""What the executors of a job write to their disks and read from them per second: shuffle files, spilled rows, state and uploads.

Each of them has its share of the job's micro-batches. Reads count as writes do: a gp3 volume has one throughput for both. What the page
cache of a node serves is not taken off, as little memory of an executor's pod is left for it.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.units import MIB

# Source: Amazon EBS User Guide, "Amazon EBS I/O characteristics and monitoring": sequential I/O of SSD volumes is counted by 256 KiB.
IO_BYTES = 256 * 1024
# Source: Spark 4.3.0, spark.shuffle.sort.bypassMergeThreshold: up to this number of partitions, a map task writes a file for each of
# them, then concatenates the files. A shuffle of rows has no aggregation on the map side, which would rule that out.
BYPASS_MERGE_PARTITIONS = 200
# Source: RocksDB's defaults: write_buffer_size, level0_file_num_compaction_trigger, max_bytes_for_level_base and
# max_bytes_for_level_multiplier.
WRITE_BUFFER_BYTES = 64 * MIB
LEVEL_0_FILES = 4
LEVEL_1_BYTES = 256 * MIB
LEVEL_MULTIPLIER = 10
# Source: Spark 4.3.0, RocksDBConf: blockSizeKB.
BLOCK_BYTES = 4 * 1024


class DiskThroughput(BaseModel):
    """The disk throughput of one executor, in MiB/s; reads and writes together.

    Args:
        shuffle_mibps: shuffle files.
        spill_mibps: rows of a micro-batch that do not fit into Spark's memory.
        state_mibps: RocksDB's flushes, compactions and reads of what its cache does not hold.
        uploads_mibps: buffers of the checkpoint's uploads.
        mibps: the sum.
        iops: I/O operations per second.
        known: whether the load and the size of its state are; what is not counts as 0.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    shuffle_mibps: float = 0.0
    spill_mibps: float = 0.0
    state_mibps: float = 0.0
    uploads_mibps: float = 0.0
    mibps: float = 0.0
    iops: int = 0
    known: bool = False


class BatchIo(BaseModel):
    """A micro-batch of a job, as far as disks are concerned.

    Args:
        interval_s: time from one to the next.
        batch_bytes: rows, of all queries.
        shuffles: shuffles that each row takes part in.
        map_tasks: tasks that write shuffle files, of one shuffle.
        shuffle_partitions: tasks that read them.
        memory_bytes: rows that fit into the memory of one executor; what exceeds it is spilled.
        state_bytes: RocksDB's state of the whole job; 0: none.
        stores: its stores.
        changed_bytes: state rows that the micro-batch changes.
        changed_keys: their number.
        batches_per_flush: micro-batches from one flush of a store's write buffer to the next.
        write_buffer_bytes: size of a store's write buffer, which is flushed when it is full.
        cache_bytes: RocksDB's block caches of one executor.
        local_dirs_elsewhere: whether Spark's local directory is not on the node's root volume.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    interval_s: float
    batch_bytes: float
    shuffles: int
    map_tasks: int
    shuffle_partitions: int
    memory_bytes: int
    state_bytes: int
    stores: int
    changed_bytes: float
    changed_keys: float
    batches_per_flush: int
    write_buffer_bytes: int
    cache_bytes: int
    local_dirs_elsewhere: bool


def executor_throughput(batch: BatchIo, executors: int) -> DiskThroughput:
    """The disk throughput of an executor with an even share of the micro-batches.

    Args:
        batch: a micro-batch of the whole job.
        executors: number of executors.
    """
    share = executors * batch.interval_s
    # Written to be uploaded, and read for that.
    uploads = 2 * batch.changed_bytes / share
    shuffle = spill = state = lookups = blocks = 0.0
    if not batch.local_dirs_elsewhere:
        shuffle = batch.shuffles * batch.batch_bytes * _passes(batch) / share
        blocks = batch.shuffles * batch.map_tasks * batch.shuffle_partitions * _passes(batch) / 2 / share
        spill = 2 * max(0.0, batch.batch_bytes / executors - batch.memory_bytes) / batch.interval_s
        lookups = batch.changed_keys * cache_misses(batch, executors) / share
        state = _compacted_bytes(batch) / share + lookups * BLOCK_BYTES
    sequential = (spill + state - lookups * BLOCK_BYTES + uploads) / IO_BYTES
    return DiskThroughput(
        shuffle_mibps=_mibps(shuffle),
        spill_mibps=_mibps(spill),
        state_mibps=_mibps(state),
        uploads_mibps=_mibps(uploads),
        mibps=_mibps(shuffle + spill + state + uploads),
        iops=math.ceil(sequential + lookups + max(shuffle / IO_BYTES, blocks)),
        known=True,
    )


def write_amplification(batch: BatchIo) -> float:
    """The bytes that RocksDB writes per byte of state that changes.

    A flush writes it once. Once level 0 has four files, they are merged with level 1, all of which is written again, as keys are spread
    evenly. Each further level adds its multiplier.

    Returns:
        1 or more; the reads of the compactions are one less. 0 without state.

    Source: RocksDB's wiki, "RocksDB Tuning Guide", "Level Style Compaction", where the amplification of each level is derived.
    """
    if not batch.stores or not batch.changed_bytes:
        return 0.0
    store_bytes = batch.state_bytes / batch.stores
    flushed = min(batch.write_buffer_bytes, batch.changed_bytes * batch.batches_per_flush / batch.stores)
    level_0, level_1 = LEVEL_0_FILES * flushed, min(store_bytes, LEVEL_1_BYTES)
    deeper = max(0, math.ceil(math.log(max(1.0, store_bytes) / LEVEL_1_BYTES, LEVEL_MULTIPLIER)))
    return 1 + (level_0 + level_1) / level_0 + LEVEL_MULTIPLIER * deeper


def cache_misses(batch: BatchIo, executors: int) -> float:
    """The share of the reads of the state that RocksDB's caches do not serve, 0 to 1: of keys that are used equally often."""
    own_bytes = batch.state_bytes / executors
    return max(0.0, 1 - batch.cache_bytes / own_bytes) if own_bytes else 0.0


def _passes(batch: BatchIo) -> int:
    """How often a row's bytes are written and read by a shuffle: twice as often where map tasks concatenate files."""
    return 4 if batch.shuffle_partitions <= BYPASS_MERGE_PARTITIONS else 2


def _compacted_bytes(batch: BatchIo) -> float:
    amplification = write_amplification(batch)
    return batch.changed_bytes * (2 * amplification - 1) if amplification else 0.0


def _mibps(bytes_per_s: float) -> float:
    return round(bytes_per_s / MIB, 2)
