"""The models that make up a plan; computed by `penstock.sizing.plan`.

``Plan.model_dump(mode="json", by_alias=True)`` is the output of ``penstock size -o json``. Values that do not apply to a job are null,
so that consumers of the JSON need not test whether a field exists.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.usd import UsdRange
from penstock.sizing.disk_throughput import DiskThroughput
from penstock.sizing.driver import DriverNeeds
from penstock.sizing.ephemeral_storage import StorageNeeds
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.executors import Stage
from penstock.sizing.explained import Explanation
from penstock.sizing.file_splits import FilesRead
from penstock.sizing.load.capability import Capability
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.load.spot_loss import DrainOutcome, LossOutcome
from penstock.sizing.load.spread import Spread
from penstock.sizing.overhead import ExecutorOverhead
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.state.stores import Backend
from penstock.sizing.violation import Violation

# Incremented when a field of the JSON is removed or changes its meaning; adding a field does not change it.
SCHEMA_VERSION = 1


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PlannedParallelism(_Planned):
    """Concurrent tasks of a stage, and the source of the number."""

    value: int
    source: Literal["spec", "environment", "code", "load"]


class Totals(_Planned):
    """Totals of the plan.

    Args:
        executors: executor pods.
        pods: executors and the driver.
        executor_memory_mib: memory of all executor pods.
        executor_cpu_millicores: CPU requests of all executor pods.
        subtasks: as Flink counts them, operators * parallelism.
    """

    executors: int
    pods: int
    executor_memory_mib: int
    executor_cpu_millicores: int
    subtasks: int


class PlannedPod(_Planned):
    """One kind of pod; its memory is both request and limit.

    Args:
        count: number of these pods.
        memory_mib: memory of one pod: heap, overhead, off-heap and Python's memory.
        heap_mib: heap of one pod, ``spark.<kind>.memory``.
        overhead_mib: overhead of one pod, ``spark.<kind>.memoryOverhead``.
        off_heap_mib: off-heap memory of one pod.
        pyspark_mib: memory that Spark adds to one pod for Python, in cluster mode only.
        request_cpu_millicores: CPU request of one pod.
        limit_cpu_millicores: CPU limit of one pod; None: no limit.
        slots: concurrent tasks of one pod; None: it runs no tasks.
        request_ephemeral_storage_mib: ephemeral storage that one pod requests.
        limit_ephemeral_storage_mib: its limit; None: no limit.
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
    request_ephemeral_storage_mib: int = 0
    limit_ephemeral_storage_mib: int | None = None


class Pods(_Planned):
    """The pods of the job.

    Args:
        driver: the driver.
        executor: the executors.
        executor_spread: how the executors are spread over nodes and zones; None: not at all.
    """

    driver: PlannedPod
    executor: PlannedPod
    executor_spread: ExecutorSpread | None = None


class PerSlot(_Planned):
    """One task slot's share of its executor's pod, rounded down."""

    memory_mib: int
    cpu_millicores: int


class KafkaPlan(_Planned):
    """The job's requirements on Kafka.

    Args:
        topics: topic -> partitions, topics that the job reads first.
        load: rates, and the cluster that carries them; None: no load.
    """

    topics: dict[str, int]
    load: LoadKafka | None = None


class StatePlan(_Planned):
    """The state of the job, and its checkpoint.

    Args:
        backend: ``memory`` or ``rocksdb``.
        stores: state stores of the query.
        state_bytes: size of one version; None: unknown without a load.
        executor_heap_mib: heap that it uses on one executor; None: see `state_bytes`.
        executor_native_mib: overhead that it uses on one executor; None: see `state_bytes`.
        checkpoint: checkpoint traffic.
    """

    backend: Backend
    stores: int
    state_bytes: int | None = None
    executor_heap_mib: int | None = None
    executor_native_mib: int | None = None
    checkpoint: CheckpointTraffic


class ThroughputPlan(_Planned):
    """The requirements of the load, and the capability of the plan.

    Args:
        peak_events_per_s: peak rate of the load.
        target_events_per_s: required throughput of the slots to catch up in time after a restart.
        max_offsets_per_trigger: for all topics together; None: a bounded run reads everything available.
        trigger_s: trigger interval; None: a bounded run.
        capability: the load that the plan sustains, and how fast it catches up.
        basis: where the throughput of the slots is from: ``assumed``, measured at ``points``, or ``measured`` by `penstock profile`.
        basis_text: the same, for people.
        profile_changes: what of the job has changed since it was measured: ``app``, ``spec``.
        events_per_slot_per_s: measured events per second of one slot, as planned; None: not measured for one slot.
    """

    peak_events_per_s: float
    target_events_per_s: int
    max_offsets_per_trigger: int | None
    trigger_s: float | None
    capability: Capability
    basis: Literal["assumed", "points", "measured"] = "assumed"
    basis_text: str = ""
    profile_changes: tuple[Literal["app", "spec"], ...] = ()
    events_per_slot_per_s: Spread | None = None


