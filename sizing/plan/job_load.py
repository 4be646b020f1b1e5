"""Plans a job's load with the job's pods and the environment's Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypedDict

from penstock.sizing.cluster import Cluster, KafkaCluster
from penstock.sizing.explained import Explanation
from penstock.sizing.load.capability import Running, capability
from penstock.sizing.load.feasibility import load_violations
from penstock.sizing.load.job_shape import JobShape, KafkaChoice
from penstock.sizing.load.load import Load
from penstock.sizing.load.load_plan import LoadPlan, LoadState
from penstock.sizing.load.parallelism import reading_tasks
from penstock.sizing.load.planning import plan_load
from penstock.sizing.load.spread import Spread
from penstock.sizing.plan.job_shape import shape_of
from penstock.sizing.planned import PlannedPod, ThroughputPlan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.state.backend_conf import backend_conf, memory_conf
from penstock.sizing.targets import DecidedTargets, Targets
from penstock.sizing.violation import Violation

# Path of a number of the load's plan in the plan of the job; the others are explained by the job's own rules.
_PLACES = {
    "peakEventsPerS": "throughput.peakEventsPerS",
    "targetEventsPerS": "throughput.targetEventsPerS",
    "parallelism": "parallelism.value",
    "capacityEventsPerS": "throughput.capability.capacityEventsPerS",
    "maxOffsetsPerTrigger": "throughput.maxOffsetsPerTrigger",
    "triggerS": "throughput.triggerS",
    "catchUpS": "throughput.capability.catchUpS",
}
_MEMORY_PLACES = {
    "memory.heapMib": "pods.executor.heapMib",
    "memory.overheadMib": "pods.executor.overheadMib",
    "memory.memoryMib": "pods.executor.memoryMib",
}
_PREFIXES = {"topicPartitions.": "kafka.topics.", "state.": "state.", "checkpoint.": "state.checkpoint.", "kafka.": "kafka.load."}

# Subject of a violation -> the field of the targets with its place; Kafka has none in a spec.
_FIELDS = {
    "load": "load",
    "topics": "load",
    "parallelism": "parallelism",
    "trigger": "trigger_s",
    "executor.heap": "executor.heap_mib",
    "executor.memory": "executor.memory_mib",
}


class _Basis(TypedDict, total=False):
    basis: Literal["assumed", "points", "measured"]
    basis_text: str
    profile_changes: tuple[Literal["app", "spec"], ...]
    events_per_slot_per_s: Spread | None


class JobLoad(NamedTuple):
    """A planned load.

    Args:
        plan: the resources that carry it.
        throughput: its part of the job's plan.
        violations: requirements that the plan does not meet.
        state_conf: Spark settings of a state backend that the plan chose, and of its memory.
        decides_memory: whether the load determines the executor's memory because the spec sets none.
    """

    plan: LoadPlan
    throughput: ThroughputPlan
    violations: list[Violation]
    state_conf: dict[str, str]
    decides_memory: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader."""
        return self.plan.notes

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Explanations of its numbers, by their path in the job's plan."""
        places = {**_PLACES, **(_MEMORY_PLACES if self.decides_memory else {})}
        placed = ((explanation, _place(explanation.number, places)) for explanation in self.plan.explain)
        return tuple(explanation.model_copy(update={"number": number}) for explanation, number in placed if number)


def load_of(targets: DecidedTargets, settings: SparkSettings, executor: PlannedPod, cluster: Cluster | None) -> JobLoad | None:
    """The plan for the load of a job, or None without a load.

    Args:
        targets: with the load.
        settings: settings of the job.
        executor: as planned.
        cluster: for its Kafka; None: no brokers are planned.

    Raises:
        UnknownBrokerType: SIZ-042, for the environment's broker type.
    """
    if targets.load is None:
        return None
    kafka = cluster.kafka if cluster else None
    load = in_environment(targets.load, kafka)
    shape = shape_of(
        targets,
        slots_per_executor=executor.slots or 1,
        shuffle_partitions=settings.shuffle_partitions,
        heap_mib=executor.heap_mib,
        overhead_mib=executor.overhead_mib,
        rocksdb_bounded=settings.rocksdb_bounded,
        batches_retained=settings.batches_retained,
        kafka=_choice(kafka, cluster),
    )
    planned = plan_load(load, shape)
    return JobLoad(
        plan=planned,
        throughput=_throughput(load, shape, planned),
        violations=located_violations(targets.model_copy(update={"load": load}), shape, planned),
        state_conf=_state_conf(targets, planned.state, bounded=settings.rocksdb_bounded),
        decides_memory=targets.memory_from_load,
    )


