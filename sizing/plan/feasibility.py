"""Feasibility of the targets. What is infeasible is a violation of the plan, with the nearest feasible value."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sizing.errors import ExecutorsIdle, HeapTooSmall, PodNotMet, TooFewPartitions
from penstock.sizing.plan.agreement import AgreedPod
from penstock.sizing.planned import Plan
from penstock.sizing.spark_pods import MIN_HEAP_MIB, PodMemory, planned_driver, planned_executor
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.targets import Targets
from penstock.sizing.violation import Violation, violated


def memory_violations(targets: Targets, kind: str, agreed: AgreedPod, memory: PodMemory, settings: SparkSettings) -> list[Violation]:
    """SIZ-004 if the heap is below Spark's minimum, SIZ-005 if no heap makes the pod exactly as large as requested.

    Args:
        targets: for the places.
        kind: ``executor`` or ``driver``.
        agreed: requested resources of that kind.
        memory: computed memory.
        settings: with the user's overhead or factor.
    """
    field = f"{kind}.memory_mib" if agreed.heap_mib is None else f"{kind}.heap_mib"
    pod_of = _rule(kind, settings)
    if memory.heap_mib < MIN_HEAP_MIB:
        return [targets.located(_too_small(agreed, memory, pod_of), field)]
    if agreed.memory_mib is not None and memory.total_mib != agreed.memory_mib:
        return [targets.located(_not_met(agreed.memory_mib, memory, pod_of), field)]
    return []


def _rule(kind: str, settings: SparkSettings) -> Callable[[int], PodMemory]:
    rule = planned_executor if kind == "executor" else planned_driver
    return lambda heap_mib: rule(settings, heap_mib)


def _too_small(agreed: AgreedPod, memory: PodMemory, pod_of: Callable[[int], PodMemory]) -> Violation:
    least = f"a heap of at least {MIN_HEAP_MIB} MiB"
    if agreed.memory_mib is None:
        return violated(HeapTooSmall, given=f"{memory.heap_mib}m", need=least, fix=f'heap: "{MIN_HEAP_MIB}m" or more')
    needed = pod_of(MIN_HEAP_MIB).total_mib
    need = f"{least}, which requires a pod of {needed} MiB with overhead; {agreed.memory_mib} MiB leave a heap of {memory.heap_mib} MiB"
    return violated(HeapTooSmall, given=f"{agreed.memory_mib}m", need=need, fix=f'memory: "{needed}m" or more')


def _not_met(asked_mib: int, memory: PodMemory, pod_of: Callable[[int], PodMemory]) -> Violation:
    below, above = memory.total_mib, pod_of(memory.heap_mib + 1).total_mib
    need = f"a pod size that the factor can reach exactly: {below} MiB (heap {memory.heap_mib}) or {above} MiB (heap {memory.heap_mib + 1})"
    fix = f'memory: "{below}m" or "{above}m", or an absolute memoryOverhead instead of the factor'
    return violated(PodNotMet, given=f"{asked_mib}m", need=need, fix=fix)


def partition_violations(targets: Targets, draft: Plan) -> list[Violation]:
    """SIZ-015 if the topics together have fewer partitions than the parallelism, SIZ-016 if entire executors have no task.

    With a load, SIZ-048 covers the number of partitions.

    Args:
        targets: for the places.
        draft: the plan.
    """
    parallelism = draft.parallelism.value
    read = sum(stage.tasks for stage in draft.stages if stage.kind == "read")
    if targets.load is None and targets.source_topics and not targets.stages.source and read < parallelism:
        need = f"as many partitions as the parallelism, {parallelism}; the source topics have {read} in total"
        fix = f"a parallelism of {read}, or {parallelism} partitions"
        return [targets.located(violated(TooFewPartitions, given=str(parallelism), need=need, fix=fix), "parallelism")]
    slots = draft.pods.executor.slots or 1
    busy = -(-draft.tasks_at_a_time // slots)
    if busy < draft.totals.executors:
        most = draft.tasks_at_a_time
        need = f"{draft.totals.executors * slots} tasks at a time; no stage has more than {most}, enough for {busy} executors"
        fewer = "" if targets.load is not None else f"a parallelism of {busy * slots}, or "
        fix = f"{fewer}spark.sql.shuffle.partitions of {parallelism}"
        return [targets.located(violated(ExecutorsIdle, given=str(parallelism), need=need, fix=fix), "parallelism")]
    return []
