"""What the overhead of a job's executors has to hold, with or without a load."""

from __future__ import annotations

from penstock.sizing.load.load_plan import LoadPlan
from penstock.sizing.overhead import ExecutorOverhead, executor_overhead
from penstock.sizing.planned import PlannedPod
from penstock.sizing.python_workers import DEFAULT_RECORD_BYTES, batch_bytes, python_memory
from penstock.sizing.targets import DecidedTargets


def needed_overhead(targets: DecidedTargets, executor: PlannedPod, load: LoadPlan | None) -> ExecutorOverhead:
    """The overhead that an executor needs, which a pod of a given size may not have; without a load RocksDB is left out, as the size of
    the state is not known.

    Args:
        targets: with the operators that run in Python.
        executor: the planned executor.
        load: the plan for the job's load; None: no load.
    """
    if load is not None:
        return executor_overhead(executor.heap_mib, load.state.executor_native_mib, load.memory.python)
    python = python_memory(targets.python.uses, executor.slots or 1, batch_bytes(DEFAULT_RECORD_BYTES))
    return executor_overhead(executor.heap_mib, 0, python)
