"""From targets to the plan, in one pure function."""

from __future__ import annotations

from sizing.agreement import AgreedPod, agreed_driver, agreed_executor, heap_contradiction, plan_contradictions
from sizing.errors import Infeasible, PenstockError, raise_all
from sizing.executors import executor_count, stages, subtasks, task_slots, tasks_at_a_time
from sizing.explanation import explain
from sizing.feasibility import memory_violations
from sizing.kafka import read_partitions, topic_partitions
from sizing.notes import plan_notes
from sizing.planned import KafkaPlan, PerSlot, Plan, PlannedParallelism, PlannedPod, Pods, Totals
from sizing.spark_conf import planned_conf
from sizing.spark_pods import PodMemory, driver_memory, executor_memory, fit_driver, fit_executor
from sizing.spark_settings import SparkSettings, settings_of
from sizing.targets import Targets


def plan(targets: Targets) -> Plan:
    """Works out the plan.

    Returns:
        The plan. Where a target can't be met it is not `feasible`: it shows the nearest that Spark would make, with SIZ-004 (the heap is
        too small) or SIZ-005 (a factor that no pod of this size meets) among its `violations`.

    Raises:
        PenstockError: SIZ-001, SIZ-002, SIZ-003 or SIZ-006; several come as `Faults`.
    """
    settings, unreadable = settings_of(targets)
    raise_all(unreadable)
    executor, executor_faults = agreed_executor(targets, settings)
    driver, driver_faults = agreed_driver(targets, settings)
    slots = max(1, task_slots(executor.cores, settings.task_cpus))
    count = executor_count(targets.parallelism.value, slots)
    executor_pod, driver_pod = _executor_memory(executor, settings), _driver_memory(driver, settings)
    conflicts = [
        *plan_contradictions(targets, settings, count),
        *_heap_conflicts(targets, "executor", executor, executor_pod, settings),
        *_heap_conflicts(targets, "driver", driver, driver_pod, settings),
    ]
    raise_all([*executor_faults, *driver_faults, *conflicts])
    violations = [
        *memory_violations(targets, "executor", executor, executor_pod, settings),
        *memory_violations(targets, "driver", driver, driver_pod, settings),
    ]
    pods = Pods(driver=_pod(driver, driver_pod, 1, None), executor=_pod(executor, executor_pod, count, slots))
    draft = _assemble(targets, settings, pods, planned_conf(targets, settings, executor, driver, pods), violations)
    return draft.model_copy(update={"notes": plan_notes(targets, settings, draft), "explain": explain(targets, settings, draft)})


def _executor_memory(agreed: AgreedPod, settings: SparkSettings) -> PodMemory:
    if agreed.heap_mib is not None:
        return executor_memory(settings, agreed.heap_mib)
    assert agreed.memory_mib is not None
    return fit_executor(settings, agreed.memory_mib)


def _driver_memory(agreed: AgreedPod, settings: SparkSettings) -> PodMemory:
    if agreed.heap_mib is not None:
        return driver_memory(settings, agreed.heap_mib)
    assert agreed.memory_mib is not None
    return fit_driver(settings, agreed.memory_mib)


def _heap_conflicts(targets: Targets, kind: str, agreed: AgreedPod, memory: PodMemory, settings: SparkSettings) -> list[PenstockError]:
    own = settings.executor if kind == "executor" else settings.driver
    return [] if agreed.memory_mib is None else heap_contradiction(targets, kind, own, memory.heap_mib)


def _pod(agreed: AgreedPod, memory: PodMemory, count: int, slots: int | None) -> PlannedPod:
    return PlannedPod(
        count=count,
        memory_mib=memory.total_mib,
        heap_mib=memory.heap_mib,
        overhead_mib=memory.overhead_mib,
        off_heap_mib=memory.off_heap_mib,
        pyspark_mib=memory.pyspark_mib,
        request_cpu_millicores=agreed.request_cpu_millicores,
        limit_cpu_millicores=agreed.limit_cpu_millicores,
        slots=slots,
    )


def _assemble(targets: Targets, settings: SparkSettings, pods: Pods, conf: dict[str, str], violations: list[Infeasible]) -> Plan:
    executor, parallelism = pods.executor, targets.parallelism.value
    slots = executor.slots or 1
    planned_stages = stages(read_partitions(targets), settings.shuffle_partitions or parallelism)
    return Plan(
        parallelism=PlannedParallelism(value=parallelism, source=targets.parallelism.source),
        totals=Totals(
            executors=executor.count,
            pods=executor.count + pods.driver.count,
            executor_memory_mib=executor.count * executor.memory_mib,
            executor_cpu_millicores=executor.count * executor.request_cpu_millicores,
            subtasks=subtasks(targets.operators.count, parallelism),
        ),
        pods=pods,
        per_slot=PerSlot(memory_mib=executor.memory_mib // slots, cpu_millicores=executor.request_cpu_millicores // slots),
        stages=planned_stages,
        tasks_at_a_time=tasks_at_a_time(executor.count * slots, planned_stages),
        spark_conf=conf,
        kafka=KafkaPlan(topics=topic_partitions(targets)),
        feasible=not violations,
        violations=tuple(violation.as_json() for violation in violations),
    )
