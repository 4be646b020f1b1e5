"""What an executor's memory overhead has to hold: the JVM besides its heap, RocksDB, and Python."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.python_workers import PythonMemory
from penstock.sizing.spark_settings import JVM_OVERHEAD_FACTOR, MIN_OVERHEAD_MIB


class ExecutorOverhead(BaseModel):
    """Memory that one executor needs in its overhead, in MiB.

    Args:
        jvm_mib: the JVM besides its heap: Spark's default overhead.
        rocksdb_mib: RocksDB's native memory.
        python_workers: worker processes.
        python_mib: of the workers and of the daemon that forks them.
        arrow_mib: of the JVM's batches for the workers.
        needed_mib: the sum.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    jvm_mib: int
    rocksdb_mib: int
    python_workers: int
    python_mib: int
    arrow_mib: int
    needed_mib: int


def jvm_overhead_mib(heap_mib: int) -> int:
    """The JVM's memory besides its heap: Spark's default factor, 0.1, at least 384 MiB."""
    return max(int(JVM_OVERHEAD_FACTOR * heap_mib), MIN_OVERHEAD_MIB)


def executor_overhead(heap_mib: int, rocksdb_mib: int, python: PythonMemory) -> ExecutorOverhead:
    """The overhead that an executor needs.

    Args:
        heap_mib: its heap.
        rocksdb_mib: RocksDB's native memory, for its share of the state.
        python: memory of its Python workers.
    """
    jvm_mib = jvm_overhead_mib(heap_mib)
    return ExecutorOverhead(
        jvm_mib=jvm_mib,
        rocksdb_mib=rocksdb_mib,
        python_workers=python.workers,
        python_mib=python.workers_mib + python.daemon_mib,
        arrow_mib=python.batches_mib,
        needed_mib=jvm_mib + rocksdb_mib + python.total_mib,
    )
