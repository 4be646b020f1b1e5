"""From a load to a plan, as a pure function."""

from __future__ import annotations

import math
from typing import Literal

from penstock.sizing.executors import executor_count
from penstock.sizing.kafka.brokers import KafkaOption, cheapest, option_of
from penstock.sizing.kafka.demand import KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.kafka.serverless import serverless_use
from penstock.sizing.load.explanation import explain_load
from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import Load
from penstock.sizing.load.load_plan import ExecutorMemory, LoadKafka, LoadPlan, LoadState
from penstock.sizing.load.memory import executor_needs, heap_for_rows_mib
from penstock.sizing.load.micro_batch import max_offsets
from penstock.sizing.load.notes import load_notes
from penstock.sizing.load.parallelism import needed_partitions, needed_slots, reading_tasks
from penstock.sizing.load.target_rate import catch_up_s, restart_backlog, target_rate
from penstock.sizing.python_workers import batch_bytes as python_batch_bytes
from penstock.sizing.python_workers import python_memory
from penstock.sizing.state.checkpoint import SECONDS_PER_DAY, CheckpointSettings, CheckpointTraffic, checkpoint_traffic
from penstock.sizing.state.memory import chosen_backend, state_memory
from penstock.sizing.state.stores import Backend, join_format, state_stores, stores_per_partition


def plan_load(load: Load, job: JobShape | None = None) -> LoadPlan:
    """Plans the resources for a load.

    Returns:
        The plan. If a target is infeasible, it is the nearest plan, and `penstock.sizing.load.feasibility.load_violations` returns its
        violations.

    Raises:
        UnknownBrokerType: SIZ-042, for the environment's broker type.
    """
    job = job or JobShape()
    needed = needed_slots(load, job.trigger_s)
    parallelism = job.parallelism or needed.slots
    executors = executor_count(parallelism, job.slots_per_executor)
    fewest = needed_partitions(load, parallelism).partitions
    partitions = {topic: asked or fewest for topic, asked in job.topics.items()}
    capacity = load.throughput(reading_tasks(job, partitions, parallelism))
    limit = None if job.trigger_s is None else max_offsets(load, capacity, job.trigger_s)
    batch_bytes = _batch_bytes(load, job, limit, executors)
    shuffle = job.shuffle_partitions or parallelism
    state, memory = _state(load, job, batch_bytes, shuffle, executors)
    drained = capacity if limit is None or job.trigger_s is None else min(capacity, limit / job.trigger_s)
    draft = LoadPlan(
        peak_events_per_s=load.peak_events_per_s,
        target_events_per_s=target_rate(load),
        parallelism=parallelism,
        executors=executors,
        slots=executors * job.slots_per_executor,
        capacity_events_per_s=capacity,
        topic_partitions=partitions,
        shuffle_partitions=shuffle,
        trigger_s=job.trigger_s,
        max_offsets_per_trigger=limit,
        catch_up_s=catch_up_s(restart_backlog(load), drained, load.peak_events_per_s),
        memory=memory,
        state=state,
        checkpoint=_checkpoint(load, job, state, limit),
        kafka=_kafka(load, job, sum(partitions.values()) + job.written_partitions),
    )
    return draft.model_copy(update={"notes": load_notes(load, job, draft), "explain": explain_load(load, job, draft)})


def kafka_demand(load: Load, job: JobShape, partitions: int) -> KafkaDemand:
    """The demand of a load on Kafka.

    Args:
        load: the load.
        job: the job, with the environment's Kafka.
        partitions: partitions of all topics.
    """
    peak = load.mibps(load.peak_events_per_s)
    return KafkaDemand(
        peak_in_mibps=peak,
        # Of the consumer groups that the load names, this job's is read once for each further query.
        peak_out_mibps=peak * (load.fan_out + job.queries - 1),
        average_in_mibps=load.mibps(load.events_per_s),
        partitions=partitions,
        replication=load.replication,
        retention_h=load.retention_h,
        zones=job.kafka.zones,
        broker_quota=job.kafka.broker_quota,
    )


def _batch_bytes(load: Load, job: JobShape, limit: int | None, executors: int) -> int:
    """An executor's share of the largest micro-batches, one of each query; for a bounded run, which Spark reads incrementally, ten
    seconds' worth.
    """
    events = load.peak_events_per_s * 10 if limit is None else limit
    return math.ceil(job.queries * events * load.event_bytes / executors)


def _state(load: Load, job: JobShape, batch_bytes: int, shuffle: int, executors: int) -> tuple[LoadState, ExecutorMemory]:
    heap_mib = job.heap_mib if job.heap_mib is not None else heap_for_rows_mib(batch_bytes)
    backend = job.backend or _backend(load, job, executors, heap_mib)
    stores = state_stores(shuffle, stores_per_partition(load.operators, join_format(backend)))
    taken = state_memory(backend, load.state_bytes, stores, executors, bounded=job.rocksdb_bounded)
    state = LoadState(
        backend=backend,
        chosen=job.backend is None,
        stores=stores,
        state_bytes=load.state_bytes,
        executor_heap_mib=taken.heap_mib,
        executor_native_mib=taken.native_mib,
    )
    # A task reads at most its slot's share of the micro-batch.
    python_batch = python_batch_bytes(load.event_bytes, -(-batch_bytes // job.slots_per_executor))
    return state, executor_needs(batch_bytes, taken, python_memory(job.python_uses, job.slots_per_executor, python_batch))


def _backend(load: Load, job: JobShape, executors: int, heap_mib: int) -> Backend:
    """RocksDB, unless all operators are stream-stream joins with a small state.

    Keyed functions, other joins and triggers run on Spark's transformWithState, which requires RocksDB. Operators other than
    stream-stream joins, and operators that were not found in the app, could be among them.
    """
    on_the_heap = {*load.operators, *job.app_operators} == {"join"}
    return chosen_backend(load.state_bytes, executors, heap_mib) if on_the_heap else "rocksdb"


def _checkpoint(load: Load, job: JobShape, state: LoadState, limit: int | None) -> CheckpointTraffic:
    """A bounded run is assumed to run once a day, in one batch."""
    trigger_s = float(SECONDS_PER_DAY) if job.trigger_s is None else job.trigger_s
    keys = min(load.state_keys, math.ceil(load.events_per_s * trigger_s), limit or load.state_keys)
    settings = CheckpointSettings(backend=state.backend, incremental=job.incremental, batches_retained=job.batches_retained)
    changed = keys * load.bytes_per_key
    return checkpoint_traffic(
        state.stores, trigger_s, settings, queries=job.queries, state_bytes=state.state_bytes, changed_bytes_per_batch=changed
    )


def _kafka(load: Load, job: JobShape, partitions: int) -> LoadKafka:
    demand = kafka_demand(load, job, partitions)
    bare = LoadKafka(
        peak_in_mibps=demand.peak_in_mibps,
        peak_out_mibps=demand.peak_out_mibps,
        average_in_mibps=load.mibps(load.events_per_s),
        partitions=partitions,
        replication=load.replication,
        retention_h=load.retention_h,
    )
    if job.kafka.kind == "none":
        return bare
    try:
        if job.kafka.kind == "serverless":
            return bare.model_copy(update={"serverless": serverless_use(demand)})
        return bare.model_copy(update={"cluster": _cluster(demand, job.kafka.kind, job.kafka.broker_type)})
    except KafkaOutOfReach:
        return bare


def _cluster(demand: KafkaDemand, kind: Literal["standard", "express"], broker_type: str | None) -> KafkaOption:
    return cheapest(demand, kind) if broker_type is None else option_of(demand, broker_type)
