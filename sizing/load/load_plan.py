"""The shapes that the plan for a load consists of; `penstock.sizing.load.planning` fills them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.explained import Explanation
from penstock.sizing.kafka.brokers import KafkaOption
from penstock.sizing.kafka.serverless import ServerlessUse
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.state.stores import Backend


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class ExecutorMemory(_Planned):
    """What an executor needs for the load, in MiB.

    Args:
        heap_mib: ``spark.executor.memory``.
        overhead_mib: ``spark.executor.memoryOverhead``, RocksDB's native memory included.
        memory_mib: of the pod: both.
    """

    heap_mib: int
    overhead_mib: int
    memory_mib: int


class LoadState(_Planned):
    """The state of joins and aggregations.

    Args:
        backend: as asked, or chosen from the state's bytes.
        chosen: whether it was chosen.
        stores: of the query.
        state_bytes: of the query, one version.
        executor_heap_mib: of one executor's heap.
        executor_native_mib: of one executor's overhead.
    """

    backend: Backend
    chosen: bool
    stores: int
    state_bytes: int
    executor_heap_mib: int
    executor_native_mib: int


class LoadKafka(_Planned):
    """The Kafka for the load; one of cluster and serverless, or none where no cluster carries it or none is planned.

    Args:
        peak_in_mibps: from producers.
        peak_out_mibps: to all consumers.
        average_in_mibps: from producers.
        partitions: of all topics, replicas not counted.
        replication: copies of a partition.
        retention_h: how long records stay.
        cluster: with brokers.
        serverless: without.
    """

    peak_in_mibps: float
    peak_out_mibps: float
    average_in_mibps: float
    partitions: int
    replication: int
    retention_h: float
    cluster: KafkaOption | None = None
    serverless: ServerlessUse | None = None


class LoadPlan(_Planned):
    """What carries the load.

    Args:
        peak_events_per_s: the rate that is planned for.
        target_events_per_s: what the slots must be able to process.
        parallelism: tasks of a stage at the same time.
        executors: that run them.
        slots: of all the executors.
        capacity_events_per_s: what the tasks process, as far as the topics' partitions let them read.
        topic_partitions: of the topics that the job reads.
        shuffle_partitions: pinned by the first run of a checkpoint.
        trigger_s: from one micro-batch to the next; None: a bounded run.
        max_offsets_per_trigger: of all topics together; None: a bounded run takes all there is.
        catch_up_s: after a restart at the peak; None: never.
        memory: what an executor needs.
        state: of joins and aggregations.
        checkpoint: what it writes; of a bounded run one a day.
        kafka: topics and brokers.
        notes: what a reader should know, in sentences.
        explain: each number with the rule and the inputs behind it; paths are relative to this plan.
    """

    peak_events_per_s: float
    target_events_per_s: int
    parallelism: int
    executors: int
    slots: int
    capacity_events_per_s: float
    topic_partitions: dict[str, int]
    shuffle_partitions: int
    trigger_s: float | None
    max_offsets_per_trigger: int | None
    catch_up_s: float | None
    memory: ExecutorMemory
    state: LoadState
    checkpoint: CheckpointTraffic
    kafka: LoadKafka
    notes: tuple[str, ...] = ()
    explain: tuple[Explanation, ...] = ()
