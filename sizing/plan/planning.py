"""From targets to the plan, as a pure function."""

from __future__ import annotations

from penstock.sizing.cluster import Cluster
from penstock.sizing.driver import DriverNeeds, driver_needs, remembered_stages
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.executors import Stage, executor_count, stages, subtasks, task_slots, tasks_at_a_time
from penstock.sizing.file_splits import FilesRead, files_read
from penstock.sizing.load.parallelism import needed_partitions
from penstock.sizing.plan.agreement import AgreedPod, agreed_driver, agreed_executor, heap_contradiction, plan_contradictions
from penstock.sizing.plan.cluster_plan import ClusterPlan, plan_in_cluster
from penstock.sizing.plan.decided import decided
from penstock.sizing.plan.explanation import explain
from penstock.sizing.plan.feasibility import memory_violations, partition_violations
from penstock.sizing.plan.job_load import JobLoad, load_of
from penstock.sizing.plan.job_pods import selector_faults
from penstock.sizing.plan.job_state import planned_state
from penstock.sizing.plan.needed_overhead import needed_overhead
from penstock.sizing.plan.needed_storage import needed_storage, with_storage
from penstock.sizing.plan.needed_throughput import needed_throughput
from penstock.sizing.plan.notes import plan_notes
from penstock.sizing.plan.plan_range import ends_of, plan_range
from penstock.sizing.plan.read_limit import read_limit
from penstock.sizing.plan.settings import settings_of
from penstock.sizing.plan.spark_conf import planned_conf
from penstock.sizing.plan.spot_defaults import with_spot_defaults
from penstock.sizing.planned import KafkaPlan, PerSlot, Plan, PlannedParallelism, PlannedPod, Pods, Totals
from penstock.sizing.spark_pods import PodMemory, driver_memory, executor_memory, fit_driver, fit_executor, planned_driver
from penstock.sizing.spark_settings import RETAINED_STAGES, RETAINED_STAGES_KEY, SparkSettings
from penstock.sizing.targets import DecidedTargets, Targets
from penstock.sizing.violation import Violation


def plan(targets: Targets, cluster: Cluster | None = None) -> Plan:
    """Computes the plan.

    Args:
        targets: requirements of the job.
        cluster: the environment to run in; None: only pods are planned, without nodes and cost.

    Returns:
        The plan. If a target is infeasible, the plan is not `feasible`: it shows what Spark and Karpenter would create, with the binding
        constraints among its `violations`: SIZ-004 and SIZ-005 for memory, SIZ-010 to SIZ-018 for nodes and partitions, SIZ-040 to
        SIZ-048 for a load.

    Raises:
        PenstockError: SIZ-001, SIZ-002, SIZ-003, SIZ-006 or SIZ-042; several are raised as `Faults`.
    """
    planned, ends = _whole(targets, cluster), ends_of(targets)
    if ends is None:
        return planned
    try:
        fast, slow = (_whole(end, cluster) for end in ends)
    except PenstockError:
        # Spark has no such executor: the plan itself stands.
        return planned
    return planned.model_copy(update={"range": plan_range(fast, planned, slow)})


def _whole(targets: Targets, cluster: Cluster | None) -> Plan:
    targets = with_spot_defaults(targets, cluster)
    settings, unreadable = settings_of(targets)
    # With invalid settings the executor for a load cannot be computed.
    raise_all([*unreadable, *selector_faults(targets)] if unreadable else [])
    ready, settings, faults = decided(targets, settings)
    raise_all([*faults, *selector_faults(targets)])
    return _planned(ready, settings, cluster)


def _planned(targets: DecidedTargets, settings: SparkSettings, cluster: Cluster | None) -> Plan:
    """The plan of targets without undecided values."""
    executor, executor_faults = agreed_executor(targets, settings)
    slots = max(1, task_slots(executor.cores, settings.task_cpus))
    count = executor_count(targets.parallelism.value, slots)
    files = _files(targets, settings, count * executor.cores, count * slots)
    needs = driver_needs(_stages(targets, settings, _read_partitions(targets), files), targets.queries, settings)
    driver, driver_faults = agreed_driver(targets, settings, planned_driver(settings, needs.heap_mib).total_mib)
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
    pods = Pods(
        driver=_pod(driver, driver_pod, 1, None),
        executor=_pod(executor, executor_pod, count, slots),
        executor_spread=targets.executor.spread,
    )
    load = load_of(targets, settings, pods.executor, cluster)
    planned_stages = _stages(targets, settings, load.plan.topic_partitions if load else _read_partitions(targets), files)
    chosen = {**(load.state_conf if load else {}), **_status_conf(planned_stages, settings)}
    conf = planned_conf(targets, settings, executor, driver, pods, chosen)
    draft = _assemble(targets, settings, pods, conf, load, planned_stages, needs).model_copy(update={"files": files})
    violations += [*partition_violations(targets, draft), *(load.violations if load else [])]
    return _finished(targets, settings, draft, violations, load, cluster)


