"""From the targets of a job to what planning for its load takes."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible
from penstock.sizing.executors import task_slots
from penstock.sizing.load.feasibility import load_violations
from penstock.sizing.load.job_shape import JobShape, KafkaChoice
from penstock.sizing.load.load_plan import ExecutorMemory, LoadPlan
from penstock.sizing.load.planning import plan_load
from penstock.sizing.spark_settings import settings_of
from penstock.sizing.targets import Targets

# What a violation is about -> the field of the targets that says where it stands; of Kafka nothing stands in a spec.
_FIELDS = {
    "load": "load",
    "topics": "load",
    "parallelism": "parallelism",
    "trigger": "trigger_s",
    "executor.heap": "executor.heap_mib",
    "executor.memory": "executor.memory_mib",
}


def shape_of(
    targets: Targets,
    *,
    slots_per_executor: int,
    shuffle_partitions: int | None = None,
    heap_mib: int | None = None,
    overhead_mib: int | None = None,
    kafka: KafkaChoice | None = None,
) -> JobShape:
    """What of a job is fixed before its load is planned for.

    Args:
        targets: of the job; a parallelism of its code is fixed, one that came from the load is not.
        slots_per_executor: task slots of one.
        shuffle_partitions: of sparkConf; None: the parallelism.
        heap_mib: of the executor that was planned; None where the load decides on it.
        overhead_mib: likewise.
        kafka: of the environment; None: no brokers are planned.
    """
    return JobShape(
        slots_per_executor=slots_per_executor,
        topics=targets.source_topics,
        written_partitions=sum(targets.sink_topics.values()),
        parallelism=None if targets.parallelism.source == "load" else targets.parallelism.value,
        shuffle_partitions=shuffle_partitions,
        trigger_s=targets.trigger_s,
        heap_mib=heap_mib,
        overhead_mib=overhead_mib,
        backend=targets.state_backend,
        app_operators=targets.stateful_operators,
        incremental=targets.state_incremental,
        kafka=kafka or KafkaChoice(kind="none"),
    )


def memory_for_load(targets: Targets) -> ExecutorMemory | None:
    """The memory that an executor needs for the load of the targets; None without a load, or where a setting can't be read.

    Args:
        targets: their executor's memory does not matter.
    """
    settings, unreadable = settings_of(targets)
    if targets.load is None or unreadable:
        return None
    # Here, for the package of planning imports this module.
    from penstock.sizing.plan.agreement import agreed_executor

    agreed, _ = agreed_executor(targets, settings)
    slots = max(1, task_slots(agreed.cores, settings.task_cpus))
    shape = shape_of(targets, slots_per_executor=slots, shuffle_partitions=settings.shuffle_partitions)
    return plan_load(targets.load, shape).memory


def located_violations(targets: Targets, shape: JobShape, planned: LoadPlan) -> list[Infeasible]:
    """What of the load a plan does not carry, each with its place in the document; none without a load."""
    if targets.load is None:
        return []
    found = load_violations(targets.load, shape, planned)
    for fault in found:
        origin = targets.origins.get(_FIELDS.get(fault.path, ""))
        if origin is not None:
            # What is at fault is the number that the violation names, not all that stands at the place.
            fault.at, fault.path = origin.at, origin.path
    return found
