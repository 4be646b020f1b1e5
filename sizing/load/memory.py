"""The memory of an executor for a load: heap for its rows and for state kept there, overhead for Python and for RocksDB."""

from __future__ import annotations

from penstock.sizing.load.load_plan import ExecutorMemory
from penstock.sizing.spark_pods import PYTHON_OVERHEAD_FACTOR
from penstock.sizing.spark_settings import DEFAULT_HEAP_MIB, JVM_OVERHEAD_FACTOR, MIN_OVERHEAD_MIB
from penstock.sizing.state.memory import MEMORY_FRACTION, RESERVED_MIB, StateMemory, heap_for_state_mib
from penstock.sizing.units import MIB

# Ours: a batch's rows are there twice while they are shuffled, as what was read and as what was sorted.
COPIES_OF_A_BATCH = 2


def heap_for_rows_mib(batch_bytes: int) -> int:
    """The least heap whose unified memory holds an executor's share of a batch twice, and never below Spark's own default.

    Args:
        batch_bytes: of the largest micro-batch, the share of one executor.
    """
    needed_mib = -(-batch_bytes * COPIES_OF_A_BATCH // MIB)
    return max(DEFAULT_HEAP_MIB, RESERVED_MIB + -int(-needed_mib // MEMORY_FRACTION))


def jvm_overhead_mib(heap_mib: int) -> int:
    """What the JVM alone takes beside its heap: Spark's own factor for it, 0.1, at least 384 MiB."""
    return max(int(JVM_OVERHEAD_FACTOR * heap_mib), MIN_OVERHEAD_MIB)


def executor_needs(batch_bytes: int, state: StateMemory) -> ExecutorMemory:
    """The executor for a load.

    The overhead is 0.4 of the heap as in every plan, or what the JVM and RocksDB take, if that is more.
    """
    heap_mib = max(heap_for_rows_mib(batch_bytes), heap_for_state_mib(state.heap_mib))
    planned_mib = max(int(PYTHON_OVERHEAD_FACTOR * heap_mib), MIN_OVERHEAD_MIB)
    overhead_mib = max(planned_mib, jvm_overhead_mib(heap_mib) + state.native_mib)
    return ExecutorMemory(heap_mib=heap_mib, overhead_mib=overhead_mib, memory_mib=heap_mib + overhead_mib)