class RangeEnd(_Planned):
    """A plan at an end of the spread of a measured profile.

    Args:
        parallelism: concurrent tasks of a stage.
        executors: their number.
        nodes: after a first start; None: the environment has no cluster.
        usd_per_month: cost of the job; None: as with `nodes`, or prices are unknown.
        feasible: whether all targets are met.
    """

    parallelism: int
    executors: int
    nodes: int | None
    usd_per_month: UsdRange | None
    feasible: bool


class PlanRange(_Planned):
    """What the spread of a measured profile means for the plan.

    Args:
        low: where a slot processes as much as at the profile's fast end.
        typical: the plan itself.
        high: where a slot processes as little as at its slow end.
    """

    low: RangeEnd
    typical: RangeEnd
    high: RangeEnd


class ReadLimit(_Planned):
    """The most records that a micro-batch reads, divided among the Kafka sources by their partitions; a source's own limit overrides it.

    Args:
        records: of all topics together.
        binding: ``load``: what the slots process of the load within a trigger; ``time``: what they read at best in a trigger, of at least
            ten seconds; ``memory``: what fits into the executors' memory.
    """

    records: int
    binding: Literal["load", "time", "memory"]


class SpotPlan(_Planned):
    """The effect on the job when spot nodes are lost.

    Args:
        nodes: spot nodes that run executors.
        drain: whether an executor completes its tasks before its node is terminated; the longest task is assumed to take a whole trigger
            interval. None: a bounded run, whose task durations are unknown.
        losses: for the loss of one node, of two and so on up to all; empty without a load.
    """

    nodes: int
    drain: DrainOutcome | None
    losses: tuple[LossOutcome, ...] = ()


class Plan(_Planned):
    """The plan of a job.

    Args:
        schema_version: version of this document.
        parallelism: concurrent tasks of a stage, as requested or as set in code.
        totals: totals of the pods.
        pods: the pods.
        per_slot: resources of one task slot.
        executor_overhead: what the overhead of an executor has to hold.
        driver_needs: what the driver's memory has to hold.
        executor_storage: what an executor's ephemeral storage has to hold.
        driver_storage: what the driver's ephemeral storage has to hold.
        executor_disk: what an executor writes to its disk and reads from it per second.
        stages: stages of one Spark micro-batch.
        files: source of files -> the stage that reads them; empty without such sources, or without a known input.
        tasks_at_a_time: maximum number of concurrent tasks.
        spark_conf: all settings that Spark is started with, including the user's.
        kafka: the topics.
        nodes: nodes that Karpenter creates; None: the environment has no cluster.
        cost: cost of the job alone in its environment; None: see `nodes`, or the region's prices are unknown.
        state: state of the job, and its checkpoint.
        throughput: requirements of the load and capability of the plan; None: no load.
        read_limit: limit of a micro-batch for sources that set none; None: there are none, or a bounded run, which reads what there is.
        spot: effect of losing spot nodes; None: no executor runs on one.
        range: by the spread of the load's measured profile; None: it has none.
        feasible: whether all targets are met.
        violations: the violations otherwise.
        notes: remarks for the reader, as sentences.
        explain: each number with its rule and inputs.
    """

    schema_version: int = SCHEMA_VERSION
    parallelism: PlannedParallelism
    totals: Totals
    pods: Pods
    per_slot: PerSlot
    executor_overhead: ExecutorOverhead
    driver_needs: DriverNeeds
    executor_storage: StorageNeeds
    driver_storage: StorageNeeds
    executor_disk: DiskThroughput = DiskThroughput()
    stages: tuple[Stage, ...]
    files: dict[str, FilesRead] = Field(default_factory=dict)
    tasks_at_a_time: int
    spark_conf: dict[str, str]
    kafka: KafkaPlan
    nodes: NodesPlan | None = None
    cost: Bill | None = None
    state: StatePlan
    throughput: ThroughputPlan | None = None
    read_limit: ReadLimit | None = None
    spot: SpotPlan | None = None
    range: PlanRange | None = None
    feasible: bool
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    explain: tuple[Explanation, ...] = ()

    @property
    def max_offsets_per_trigger(self) -> int | None:
        """The records of the read limit; None: no limit."""
        return None if self.read_limit is None else self.read_limit.records
