"""The shapes that a plan consists of; `penstock.sizing.plan` fills them.

``Plan.model_dump(mode="json", by_alias=True)`` is what ``penstock size -o json`` prints. What can't be said of a job is null, so that a
reader of the JSON need not ask whether a field exists.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.billed import Bill
from penstock.sizing.executors import Stage
from penstock.sizing.explained import Explanation
from penstock.sizing.load.capability import Capability
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.load.spot_loss import DrainOutcome, LossOutcome
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.state.stores import Backend
from penstock.sizing.violation import Violation

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
    """What the job asks of Kafka.

    Args:
        topics: topic -> partitions, the topics that the job reads first.
        load: rates, and the cluster that carries them; None: no load is given.
    """

    topics: dict[str, int]
    load: LoadKafka | None = None


class StatePlan(_Planned):
    """The state of the job, and the checkpoint that keeps it.

    Args:
        backend: ``memory`` or ``rocksdb``.
        stores: state stores of the query.
        state_bytes: one version of it; None: no load says how much there is.
        executor_heap_mib: what of an executor's heap it takes; None: as `state_bytes`.
        executor_native_mib: what of an executor's overhead it takes; None: as `state_bytes`.
        checkpoint: what is written.
    """

    backend: Backend
    stores: int
    state_bytes: int | None = None
    executor_heap_mib: int | None = None
    executor_native_mib: int | None = None
    checkpoint: CheckpointTraffic


class ThroughputPlan(_Planned):
    """What the load takes, and what the plan can do.

    Args:
        peak_events_per_s: of the load.
        target_events_per_s: what the slots must be able to process, so that a restart is caught up with in time.
        max_offsets_per_trigger: of all topics together; None: a bounded run takes all there is.
        trigger_s: from one micro-batch to the next; None: a bounded run.
        capability: what the plan sustains, and how fast it catches up.
    """

    peak_events_per_s: float
    target_events_per_s: int
    max_offsets_per_trigger: int | None
    trigger_s: float | None
    capability: Capability


class SpotPlan(_Planned):
    """What the loss of spot nodes does to the job.

    Args:
        nodes: that executors run on, as spot.
        drain: whether an executor ends its tasks before its node is gone; the longest task is taken to be a whole trigger. None: a bounded
            run, of whose tasks nobody knows how long they take.
        losses: for one node lost, for two and so on up to all; none without a load.
    """

    nodes: int
    drain: DrainOutcome | None
    losses: tuple[LossOutcome, ...] = ()


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
        nodes: which Karpenter makes; None: the environment has no cluster.
        cost: of the job alone in its environment; None: as `nodes`, or no prices of the region are known.
        state: of the job, and its checkpoint.
        throughput: what the load takes and what the plan can do; None: no load is given.
        spot: what the loss of spot nodes does; None: no executor runs on one.
        feasible: whether all targets are met.
        violations: why not.
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
    nodes: NodesPlan | None = None
    cost: Bill | None = None
    state: StatePlan
    throughput: ThroughputPlan | None = None
    spot: SpotPlan | None = None
    feasible: bool
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    explain: tuple[Explanation, ...] = ()
