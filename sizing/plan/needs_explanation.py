"""Explanations of what an executor's overhead and the driver's heap have to hold, for ``--explain``."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.driver import PARTITION_BYTES, QUERY_MIB, SESSION_MIB, TASK_BYTES
from penstock.sizing.explained import Explanation
from penstock.sizing.planned import Plan
from penstock.sizing.python_workers import COPIES_IN_A_WORKER, COPIES_IN_THE_JVM, DAEMON_MIB, DEFAULT_RECORD_BYTES, WORKER_MIB
from penstock.sizing.spark_settings import RETAINED_STAGES, RETAINED_STAGES_KEY
from penstock.sizing.targets import Targets


def explain_needs(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    """One explanation per number."""
    yield from _overhead(targets, draft)
    yield from _driver(targets, draft)


def _overhead(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    parts, executor, at = draft.executor_overhead, draft.pods.executor, "executorOverhead"
    yield _of(f"{at}.jvmMib", parts.jvm_mib, "the JVM besides its heap: max(0.1 * heap, 384 MiB)", heapMib=executor.heap_mib)
    rule = "RocksDB's native memory for the state of the load; 0 without one, as the state's size is not known"
    yield _of(f"{at}.rocksdbMib", parts.rocksdb_mib, rule, stores=draft.state.stores, executors=executor.count)
    uses = targets.python.uses
    inputs: dict[str, int | float | str] = {"slots": executor.slots or 1, "operators": len(uses)}
    rule = "slots * operators that run in Python"
    yield _of(f"{at}.pythonWorkers", parts.python_workers, rule, **inputs, operatorsFrom=targets.python.counted_from)
    rule = f"the daemon + workers * (their memory, as measured, + {COPIES_IN_A_WORKER} copies of a batch of up to 10,000 records)"
    record = DEFAULT_RECORD_BYTES if targets.load is None else targets.load.event_bytes
    measured: dict[str, int | float | str] = {f"{use}Mib": WORKER_MIB[use] for use in uses}
    daemon_mib = DAEMON_MIB if uses else 0
    yield _of(f"{at}.pythonMib", parts.python_mib, rule, daemonMib=daemon_mib, **measured, recordBytes=record)
    rule = f"workers * {COPIES_IN_THE_JVM} copies of a batch, outside of the heap"
    yield _of(f"{at}.arrowMib", parts.arrow_mib, rule, workers=parts.python_workers, recordBytes=record)
    rule = "the JVM + RocksDB + Python + Arrow's batches; a pod of a given size may have less"
    yield _of(f"{at}.neededMib", parts.needed_mib, rule, overheadMib=executor.overhead_mib)


def _driver(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    needs, at = draft.driver_needs, "driverNeeds"
    yield _of(f"{at}.batchTasks", needs.batch_tasks, "tasks of all stages * queries", queries=targets.queries)
    yield _of(f"{at}.partitions", needs.partitions, "partitions that are read * queries", queries=targets.queries)
    kept = int(draft.spark_conf.get(RETAINED_STAGES_KEY, RETAINED_STAGES))
    yield _of(f"{at}.rememberedTasks", needs.remembered_tasks, f"{RETAINED_STAGES_KEY} * tasks of a stage", retainedStages=kept)
    rule = (
        f"2 * ({SESSION_MIB} MiB + queries * {QUERY_MIB} MiB + (tasks of a micro-batch + remembered tasks) * {TASK_BYTES} bytes + "
        f"partitions * {PARTITION_BYTES} bytes)"
    )
    inputs = {"queries": targets.queries, "batchTasks": needs.batch_tasks, "rememberedTasks": needs.remembered_tasks}
    yield _of(f"{at}.heapMib", needs.heap_mib, rule, **inputs, partitions=needs.partitions)


def _of(number: str, value: int, rule: str, /, **inputs: int | float | str) -> Explanation:
    return Explanation(number=number, value=value, rule=rule, inputs=inputs)
