"""The violations of a load's plan, with the binding constraint and the nearest feasible value."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.kafka.brokers import cheapest, cluster_violations, option_of
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.kafka.serverless import serverless_use
from penstock.sizing.load.errors import LoadOutOfReach, ParallelismBelowLoad, PartitionsBelowLoad, TriggerTooShort
from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import MOST_SLOTS, Load
from penstock.sizing.load.load_plan import LoadPlan
from penstock.sizing.load.parallelism import needed_slots
from penstock.sizing.load.planning import kafka_demand
from penstock.sizing.load.proposals import (
    KAFKA_ELSEWHERE,
    kafka_proposals,
    most_sustained,
    rate_text,
    shortest_trigger_s,
    written_trigger_s,
)
from penstock.sizing.load.target_rate import drain_rate, needed_rate
from penstock.sizing.overhead import jvm_overhead_mib
from penstock.sizing.state.checkpoint import checkpoint_violations, least_whole_trigger_s
from penstock.sizing.state.errors import StateDoesNotFit
from penstock.sizing.state.memory import free_heap_mib, heap_for_state_mib
from penstock.sizing.violation import Violation, violated, violation_of


def load_violations(load: Load, job: JobShape, planned: LoadPlan) -> list[Violation]:
    """The violations, in the order parallelism, partitions, trigger, state, checkpoint, Kafka; empty if the plan carries the load."""
    return [
        *_parallelism(load, job, planned),
        *_partitions(load, planned),
        *_trigger(load, job, planned),
        *_state(job, planned),
        *_checkpoint(load, job, planned),
        *_kafka(load, job, planned),
    ]


def _parallelism(load: Load, job: JobShape, planned: LoadPlan) -> Iterator[Violation]:
    needed = needed_rate(load)
    capacity = load.throughput(planned.parallelism)
    if capacity >= needed:
        return
    given = f"{load.events_per_s:,g} events/s"
    need = f"{needed:,.0f} events/s of throughput; {planned.parallelism:,} slots have {capacity:,.0f}"
    need += f", enough for {rate_text(most_sustained(load, capacity))}"
    if job.parallelism is None:
        most = most_sustained(load, load.throughput(MOST_SLOTS))
        fix = f"{f'at most {rate_text(most)}, ' if most else ''}a higher rate per slot, or several jobs"
        yield violated(LoadOutOfReach, path="load", given=given, need=need, fix=fix)
        return
    wanted = needed_slots(load, job.trigger_s)
    least = most_sustained(load, capacity)
    fix = f"at most {rate_text(least)}" if least else "a smaller backlog, or a longer time to catch up"
    fix = f"a parallelism of {wanted.slots:,}" if wanted.enough else fix
    yield violated(ParallelismBelowLoad, path="parallelism", given=str(job.parallelism), need=need, fix=fix)


def _partitions(load: Load, planned: LoadPlan) -> Iterator[Violation]:
    read = sum(planned.topic_partitions.values())
    needed = needed_rate(load)
    if planned.capacity_events_per_s >= needed or load.throughput(planned.parallelism) < needed:
        return
    need = f"{needed:,.0f} events/s; {read:,} tasks, one per partition, process {planned.capacity_events_per_s:,.0f}"
    fix = f"at least {load.slots_for(needed):,} partitions"
    yield violated(PartitionsBelowLoad, path="topics", given=f"{read:,} partitions", need=need, fix=fix)


def _trigger(load: Load, job: JobShape, planned: LoadPlan) -> Iterator[Violation]:
    if job.trigger_s is None or planned.max_offsets_per_trigger is None or planned.capacity_events_per_s < needed_rate(load):
        return
    if job.trigger_s > load.batch_overhead_s and planned.max_offsets_per_trigger >= drain_rate(load) * job.trigger_s:
        return
    least = shortest_trigger_s(load, job, planned.capacity_events_per_s)
    need = f"{load.batch_overhead_s:g} s of fixed cost per micro-batch; the rest must process {drain_rate(load):,.0f} events/s"
    fix = f"trigger: {least}s or longer" if least is not None else "a longer trigger, and a longer time to catch up"
    yield violated(TriggerTooShort, path="trigger", given=f"{job.trigger_s:g} s", need=need, fix=fix)


def _state(job: JobShape, planned: LoadPlan) -> Iterator[Violation]:
    state = planned.state
    if job.heap_mib is not None and free_heap_mib(job.heap_mib) < state.executor_heap_mib:
        need = f"{state.executor_heap_mib:,} MiB of heap beside Spark's; {job.heap_mib:,} MiB leave {free_heap_mib(job.heap_mib):,} MiB"
        fix = f'heap: "{heap_for_state_mib(state.executor_heap_mib)}m" or more, more executors, or state.backend: rocksdb'
        yield violated(StateDoesNotFit, path="executor.heap", given=f"{job.heap_mib}m", need=need, fix=fix)
    if job.overhead_mib is None or not state.executor_native_mib:
        return
    jvm_mib = jvm_overhead_mib(job.heap_mib or planned.memory.heap_mib)
    needed_mib = jvm_mib + state.executor_native_mib
    if job.overhead_mib < needed_mib:
        need = f"{needed_mib:,} MiB of overhead: {state.executor_native_mib:,} for RocksDB, {jvm_mib:,} for the JVM"
        fix = f'more memory, for an overhead of "{needed_mib}m"'
        fix += ", or more executors" if job.rocksdb_bounded else ", more executors, or RocksDB with bounded memory"
        yield violated(StateDoesNotFit, path="executor.memory", given=f"{job.overhead_mib}m of overhead", need=need, fix=fix)


def _checkpoint(load: Load, job: JobShape, planned: LoadPlan) -> Iterator[Violation]:
    for violation in checkpoint_violations(planned.checkpoint, job.trigger_s) if job.trigger_s else []:
        trigger = written_trigger_s(load, job, least_whole_trigger_s(planned.checkpoint))
        longer = f"trigger: {trigger}s or longer, or " if trigger is not None else ""
        yield violation.model_copy(update={"fix": f"{longer}fewer shuffle partitions"})


def _kafka(load: Load, job: JobShape, planned: LoadPlan) -> Iterator[Violation]:
    choice = job.kafka
    demand = kafka_demand(load, job, planned.kafka.partitions)
    try:
        if choice.kind == "serverless":
            serverless_use(demand)
        elif choice.kind != "none" and choice.broker_type is None:
            cheapest(demand, choice.kind)
    except KafkaOutOfReach as error:
        proposed = ", or ".join(kafka_proposals(load, job))
        yield violation_of(error).model_copy(update={"fix": f"{proposed}, or {KAFKA_ELSEWHERE[choice.kind]}"} if proposed else {})
        return
    if choice.kind not in ("standard", "express") or choice.broker_type is None:
        return
    needed = option_of(demand, choice.broker_type)
    if choice.brokers is not None:
        yield from cluster_violations(demand, choice.broker_type, choice.brokers)
    elif needed.brokers > choice.broker_quota:
        yield from cluster_violations(demand, choice.broker_type, choice.broker_quota)
