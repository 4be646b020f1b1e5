"""Executor memory for a load: heap for rows and heap state, overhead for Python and RocksDB."""

from __future__ import annotations

from penstock.sizing.load.load_plan import ExecutorMemory
from penstock.sizing.overhead import executor_overhead
from penstock.sizing.python_workers import PythonMemory
from penstock.sizing.spark_pods import PYTHON_OVERHEAD_FACTOR
from penstock.sizing.spark_settings import DEFAULT_HEAP_MIB, MIN_OVERHEAD_MIB
from penstock.sizing.state.memory import MEMORY_FRACTION, RESERVED_MIB, StateMemory, heap_for_state_mib
from penstock.sizing.units import MIB

# Ours: during a shuffle the rows of a batch are in memory twice, as read and as sorted.
COPIES_OF_A_BATCH = 2


def heap_for_rows_mib(batch_bytes: int) -> int:
    """The minimum heap whose unified memory holds an executor's share of a batch twice, and never below Spark's default.

    Args:
        batch_bytes: an executor's share of the largest micro-batch.
    """
    needed_mib = -(-batch_bytes * COPIES_OF_A_BATCH // MIB)
    return max(DEFAULT_HEAP_MIB, RESERVED_MIB + -int(-needed_mib // MEMORY_FRACTION))


def executor_needs(batch_bytes: int, state: StateMemory, python: PythonMemory) -> ExecutorMemory:
    """Executor memory for a load.

    The overhead is 0.4 of the heap as in every plan, or the requirement of the JVM, RocksDB and Python if that is higher.

    Args:
        batch_bytes: an executor's share of the largest micro-batch.
        state: its share of the state.
        python: its Python workers.
    """
    heap_mib = max(heap_for_rows_mib(batch_bytes), heap_for_state_mib(state.heap_mib))
    planned_mib = max(int(PYTHON_OVERHEAD_FACTOR * heap_mib), MIN_OVERHEAD_MIB)
    parts = executor_overhead(heap_mib, state.native_mib, python)
    overhead_mib = max(planned_mib, parts.needed_mib)
    return ExecutorMemory(heap_mib=heap_mib, overhead_mib=overhead_mib, memory_mib=heap_mib + overhead_mib, overhead=parts, python=python)
