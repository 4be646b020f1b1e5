"""The models of the plan for a load; computed by `penstock.sizing.load.planning`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.explained import Explanation
from penstock.sizing.kafka.brokers import KafkaOption
from penstock.sizing.kafka.serverless import ServerlessUse
from penstock.sizing.overhead import ExecutorOverhead
from penstock.sizing.python_workers import PythonMemory
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.state.stores import Backend


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class ExecutorMemory(_Planned):
    """Memory of an executor for the load, in MiB.

    Args:
        heap_mib: ``spark.executor.memory``.
        overhead_mib: ``spark.executor.memoryOverhead``, at least what `overhead` needs.
        memory_mib: memory of the pod: the sum of both.
        overhead: what the overhead has to hold.
        python: the Python workers among that.
    """

    heap_mib: int
    overhead_mib: int
    memory_mib: int
    overhead: ExecutorOverhead
    python: PythonMemory


class LoadState(_Planned):
    """The state of joins and aggregations.

    Args:
        backend: as requested, or chosen by the size of the state.
        chosen: whether it was chosen.
        stores: state stores of the query.
        state_bytes: state of the query, one version.
        executor_heap_mib: heap used on one executor.
        executor_native_mib: overhead used on one executor.
    """

    backend: Backend
    chosen: bool
    stores: int
    state_bytes: int
    executor_heap_mib: int
    executor_native_mib: int


class LoadKafka(_Planned):
    """Kafka for the load: either a cluster or serverless, or none if no cluster carries it or none is planned.

    Args:
        peak_in_mibps: peak ingress from producers.
        peak_out_mibps: peak egress to all consumers.
        average_in_mibps: average ingress from producers.
        partitions: partitions of all topics, without replicas.
        replication: replicas of a partition.
        retention_h: retention of records.
        cluster: cluster with brokers.
        serverless: serverless cluster.
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
    """The resources that carry the load.

    Args:
        peak_events_per_s: the peak rate.
        target_events_per_s: required throughput of the slots.
        parallelism: concurrent tasks of a stage.
        executors: number of executors.
        slots: slots of all executors.
        capacity_events_per_s: throughput of the tasks, limited by the topics' partitions.
        topic_partitions: partitions of the topics that the job reads.
        shuffle_partitions: fixed by the first run of a checkpoint.
        trigger_s: trigger interval; None: a bounded run.
        max_offsets_per_trigger: for all topics together; None: a bounded run reads everything available.
        catch_up_s: catch-up time after a restart at the peak; None: never.
        memory: memory of an executor.
        state: state of joins and aggregations.
        checkpoint: checkpoint traffic; for a bounded run, one run per day.
        kafka: topics and brokers.
        notes: remarks for the reader, as sentences.
        explain: each number with its rule and inputs; paths are relative to this plan.
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
