"""Notes of a plan, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.driver import DriverNeeds
from penstock.sizing.ephemeral_storage import StorageNeeds
from penstock.sizing.overhead import ExecutorOverhead
from penstock.sizing.planned import Plan
from penstock.sizing.spark_pods import SAFE_HEAP_MIB
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.targets import Targets


def plan_notes(targets: Targets, settings: SparkSettings, draft: Plan) -> tuple[str, ...]:
    """The notes of the targets, then those of the plan itself."""
    return (
        *targets.notes,
        *_queries(targets),
        *_default_driver(targets, settings, draft),
        *_slots(draft),
        *_preferred_spread(draft),
        *_few_partitions(targets, draft),
        *_files(targets, draft),
        *_fixed_shuffle(settings, draft),
        *_python_memory(settings, draft),
        *_small_overhead(draft),
        *_small_driver(draft),
        *_small_storage(draft),
        *_small_heap(draft),
    )


def overhead_text(parts: ExecutorOverhead) -> str:
    """What an executor's overhead has to hold: ``384 for the JVM, 500 for RocksDB, 630 for 4 Python workers, 19 for Arrow's batches``."""
    workers = "1 Python worker" if parts.python_workers == 1 else f"{parts.python_workers} Python workers"
    each = {"the JVM": parts.jvm_mib, "RocksDB": parts.rocksdb_mib, workers: parts.python_mib, "Arrow's batches": parts.arrow_mib}
    return ", ".join(f"{mib:,} for {what}" for what, mib in each.items() if mib)


def driver_text(needs: DriverNeeds) -> str:
    """What a driver's heap has to hold."""
    return f"{needs.batch_tasks:,} tasks of a micro-batch and {needs.remembered_tasks:,} of earlier ones that Spark's status store keeps"


def _queries(targets: Targets) -> Iterator[str]:
    if targets.queries > 1:
        yield f"{targets.queries} queries in one driver: a topic that all of them read is read {targets.queries} times"


def _default_driver(targets: Targets, settings: SparkSettings, draft: Plan) -> Iterator[str]:
    asked = targets.driver
    if asked.memory_mib is None and asked.heap_mib is None and settings.driver.heap_mib is None:
        yield f"the driver's memory is not set: its pod gets {draft.pods.driver.memory_mib} MiB"


def _slots(draft: Plan) -> Iterator[str]:
    total = draft.totals.executors * (draft.pods.executor.slots or 1)
    if draft.tasks_at_a_time < total:
        yield f"{total} slots, {draft.tasks_at_a_time} used: the others are idle"
    wide = [stage for stage in draft.stages if stage.tasks > total]
    for stage in wide:
        yield f"{stage.name}: {stage.tasks} tasks run in several waves on {total} slots"


def _preferred_spread(draft: Plan) -> Iterator[str]:
    spread = draft.pods.executor_spread
    preferred = [] if spread is None else [name for name in ("nodes", "zones") if getattr(spread, name) == "preferred"]
    if preferred:
        asked = " and ".join(f"spread.{name}: preferred" for name in preferred)
        yield f"{asked}: Karpenter spreads the executors as if it were required, except those that would then have no node"


def _few_partitions(targets: Targets, draft: Plan) -> Iterator[str]:
    for stage in draft.stages:
        topic = stage.name.removeprefix("read ")
        if stage.kind == "read" and topic not in targets.stages.source and stage.tasks < draft.parallelism.value:
            yield f"topic {topic} has {stage.tasks} partitions, so only {stage.tasks} of {draft.parallelism.value} tasks read it"


def _files(targets: Targets, draft: Plan) -> Iterator[str]:
    for name, given in targets.files.items():
        if given is None:
            yield f"the read of {name} is not planned: the number and size of its files are not known"
        elif (tasks := draft.files[name].tasks) < draft.parallelism.value:
            yield f"{name} is read by {tasks} of {draft.parallelism.value} tasks: its files make no more partitions"


def _fixed_shuffle(settings: SparkSettings, draft: Plan) -> Iterator[str]:
    """Only where it may change unnoticed, with the load: a number in the spec is changed by its author."""
    if draft.parallelism.source == "load" and draft.state.stores and settings.shuffle_partitions is None:
        number = draft.parallelism.value
        yield (
            f"the state of a new job gets {number} shuffle partitions, and keeps them when the load changes: its checkpoint fixes them; "
            f"stages.stateful: {number} states that in the spec"
        )


def _python_memory(settings: SparkSettings, draft: Plan) -> Iterator[str]:
    if not settings.pyspark_mib or settings.deploy_mode == "cluster":
        return
    executor = draft.pods.executor
    yield (
        f"spark.executor.pyspark.memory is part of the overhead, as Spark adds it only in cluster mode; "
        f"there, the pod would have {executor.memory_mib + settings.pyspark_mib} MiB"
    )
    if settings.pyspark_mib > executor.overhead_mib:
        yield f"the Python workers may use {settings.pyspark_mib} MiB, but the overhead that contains them has {executor.overhead_mib} MiB"


def _small_overhead(draft: Plan) -> Iterator[str]:
    executor, parts = draft.pods.executor, draft.executor_overhead
    has_mib = executor.overhead_mib + executor.pyspark_mib
    if has_mib < parts.needed_mib:
        yield (
            f"the executor's overhead of {has_mib:,} MiB is less than the {parts.needed_mib:,} MiB that it may need: {overhead_text(parts)}"
        )


def _small_driver(draft: Plan) -> Iterator[str]:
    heap_mib, needs = draft.pods.driver.heap_mib, draft.driver_needs
    if heap_mib < needs.heap_mib:
        yield (f"the driver's heap of {heap_mib:,} MiB is less than the {needs.heap_mib:,} MiB that it may need for {driver_text(needs)}")


def storage_text(needs: StorageNeeds) -> str:
    """What a pod's ephemeral storage has to hold: ``762 for state, 1,221 for shuffles, 1,124 for files and logs``."""
    files_mib = needs.uploads_mib + needs.files_mib + needs.logs_mib
    parts = {"state": needs.state_mib, "shuffles": needs.shuffle_mib, "spilled rows": needs.spill_mib, "files and logs": files_mib}
    return ", ".join(f"{mib:,} for {what}" for what, mib in parts.items() if mib)


def _small_storage(draft: Plan) -> Iterator[str]:
    pods = draft.pods
    for kind, pod, needs in (("executor", pods.executor, draft.executor_storage), ("driver", pods.driver, draft.driver_storage)):
        if pod.request_ephemeral_storage_mib < needs.needed_mib:
            given = f"the {kind}'s ephemeral storage of {pod.request_ephemeral_storage_mib:,} MiB"
            yield f"{given} is less than the {needs.needed_mib:,} MiB that it may need: {storage_text(needs)}"


def _small_heap(draft: Plan) -> Iterator[str]:
    for kind, pod in (("executor", draft.pods.executor), ("driver", draft.pods.driver)):
        if draft.feasible and pod.heap_mib < SAFE_HEAP_MIB:
            yield (
                f"the {kind}'s heap of {pod.heap_mib} MiB suffices only with -XX:+UseG1GC: with other collectors, the JVM reports less, "
                f"and Spark does not start; {SAFE_HEAP_MIB} MiB suffice with any collector"
            )
