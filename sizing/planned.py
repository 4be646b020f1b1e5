"""The shapes that a plan consists of; `sizing.plan` fills them.

``Plan.model_dump(mode="json", by_alias=True)`` is what ``penstock size -o json`` prints. What later parts of the sizing will fill is there
already, as null, so that a reader of the JSON need not ask whether a field exists.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from sizing.executors import Stage

# Raised when a field of the JSON goes or changes its meaning; a new field is no change.
SCHEMA_VERSION = 1


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PlannedParallelism(_Planned):
    """Tasks of a stage at the same time, and where the number came from."""

    value: int
    source: Literal["spec", "code", "load"]


class Totals(_Planned):
    """Sums of the plan.

    Args:
        executors: pods that run tasks.
        pods: executors and the driver.
        executor_memory_mib: of all executor pods.
        executor_cpu_millicores: requested by all executor pods.
        subtasks: as Flink counts them, operators * parallelism.
    """

    executors: int
    pods: int
    executor_memory_mib: int
    executor_cpu_millicores: int
    subtasks: int


class PlannedPod(_Planned):
    """One kind of pod; its memory is request and limit at once.

    Args:
        count: of such pods.
        memory_mib: of one pod: heap, overhead, off-heap and Python's memory.
        heap_mib: of one pod, ``spark.<kind>.memory``.
        overhead_mib: of one pod, ``spark.<kind>.memoryOverhead``.
        off_heap_mib: of one pod.
        pyspark_mib: what Spark itself adds to one pod for Python, in cluster mode only.
        request_cpu_millicores: of one pod.
        limit_cpu_millicores: of one pod; None: no limit.
        slots: tasks of one pod at the same time; None: it runs none.
    """

    count: int
    memory_mib: int
    heap_mib: int
    overhead_mib: int
    off_heap_mib: int
    pyspark_mib: int
    request_cpu_millicores: int
    limit_cpu_millicores: int | None
    slots: int | None


class Pods(_Planned):
    """The pods of the job."""

    driver: PlannedPod
    executor: PlannedPod


class PerSlot(_Planned):
    """What one task slot has of its executor's pod, rounded down."""

    memory_mib: int
    cpu_millicores: int


class KafkaPlan(_Planned):
    """Topic -> partitions, the topics that the job reads first."""

    topics: dict[str, int]


class Explanation(_Planned):
    """Why a number of the plan is what it is.

    Args:
        number: its path in the plan's JSON.
        value: the number; None where the plan has none.
        rule: how it follows from the inputs.
        inputs: what it follows from.
    """

    number: str
    value: int | None
    rule: str
    inputs: dict[str, int | float | str]


class Plan(_Planned):
    """What the job needs.

    Args:
        schema_version: of this document.
        parallelism: tasks of a stage at the same time, as asked or as the code has it.
        totals: sums over the pods.
        pods: the pods.
        per_slot: what one task slot has.
        stages: of one micro-batch, as Spark runs them.
        tasks_at_a_time: the most tasks that run at the same time.
        spark_conf: every setting that Spark is started with, the user's own among them.
        kafka: the topics.
        nodes: not planned yet.
        cost: not planned yet.
        state: not planned yet.
        feasible: whether all targets are met.
        violations: why not, each as an error's JSON.
        notes: what a reader should know, in sentences.
        explain: each number with the rule and the inputs behind it.
    """

    schema_version: int = SCHEMA_VERSION
    parallelism: PlannedParallelism
    totals: Totals
    pods: Pods
    per_slot: PerSlot
    stages: tuple[Stage, ...]
    tasks_at_a_time: int
    spark_conf: dict[str, str]
    kafka: KafkaPlan
    nodes: None = None
    cost: None = None
    state: None = None
    feasible: bool
    violations: tuple[dict[str, str | int | None], ...] = ()
    notes: tuple[str, ...] = ()
    explain: tuple[Explanation, ...] = ()
