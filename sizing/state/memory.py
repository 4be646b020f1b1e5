"""Memory of the state on an executor: on the heap, or outside of it.

The memory backend keeps rows as objects on the heap, outside of Spark's unified memory. RocksDB keeps them on disk and uses native
memory, which must fit into the pod's overhead.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from penstock.sizing.state.stores import Backend
from penstock.sizing.units import MIB

# Source: Spark 4.1.1, UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES, spark.memory.fraction and spark.memory.storageFraction.
RESERVED_MIB = 300
MEMORY_FRACTION = 0.6
STORAGE_FRACTION = 0.5
# Source: Spark 4.1.1, spark.sql.streaming.maxBatchesToRetainInMemory: two versions of each store's map; a changed row exists twice.
VERSIONS_IN_MEMORY = 2
# Source: Spark 4.1.1, spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB, with boundedMemoryUsage: one block cache per executor that
# all of its stores share, and that their write buffers are charged to.
ROCKSDB_BOUNDED_MIB = 500
# Source: RocksDB's defaults: 2 write buffers of 64 MB.
WRITE_BUFFERS_MIB = 2 * 64
# Source: Spark 4.3.0, RocksDBMemoryManager: with boundedMemoryUsage a WriteBufferManager of writeBufferCacheRatio, 0.5, of that memory has
# RocksDB flush write buffers before those of all stores of an executor exceed it.
BOUNDED_WRITE_BUFFERS_MIB = ROCKSDB_BOUNDED_MIB // 2
# Source: Spark 4.1.1, RocksDBConf: blockCacheSizeMB 8, of each store without boundedMemoryUsage.
BLOCK_CACHE_MIB = 8
ROCKSDB_INSTANCE_MIB = BLOCK_CACHE_MIB + WRITE_BUFFERS_MIB
# Ours: above this share of the heap outside of Spark's memory, garbage collection is too frequent, and RocksDB is chosen.
MEMORY_BACKEND_SHARE = 0.5


class UnifiedMemory(BaseModel):
    """Spark's unified memory in a heap, in bytes.

    Args:
        total_bytes: execution and storage together.
        storage_bytes: the part that execution cannot evict.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    total_bytes: int
    storage_bytes: int


class StateMemory(BaseModel):
    """Memory of the state on one executor.

    Args:
        stores: maximum number of stores on one executor.
        state_bytes: maximum state on one executor, one version.
        heap_mib: heap, outside of Spark's unified memory.
        native_mib: native memory, in the pod's overhead.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    stores: int
    state_bytes: int
    heap_mib: int
    native_mib: int


def unified_memory(heap_bytes: int) -> UnifiedMemory:
    """Spark's unified memory in a heap.

    Args:
        heap_bytes: as reported by the JVM, slightly less than ``-Xmx`` with some collectors.

    Source: Spark 4.1.1, UnifiedMemoryManager.getMaxMemory: int((heap - 300 MiB) * 0.6), half of it storage.
    """
    total = max(0, int((heap_bytes - RESERVED_MIB * MIB) * MEMORY_FRACTION))
    return UnifiedMemory(total_bytes=total, storage_bytes=int(total * STORAGE_FRACTION))


def free_heap_mib(heap_mib: int) -> int:
    """The heap outside of Spark's reserved and unified memory, rounded down; used by the memory backend."""
    return max(0, heap_mib - RESERVED_MIB - math.ceil(unified_memory(heap_mib * MIB).total_bytes / MIB))


def heap_for_state_mib(state_heap_mib: int) -> int:
    """The minimum heap that has this much outside of Spark's reserved and unified memory."""
    if not state_heap_mib:
        return 0
    heap_mib = RESERVED_MIB + math.ceil(state_heap_mib / (1 - MEMORY_FRACTION))
    while free_heap_mib(heap_mib) < state_heap_mib:
        heap_mib += 1
    return heap_mib


def state_memory(backend: Backend, state_bytes: int, stores: int, executors: int, *, bounded: bool = True) -> StateMemory:
    """Computes the memory of the state on one executor.

    Args:
        backend: where the state is kept.
        state_bytes: state of the whole query, one version.
        stores: state stores of the whole query.
        executors: executors that share them.
        bounded: whether RocksDB's memory is bounded (``spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage``), as in
            Penstock's sessions.
    """
    own_stores, own_bytes = -(-stores // executors), -(-state_bytes // executors)
    if not stores:
        return StateMemory(stores=0, state_bytes=0, heap_mib=0, native_mib=0)
    if backend == "memory":
        heap_mib = -(-own_bytes * VERSIONS_IN_MEMORY // MIB)
        return StateMemory(stores=own_stores, state_bytes=own_bytes, heap_mib=heap_mib, native_mib=0)
    native_mib = own_stores * ROCKSDB_INSTANCE_MIB
    if bounded:
        # The shared cache holds blocks of the whole state, however few the stores are.
        cached_mib = max(own_stores * BLOCK_CACHE_MIB, -(-own_bytes // MIB))
        native_mib = min(min(own_stores * WRITE_BUFFERS_MIB, BOUNDED_WRITE_BUFFERS_MIB) + cached_mib, ROCKSDB_BOUNDED_MIB)
    return StateMemory(stores=own_stores, state_bytes=own_bytes, heap_mib=0, native_mib=native_mib)


def chosen_backend(state_bytes: int, executors: int, heap_mib: int) -> Backend:
    """The backend for a state: memory if it is small relative to the heap, otherwise RocksDB.

    Args:
        state_bytes: state of the whole query, one version.
        executors: executors that share it.
        heap_mib: heap of one executor.
    """
    needed_mib = -(-state_bytes * VERSIONS_IN_MEMORY // (executors * MIB))
    return "memory" if needed_mib <= free_heap_mib(heap_mib) * MEMORY_BACKEND_SHARE else "rocksdb"
