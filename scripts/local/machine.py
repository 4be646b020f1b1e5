"""A plan scaled down to this machine."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from penstock.scripts.errors import TooManyExecutors
from penstock.scripts.local.spark_cluster import ExecutorSize
from penstock.sizing.planned import Plan

_MIB = 1024 * 1024
_SLOTS_PER_CORE = 2
# A local driver also does the executors' work, next to the broker, the emulator and the Python workers.
_LEAST_HEAP_MIB = 1024
_SHARE_OF_MEMORY = 6
# Of an executor in a process of its own, with RocksDB and two Python workers in its overhead.
_LEAST_EXECUTOR_HEAP_MIB = 512
_LEAST_OVERHEAD_MIB = 512
# Resident memory, measured with user_credit on two executors: an executor with its Python workers and its Spark worker.
_EXECUTOR_MIB = 1280
# All else: the driver, the broker, the emulated AWS, Terraform and this process.
_OTHER_MIB = 3072


@dataclass(frozen=True)
class LocalMachine:
    """A plan scaled down to this machine.

    Args:
        master: Spark's master; empty if there are executors, whose cluster has its URL once it runs.
        spark_conf: settings that differ from the plan's.
        cuts: the values scaled down, in sentences; empty if there are none.
        executors: executors in processes of their own; 0: the driver does their work.
        size: of one of them; None if there are none.
    """

    master: str
    spark_conf: dict[str, str]
    cuts: tuple[str, ...]
    executors: int = 0
    size: ExecutorSize | None = None


def cut(plan: Plan, cores: int | None = None, memory_mib: int | None = None) -> LocalMachine:
    """Scales a plan down to a machine.

    Args:
        plan: what the job needs.
        cores: of the machine; this one's by default.
        memory_mib: of the machine; this one's by default.
    """
    cores, memory_mib = cores or _cores(), memory_mib or _memory_mib()
    pods = plan.pods
    slots = plan.totals.executors * (pods.executor.slots or 1)
    threads = min(slots, _SLOTS_PER_CORE * cores)
    planned_mib = pods.driver.heap_mib + plan.totals.executors * pods.executor.heap_mib
    heap_mib = min(planned_mib, max(_LEAST_HEAP_MIB, math.floor(memory_mib / _SHARE_OF_MEMORY)))
    cuts = []
    if threads < slots:
        cuts.append(f"{slots} slots to {threads}, twice the {cores} cores of this machine")
    if heap_mib < planned_mib:
        cuts.append(f"{planned_mib:,} MiB of heap to {heap_mib:,} MiB, one sixth of this machine's memory")
    return LocalMachine(f"local[{threads}]", {"spark.driver.memory": f"{heap_mib}m"}, tuple(cuts))


def cut_to_executors(plan: Plan, executors: int, cores: int | None = None, memory_mib: int | None = None) -> LocalMachine:
    """Scales a plan down to executors in processes of their own on a machine.

    Args:
        plan: what the job needs.
        executors: how many, 1 or more and no more than the machine carries.
        cores: of the machine; this one's by default.
        memory_mib: of the machine; this one's by default.
    """
    cores, memory_mib = cores or _cores(), memory_mib or _memory_mib()
    planned, driver = plan.pods.executor, plan.pods.driver
    slots = min(planned.slots or 1, max(1, _SLOTS_PER_CORE * cores // executors))
    # The driver and the executors share what the driver alone has otherwise.
    share_mib = math.floor(memory_mib / _SHARE_OF_MEMORY / (executors + 1))
    heap_mib = min(planned.heap_mib, max(_LEAST_EXECUTOR_HEAP_MIB, share_mib))
    driver_mib = min(driver.heap_mib, max(_LEAST_HEAP_MIB, share_mib))
    overhead_mib = min(planned.overhead_mib, max(_LEAST_OVERHEAD_MIB, planned.overhead_mib * heap_mib // planned.heap_mib))
    cuts = []
    if executors < plan.totals.executors:
        cuts.append(f"{plan.totals.executors} executors to {executors}, as requested")
    if slots < (planned.slots or 1):
        cuts.append(f"{planned.slots} slots per executor to {slots}: in total {executors * slots} on the {cores} cores of this machine")
    heaps = (("per executor", planned.heap_mib, heap_mib), ("for the driver", driver.heap_mib, driver_mib))
    if smaller := [f"{before:,} MiB of heap {whose} to {after:,} MiB" for whose, before, after in heaps if after < before]:
        total_mib = driver_mib + executors * heap_mib
        cuts.append(f"{' and '.join(smaller)}: in total {total_mib:,} MiB of this machine's {memory_mib:,} MiB")
    # A slot is a core of the worker, whatever a task reserves on a larger machine.
    conf = {"spark.driver.memory": f"{driver_mib}m", "spark.task.cpus": "1"}
    return LocalMachine("", conf, tuple(cuts), executors, ExecutorSize(slots, heap_mib, overhead_mib))


def too_many(executors: int, cores: int | None = None, memory_mib: int | None = None) -> list[TooManyExecutors]:
    """RUN-042 if a machine does not carry so many executors.

    Args:
        executors: how many, 0 or more.
        cores: of the machine; this one's by default.
        memory_mib: of the machine; this one's by default.
    """
    cores, memory_mib = cores or _cores(), memory_mib or _memory_mib()
    slots, carried = _SLOTS_PER_CORE * cores, max(0, (memory_mib - _OTHER_MIB) // _EXECUTOR_MIB)
    most = min(slots, carried)
    if executors <= most:
        return []
    binding = f"each needs a slot, and {cores} cores have {slots}"
    if carried < slots:
        binding = f"each needs {_EXECUTOR_MIB:,} MiB, beside {_OTHER_MIB:,} MiB for all else, and this machine has {memory_mib:,} MiB"
    fix = f"--executors {most}" if most else "run without --executors: the driver then does the executors' work"
    return [TooManyExecutors(path="--executors", given=str(executors), need=f"at most {most}: {binding}", fix=fix)]


def _cores() -> int:
    return os.cpu_count() or 1


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