def _finished(
    targets: DecidedTargets,
    settings: SparkSettings,
    draft: Plan,
    violations: list[Violation],
    load: JobLoad | None,
    cluster: Cluster | None,
) -> Plan:
    """The draft with its nodes and notes."""
    in_cluster = plan_in_cluster(targets, settings, draft, cluster) if cluster is not None else ClusterPlan()
    every = [*violations, *in_cluster.violations]
    whole = draft.model_copy(
        update={
            "nodes": in_cluster.nodes,
            "cost": in_cluster.cost,
            "spot": in_cluster.spot,
            "feasible": not every,
            "violations": tuple(every),
        }
    )
    notes = (*plan_notes(targets, settings, whole), *(load.notes if load else ()), *in_cluster.notes)
    return whole.model_copy(update={"notes": notes, "explain": explain(targets, settings, whole, load)})


def _read_partitions(targets: DecidedTargets) -> dict[str, int]:
    """Topic -> partitions: as requested, otherwise those for the load, otherwise one per task that reads it, by default the parallelism."""
    source, parallelism = targets.stages.source, targets.parallelism.value
    if targets.load is not None:
        parallelism = needed_partitions(targets.load, parallelism).partitions
        source = {}
    return {topic: asked or source.get(topic, parallelism) for topic, asked in targets.source_topics.items()}


def _files(targets: DecidedTargets, settings: SparkSettings, cores: int, slots: int) -> dict[str, FilesRead]:
    """Source of files -> the stage that reads them, of those whose files are known."""
    return {name: files_read(given, settings, cores, slots) for name, given in targets.files.items() if given is not None}


def _stages(targets: DecidedTargets, settings: SparkSettings, read: dict[str, int], files: dict[str, FilesRead]) -> tuple[Stage, ...]:
    shuffle, splits = settings.shuffle_partitions or targets.parallelism.value, {name: one.tasks for name, one in files.items()}
    return stages(read, shuffle, readers=targets.stages.source, stateless=targets.stages.stateless, files=splits)


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


def _status_conf(planned: tuple[Stage, ...], settings: SparkSettings) -> dict[str, str]:
    """The limit of the stages that the driver remembers, where it is below Spark's own."""
    kept = remembered_stages(planned, settings)
    return {RETAINED_STAGES_KEY: str(kept)} if kept < RETAINED_STAGES else {}


def _assemble(
    targets: DecidedTargets,
    settings: SparkSettings,
    pods: Pods,
    conf: dict[str, str],
    load: JobLoad | None,
    planned_stages: tuple[Stage, ...],
    needs: DriverNeeds,
) -> Plan:
    executor, parallelism = pods.executor, targets.parallelism.value
    slots = executor.slots or 1
    read = load.plan.topic_partitions if load else _read_partitions(targets)
    state = planned_state(targets, settings, settings.shuffle_partitions or parallelism, load.plan if load else None)
    limit = read_limit(targets, executor, load.throughput if load else None)
    storage = needed_storage(targets, executor, state, limit)
    return Plan(
        parallelism=PlannedParallelism(value=parallelism, source=targets.parallelism.source),
        totals=Totals(
            executors=executor.count,
            pods=executor.count + pods.driver.count,
            executor_memory_mib=executor.count * executor.memory_mib,
            executor_cpu_millicores=executor.count * executor.request_cpu_millicores,
            subtasks=subtasks(targets.operators.count, parallelism),
        ),
        pods=with_storage(pods, targets, storage),
        per_slot=PerSlot(memory_mib=executor.memory_mib // slots, cpu_millicores=executor.request_cpu_millicores // slots),
        executor_overhead=needed_overhead(targets, executor, load.plan if load else None),
        driver_needs=needs,
        executor_storage=storage.executor,
        driver_storage=storage.driver,
        executor_disk=needed_throughput(targets, settings, executor, state, load.throughput if load else None, planned_stages, limit),
        stages=planned_stages,
        tasks_at_a_time=tasks_at_a_time(executor.count * slots, planned_stages),
        spark_conf=conf,
        kafka=KafkaPlan(topics={**read, **targets.sink_topics}, load=load.plan.kafka if load else None),
        state=state,
        throughput=load.throughput if load else None,
        read_limit=limit,
        feasible=True,
    )