def _state_conf(targets: DecidedTargets, state: LoadState, *, bounded: bool) -> dict[str, str]:
    chosen = backend_conf(state.backend, incremental=targets.state_incremental) if state.chosen else {}
    return {**chosen, **memory_conf(state.backend, state.executor_native_mib, bounded=bounded)}


def located_violations(targets: Targets, shape: JobShape, planned: LoadPlan) -> list[Violation]:
    """The load's violations, each with its place in the document; empty without a load."""
    if targets.load is None:
        return []
    return [_located(targets, fault) for fault in load_violations(targets.load, shape, planned)]


def _located(targets: Targets, fault: Violation) -> Violation:
    origin = targets.origins.get(_FIELDS.get(fault.path, ""))
    # The faulty value is the number that the violation names, not everything at that place.
    return fault if origin is None else fault.moved(origin.at, path=origin.path)


def in_environment(load: Load, kafka: KafkaCluster | None) -> Load:
    """The load, with the retention and the replication of the environment's topics where the spec omits them."""
    if kafka is None:
        return load
    own = {"retention_h": kafka.retention_h, "replication": kafka.replication}
    return load.model_copy(update={field: value for field, value in own.items() if field not in load.model_fields_set})


def _choice(kafka: KafkaCluster | None, cluster: Cluster | None) -> KafkaChoice | None:
    if kafka is None or cluster is None or kafka.kind == "external":
        return None
    choice = KafkaChoice(kind=kafka.kind, broker_type=kafka.broker_type, brokers=kafka.brokers, zones=2 if len(cluster.zones) == 2 else 3)
    quota = cluster.quotas.msk_brokers
    return choice if quota is None else choice.model_copy(update={"broker_quota": min(choice.broker_quota, max(3, quota))})


def _throughput(load: Load, shape: JobShape, planned: LoadPlan) -> ThroughputPlan:
    running = Running(
        tasks=reading_tasks(shape, planned.topic_partitions, planned.parallelism),
        trigger_s=planned.trigger_s,
        max_offsets_per_trigger=planned.max_offsets_per_trigger,
    )
    return ThroughputPlan(
        peak_events_per_s=planned.peak_events_per_s,
        target_events_per_s=planned.target_events_per_s,
        max_offsets_per_trigger=planned.max_offsets_per_trigger,
        trigger_s=planned.trigger_s,
        capability=capability(load, running),
        **_basis(load),
    )


def _basis(load: Load) -> _Basis:
    if load.measured is not None:
        text = f"{load.measured.source or 'penstock profile'}, {load.measured.machines_text}"
        return {
            "basis": "measured",
            "basis_text": text,
            "profile_changes": load.profile_changes,
            "events_per_slot_per_s": load.slot_rate,
        }
    if load.profile is not None:
        origin = ", ".join(part for part in (load.profile.source, load.profile.date) if part)
        return {"basis": "points", "basis_text": f"measured at {len(load.profile.points)} points{f': {origin}' if origin else ''}"}
    return {"basis": "assumed", "basis_text": f"no profile: assumed {load.events_per_slot_per_s:,.10g} events/s a slot"}


def _place(number: str, places: Mapping[str, str]) -> str | None:
    if number in places:
        return places[number]
    return next((place + number.removeprefix(prefix) for prefix, place in _PREFIXES.items() if number.startswith(prefix)), None)
