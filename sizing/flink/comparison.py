"""Flink's sizing of a job and the plan that replaces it, row by row.

A row compares resources with the same purpose. The two engines divide their memory differently, so the row's note names the counterpart;
equal numbers do not mean equal performance.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.flink.job import FlinkJob
from penstock.sizing.planned import Plan, PlannedPod
from penstock.sizing.state.memory import RESERVED_MIB, ROCKSDB_INSTANCE_MIB, unified_memory
from penstock.sizing.units import MIB

Unit = Literal["bytes", "millicores", "count", "ms"]


class Row(BaseModel):
    """A resource of both engines, or of one of them.

    Args:
        of: group of the row: ``job``, or ``session`` of several; ``task`` (TaskManager and executor) or ``control`` (JobManager and
            driver).
        name: name of the row.
        flink: Flink's value; None if it has none.
        spark: Spark's value; None if it has none.
        unit: unit of both numbers.
        note: the difference, in words.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    of: Literal["session", "job", "task", "control"]
    name: str
    flink: int | None
    spark: int | None
    unit: Unit
    note: str


def compare(flink: FlinkJob, plan: Plan, trigger_ms: int | None) -> tuple[Row, ...]:
    """The rows of the comparison, starting with the job.

    Args:
        flink: the job as deployed.
        plan: the plan that replaces it, from the same parallelism, slots, memory and CPU.
        trigger_ms: trigger of the spec; None for a bounded run.
    """
    stores = -(-shuffle_tasks(plan) // plan.totals.executors)
    return (*_job(flink, plan, trigger_ms), *task_rows(flink, plan.pods.executor, stores), *control_rows(flink, plan.pods.driver))


def _job(flink: FlinkJob, plan: Plan, trigger_ms: int | None) -> list[Row]:
    slots = (plan.pods.executor.slots or 1) * plan.totals.executors
    operator = f"Flink runs {flink.parallelism:,} subtasks of every operator concurrently; Spark runs stage after stage"
    bound = "the maximum number of partitions of keyed state: Flink's key groups, Spark's shuffle partitions, fixed by the first run"
    pods_bytes = _pods_bytes(flink)
    executors = plan.totals.executor_memory_mib + plan.pods.driver.memory_mib * plan.pods.driver.count
    cpu = plan.totals.executor_cpu_millicores + plan.pods.driver.request_cpu_millicores * plan.pods.driver.count
    every = "Flink checkpoints asynchronously at its interval; Spark at the end of each micro-batch, so the trigger also bounds the latency"
    return [
        _row(
            "job", "pods that run tasks", flink.task_managers, plan.totals.executors, "count", "max(1, ceil(parallelism / slots)) in both"
        ),
        _row("job", "task slots in all", flink.task_managers * flink.slots, slots, "count", _idle(flink)),
        _row("job", "tasks at a time", flink.parallelism, plan.tasks_at_a_time, "count", operator),
        _row("job", "max parallelism", flink.max_parallelism, shuffle_tasks(plan), "count", bound),
        _row("job", "checkpoint", flink.checkpoint_interval_ms, trigger_ms, "ms", every),
        _row("job", "memory of all pods", pods_bytes, executors * MIB, "bytes", _standby(flink)),
        _row("job", "CPU of all pods", _pods_cpu(flink), cpu, "millicores", _standby(flink)),
    ]


def task_rows(flink: FlinkJob, executor: PlannedPod, stores: int) -> list[Row]:
    """A TaskManager beside an executor.

    Args:
        flink: a job of the TaskManager.
        executor: that replaces it.
        stores: state stores of an executor for each stateful operator.
    """
    memory = flink.task_manager
    heap = executor.heap_mib * MIB
    overhead = executor.overhead_mib + executor.pyspark_mib
    free = memory.framework_off_heap_bytes + memory.task_off_heap_bytes
    return [
        _row("task", "task slots", flink.slots, executor.slots, "count", "threads of one JVM; in PySpark each also has a Python worker"),
        _row("task", "pod memory", memory.pod_mib * MIB, executor.memory_mib * MIB, "bytes", "request equals limit in both"),
        _row("task", "JVM heap", memory.heap_bytes, heap, "bytes", "-Xmx: Flink's framework and task heap; spark.executor.memory"),
        _row(
            "task",
            "heap for the engine",
            memory.framework_heap_bytes,
            min(heap, RESERVED_MIB * MIB),
            "bytes",
            "reserved: Flink's framework heap, Spark's 300 MiB",
        ),
        _row("task", "heap for tasks", memory.task_heap_bytes, unified_memory(heap).total_bytes, "bytes", _unified(heap)),
        _row(
            "task",
            "network or shuffle",
            memory.network_bytes,
            None,
            "bytes",
            "Flink's buffers; Spark shuffles through files on the node's disk",
        ),
        _state(flink, executor, stores),
        _row(
            "task",
            "off-heap",
            free,
            executor.off_heap_mib * MIB,
            "bytes",
            "Flink's direct memory; Spark's only where spark.memory.offHeap is on",
        ),
        _row("task", "metaspace", memory.metaspace_bytes, None, "bytes", "in Spark part of the overhead, without a separate limit"),
        _row("task", "overhead", memory.overhead_bytes, overhead * MIB, "bytes", _overhead_note()),
        _row("task", "CPU request", flink.task_manager_cpu_millicores, executor.request_cpu_millicores, "millicores", "of the pod"),
        _row("task", "CPU limit", flink.task_manager_cpu_limit_millicores, executor.limit_cpu_millicores, "millicores", _limit_note()),
    ]


def control_rows(flink: FlinkJob, driver: PlannedPod) -> list[Row]:
    """A JobManager beside a driver.

    Args:
        flink: a job of the JobManager.
        driver: that replaces it.
    """
    memory = flink.job_manager
    off_heap = "Flink's direct memory; in a driver only part of the overhead"
    return [
        _row(
            "control",
            "pods",
            flink.job_managers,
            driver.count,
            "count",
            "further JobManagers are on standby; a second driver must never write",
        ),
        _row("control", "pod memory", memory.pod_mib * MIB, driver.memory_mib * MIB, "bytes", "request equals limit in both"),
        _row(
            "control",
            "JVM heap",
            memory.heap_bytes,
            driver.heap_mib * MIB,
            "bytes",
            "-Xmx; the driver plans the micro-batches and runs the app",
        ),
        _row("control", "off-heap", memory.off_heap_bytes, None, "bytes", off_heap),
        _row("control", "metaspace", memory.metaspace_bytes, None, "bytes", "in Spark part of the overhead, without a separate limit"),
        _row("control", "overhead", memory.overhead_bytes, driver.overhead_mib * MIB, "bytes", "the JVM's; the driver's includes Python"),
        _row("control", "CPU request", flink.job_manager_cpu_millicores, driver.request_cpu_millicores, "millicores", "of the pod"),
        _row("control", "CPU limit", flink.job_manager_cpu_limit_millicores, driver.limit_cpu_millicores, "millicores", _limit_note()),
    ]


def _row(of: Literal["job", "task", "control"], name: str, flink: int | None, spark: int | None, unit: Unit, note: str) -> Row:
    return Row(of=of, name=name, flink=flink, spark=spark, unit=unit, note=note)


def _pods_bytes(flink: FlinkJob) -> int:
    return (flink.task_managers * flink.task_manager.pod_mib + flink.job_managers * flink.job_manager.pod_mib) * MIB


def _pods_cpu(flink: FlinkJob) -> int:
    return flink.task_managers * flink.task_manager_cpu_millicores + flink.job_managers * flink.job_manager_cpu_millicores


def _standby(flink: FlinkJob) -> str:
    return (
        f"requests, with {flink.job_managers} JobManagers and 1 driver"
        if flink.job_managers > 1
        else "requests, with JobManager and driver"
    )


def _idle(flink: FlinkJob) -> str:
    idle = flink.task_managers * flink.slots - flink.parallelism
    return (
        f"{idle:,} of them idle at a parallelism of {flink.parallelism:,}"
        if idle
        else f"all used at a parallelism of {flink.parallelism:,}"
    )


def _unified(heap: int) -> str:
    unified = unified_memory(heap)
    user = max(0, heap - RESERVED_MIB * MIB) - unified.total_bytes
    storage = _mib(unified.storage_bytes)
    return f"Spark: (heap - 300 MiB) * 0.6, {storage} of it for storage; {_mib(user)} more is user memory"


def _state(flink: FlinkJob, executor: PlannedPod, stores: int) -> Row:
    """Where the state of joins and windows is stored; state on the heap has no separate row."""
    managed, name = flink.task_manager.managed_bytes, "state store"
    if flink.state_backend == "hashmap":
        words = f"on the heap in both; Flink's managed memory of {_mib(managed)} is used only for sorting and Python"
        return _row("task", name, None, None, "bytes", words)
    overhead = executor.overhead_mib * MIB
    bound = f"managed memory is a limit, {_mib(managed // flink.slots)} per slot; Spark has none unless boundedMemoryUsage is enabled"
    words = f"{bound}: {stores:,} stores of up to {ROCKSDB_INSTANCE_MIB} MiB for each stateful operator, in an overhead of {_mib(overhead)}"
    return _row("task", name, managed, stores * ROCKSDB_INSTANCE_MIB * MIB, "bytes", words)


def shuffle_tasks(plan: Plan) -> int:
    """Tasks of a stage after a shuffle: the number of state stores per stateful operator."""
    return next((stage.tasks for stage in plan.stages if stage.kind == "shuffle"), plan.parallelism.value)


def _overhead_note() -> str:
    return "Flink's covers only the JVM; Spark's also metaspace, direct memory, Python workers and RocksDB"


def _limit_note() -> str:
    return "a Spark pod has none unless sparkConf sets it, and may use idle CPU of the node"


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"
