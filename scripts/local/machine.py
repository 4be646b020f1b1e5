"""A plan scaled down to this machine."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from penstock.sizing.planned import Plan

_MIB = 1024 * 1024
# A local driver also does the executors' work, next to the broker, the emulator and the Python workers.
_LEAST_HEAP_MIB = 1024
_SHARE_OF_MEMORY = 6


@dataclass(frozen=True)
class LocalMachine:
    """A plan scaled down to this machine.

    Args:
        master: Spark's master.
        spark_conf: settings that differ from the plan's.
        cuts: the values scaled down, in sentences; empty if there are none.
    """

    master: str
    spark_conf: dict[str, str]
    cuts: tuple[str, ...]


def cut(plan: Plan, cores: int | None = None, memory_mib: int | None = None) -> LocalMachine:
    """Scales a plan down to a machine.

    Args:
        plan: what the job needs.
        cores: of the machine; this one's by default.
        memory_mib: of the machine; this one's by default.
    """
    cores = cores or os.cpu_count() or 1
    memory_mib = memory_mib or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
    pods = plan.pods
    slots = plan.totals.executors * (pods.executor.slots or 1)
    threads = min(slots, 2 * cores)
    planned_mib = pods.driver.heap_mib + plan.totals.executors * pods.executor.heap_mib
    heap_mib = min(planned_mib, max(_LEAST_HEAP_MIB, math.floor(memory_mib / _SHARE_OF_MEMORY)))
    cuts = []
    if threads < slots:
        cuts.append(f"{slots} slots to {threads}, twice the {cores} cores of this machine")
    if heap_mib < planned_mib:
        cuts.append(f"{planned_mib:,} MiB of heap to {heap_mib:,} MiB, one sixth of this machine's memory")
    return LocalMachine(f"local[{threads}]", {"spark.driver.memory": f"{heap_mib}m"}, tuple(cuts))
