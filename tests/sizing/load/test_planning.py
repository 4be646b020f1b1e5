"""From a load to a plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.sizing.kafka.errors import UnknownBrokerType
from penstock.sizing.load.capability import Running, capability
from penstock.sizing.load.feasibility import load_violations
from penstock.sizing.load.job_shape import JobShape, KafkaChoice
from penstock.sizing.load.load import Load
from penstock.sizing.load.load_plan import LoadPlan
from penstock.sizing.load.planning import plan_load
from penstock.sizing.load.profile import Profile, ProfilePoint
from penstock.sizing.load.target_rate import needed_rate
from penstock.sizing.state.stores import OperatorKind
from penstock.sizing.violation import Violation
from tests.sizing.load.loads import LOADS, loads

LOAD = Load(events_per_s=100_000.0, event_bytes=240, events_per_slot_per_s=12_000.0, fan_out=2.0)
JOB = JobShape(slots_per_executor=4, topics={"clicks": None})


def planned(change: dict[str, Any] | None = None, **shape: Any) -> tuple[LoadPlan, list[Violation]]:
    load, job = LOAD.model_copy(update=change or {}), JOB.model_copy(update=shape)
    result = plan_load(load, job)
    return result, load_violations(load, job, result)


def test_a_load_has_parallelism_partitions_executors_and_brokers() -> None:
    result, violations = planned()
    assert violations == []
    assert (result.target_events_per_s, result.parallelism, result.executors, result.slots) == (159_524, 14, 4, 16)
    assert (result.topic_partitions, result.shuffle_partitions) == ({"clicks": 14}, 14)
    assert result.max_offsets_per_trigger == 168_000 * 9.5
    assert result.catch_up_s == pytest.approx(30_000_000 / (159_600 - 100_000))
    assert result.kafka.cluster is not None
    assert (result.kafka.cluster.broker_type, result.kafka.cluster.brokers) == ("kafka.m7g.xlarge", 3)


def test_one_partition_takes_and_gives_only_so_much() -> None:
    result, _ = planned({"event_bytes": 10_000})
    assert result.topic_partitions == {"clicks": 96}
    (why,) = [entry for entry in result.explain if entry.number == "topicPartitions.clicks"]
    assert (why.value, why.binding) == (96, "producers")


def test_every_number_has_a_rule_with_its_inputs() -> None:
    result, _ = planned({"state_keys": 10**7, "bytes_per_key": 200})
    numbers = {entry.number: entry for entry in result.explain}
    assert numbers["parallelism"].binding == "target rate"
    assert numbers["memory.overheadMib"].binding == "state"
    assert numbers["kafka.cluster.brokers"].binding == "zones"
    assert all(entry.rule for entry in result.explain)
    dumped = result.model_dump(mode="json", by_alias=True)
    for number, entry in numbers.items():
        value: Any = dumped
        for part in number.split("."):
            value = value.get(part, None) if isinstance(value, dict) else None
        assert number == "kafka.cluster.storageGib" or value == entry.value, number


def test_state_takes_stores_memory_and_objects() -> None:
    result, _ = planned({"state_keys": 10**8, "bytes_per_key": 200, "stateful_operators": ("join",)}, backend="rocksdb")
    assert (result.state.stores, result.state.executor_native_mib) == (14, 500)
    parts = result.memory.overhead
    # One worker of a keyed function in each of 4 slots, with 9 copies of 10,000 events, and the daemon.
    assert (parts.jvm_mib, parts.rocksdb_mib, parts.python_workers, parts.python_mib) == (384, 500, 4, 4 * (45 + 21) + 150)
    assert result.memory.overhead_mib == parts.needed_mib == 384 + 500 + parts.python_mib + parts.arrow_mib
    assert result.checkpoint.objects_per_batch == 2 + 14 * 2


def test_a_job_without_python_has_the_overhead_of_the_jvm_alone() -> None:
    result, _ = planned(python_uses=())
    assert (result.memory.heap_mib, result.memory.overhead_mib) == (1024, 409)
    assert {entry.number: entry for entry in result.explain}["memory.overheadMib"].binding == "heap"


def test_python_workers_take_overhead_by_what_they_run_and_how_large_their_records_are() -> None:
    function, clients = planned(python_uses=("udf",))[0], planned(python_uses=("keyed", "client"))[0]
    assert 384 + 150 + 4 * 43 < function.memory.overhead_mib < clients.memory.overhead_mib
    large, _ = planned({"event_bytes": 2_400}, python_uses=("udf",))
    assert large.memory.overhead.arrow_mib > 9 * function.memory.overhead.arrow_mib
    # A job whose tasks read less than a batch of 10,000 events has smaller ones.
    slow, _ = planned({"events_per_s": 100.0}, python_uses=("udf",), trigger_s=1.0)
    assert slow.memory.overhead.arrow_mib < function.memory.overhead.arrow_mib
    assert {entry.number: entry for entry in function.explain}["memory.overheadMib"].binding == "Python"


def test_state_on_the_heap_makes_the_heap_larger_and_a_join_has_four_stores() -> None:
    result, _ = planned({"state_keys": 10**8, "bytes_per_key": 200, "stateful_operators": ("join",)}, backend="memory")
    assert result.state.stores == 14 * 4
    assert result.memory.heap_mib > 2 * 20_000_000_000 / 4 / 1024**2 / 0.4


@pytest.mark.parametrize(
    ("counted", "called", "backend"),
    [
        (("join",), ("join",), "memory"),
        (("join", "join"), (), "memory"),
        (("join", "other"), ("join", "other"), "rocksdb"),
        # The load's own count is taken from the spec; the calls in the app add to it.
        (("join",), ("join", "other"), "rocksdb"),
        # Blocks in modules that the app imports are not detected.
        ((), (), "rocksdb"),
    ],
)
def test_a_small_state_is_kept_on_the_heap_where_joins_alone_have_any(
    counted: tuple[OperatorKind, ...], called: tuple[OperatorKind, ...], backend: str
) -> None:
    result, _ = planned({"state_keys": 10, "bytes_per_key": 10, "stateful_operators": counted}, app_operators=called)
    assert (result.state.backend, result.state.chosen) == (backend, True)


def test_a_large_state_of_a_join_goes_to_rocksdb() -> None:
    result, _ = planned({"state_keys": 10**8, "bytes_per_key": 200, "stateful_operators": ("join",)})
    assert result.state.backend == "rocksdb"
    assert "state backend rocksdb, chosen for 19,074 MiB of state on 4 executors and the operators join" in result.notes


def test_state_that_does_not_fit_the_pod_is_a_violation_with_what_fits() -> None:
    state = {"state_keys": 10**8, "bytes_per_key": 200}
    _, (native,) = planned(state, heap_mib=4096, overhead_mib=800, backend="rocksdb")
    assert (native.code, native.path) == ("SIZ-043", "executor.memory")
    assert '"909m"' in native.fix
    assert planned(state, heap_mib=4096, overhead_mib=909, backend="rocksdb")[1] == []
    result, (heap,) = planned(state, heap_mib=4096, overhead_mib=2000, backend="memory")
    assert (heap.code, heap.path) == ("SIZ-043", "executor.heap")
    assert f'"{result.memory.heap_mib}m"' in heap.fix
    assert planned(state, heap_mib=result.memory.heap_mib, overhead_mib=9000, backend="memory")[1] == []


def test_no_parallelism_for_a_throughput_that_no_longer_rises() -> None:
    flat = Profile(points=(ProfilePoint(slots=2, events_per_second=100_000), ProfilePoint(slots=4, events_per_second=100_000)))
    _, (result,) = planned({"events_per_slot_per_s": None, "profile": flat})
    assert (result.code, result.error().exit_code) == ("SIZ-045", 3)
    assert result.fix.startswith("at most 62,686 events/s")
    assert planned({"events_per_slot_per_s": None, "profile": flat, "events_per_s": 62_686.0})[1] == []


def test_a_fixed_parallelism_below_the_load_is_a_violation_with_the_required_one() -> None:
    result, (violation,) = planned(parallelism=7)
    assert (result.parallelism, violation.code, violation.given) == (7, "SIZ-047", "7")
    assert violation.fix == "a parallelism of 14"
    assert planned(parallelism=14)[1] == []


def test_too_few_partitions_are_a_violation_with_the_required_number() -> None:
    result, (violation,) = planned(topics={"clicks": 5})
    assert result.capacity_events_per_s == 60_000
    assert (violation.code, violation.fix) == ("SIZ-048", "at least 14 partitions")
    assert planned(topics={"clicks": 5, "views": 9})[1] == []


def test_a_short_trigger_takes_more_slots_and_one_that_is_too_short_is_a_violation() -> None:
    tight = {"utilisation": 1.0, "batch_overhead_s": 1.0}
    result, violations = planned(tight, trigger_s=2.0)
    assert violations == []
    assert result.parallelism == 20
    assert next(entry.binding for entry in result.explain if entry.number == "parallelism") == "trigger"
    _, (violation,) = planned(tight, trigger_s=1.0)
    assert (violation.code, violation.fix) == ("SIZ-046", f"trigger: {37}s or longer")
    assert planned(tight, trigger_s=37.0)[1] == []


def test_a_bounded_run_has_no_limit_of_its_batch() -> None:
    result, violations = planned(trigger_s=None)
    assert (result.max_offsets_per_trigger, result.trigger_s, violations) == (None, None, [])
    assert result.checkpoint.objects_per_day == 2


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (KafkaChoice(kind="standard", broker_quota=3), "SIZ-040"),
        (KafkaChoice(kind="serverless"), "SIZ-040"),
        (KafkaChoice(kind="express", broker_type="express.m7g.large", brokers=3), "SIZ-041"),
        (KafkaChoice(kind="standard", broker_type="kafka.m7g.large", broker_quota=30), "SIZ-041"),
    ],
)
def test_a_load_that_kafka_does_not_carry_is_a_violation(choice: KafkaChoice, code: str) -> None:
    result, (violation,) = planned({"event_bytes": 10_000}, kafka=choice)
    assert violation.code == code
    assert violation.fix
    assert result.parallelism == 14


def test_a_broker_type_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnknownBrokerType):
        planned(kafka=KafkaChoice(broker_type="kafka.m5.mega"))


def test_without_kafka_no_brokers_are_planned() -> None:
    result, violations = planned(kafka=KafkaChoice(kind="none"))
    assert (result.kafka.cluster, result.kafka.serverless, violations) == (None, None, [])


def test_an_extrapolated_profile_is_noted() -> None:
    measured = Profile(points=(ProfilePoint(slots=2, events_per_second=24_000),))
    result, _ = planned({"events_per_slot_per_s": None, "profile": measured})
    assert any(note.startswith("the profile ends at 2 slots") for note in result.notes)


SHAPES = st.builds(
    JobShape,
    slots_per_executor=st.integers(1, 64),
    topics=st.dictionaries(st.sampled_from(["a", "b"]), st.none() | st.integers(1, 10_000), max_size=2),
    parallelism=st.none() | st.integers(1, 32_768),
    shuffle_partitions=st.none() | st.integers(1, 10_000),
    trigger_s=st.none() | st.floats(0.1, 600),
    heap_mib=st.none() | st.integers(0, 200_000),
    overhead_mib=st.none() | st.integers(0, 100_000),
    backend=st.sampled_from([None, "memory", "rocksdb"]),
    incremental=st.booleans(),
    rocksdb_bounded=st.booleans(),
    kafka=st.builds(
        KafkaChoice,
        kind=st.sampled_from(["standard", "express", "serverless", "none"]),
        broker_type=st.sampled_from([None, "kafka.m7g.large", "express.m7g.large"]),
        brokers=st.none() | st.integers(1, 200),
    ),
)


@settings(max_examples=300)
@given(load=LOADS, job=SHAPES)
def test_a_plan_meets_its_targets_or_says_which_it_does_not(load: Load, job: JobShape) -> None:
    result = plan_load(load, job)
    violations = load_violations(load, job, result)
    assert all(violation.code and violation.need and violation.fix and violation.given for violation in violations)
    assert result.model_dump_json(by_alias=True)
    codes = {violation.code for violation in violations}
    if codes & {"SIZ-045", "SIZ-046", "SIZ-047", "SIZ-048"}:
        return
    assert result.capacity_events_per_s >= needed_rate(load)
    assert result.slots >= result.parallelism
    assert result.catch_up_s is not None
    assert result.catch_up_s <= load.catch_up_s * (1 + 1e-6)
    if job.trigger_s is not None and result.max_offsets_per_trigger is not None:
        # A batch has at least one event.
        batch_s = (result.max_offsets_per_trigger - 1) / result.capacity_events_per_s + load.batch_overhead_s
        assert batch_s <= job.trigger_s * (1 + 1e-9)


@given(load=LOADS)
def test_a_plan_is_capable_of_the_load_that_it_was_made_for(load: Load) -> None:
    result = plan_load(load, JOB)
    assume(not {violation.code for violation in load_violations(load, JOB, result)} & {"SIZ-045", "SIZ-046"})
    running = Running(tasks=result.parallelism, trigger_s=result.trigger_s, max_offsets_per_trigger=result.max_offsets_per_trigger)
    assert capability(load, running).sustained_events_per_s >= load.events_per_s * (1 - 1e-9)


@given(load=loads(most_events_per_s=1e6), factor=st.floats(1, 100))
def test_more_load_never_has_less_capacity(load: Load, factor: float) -> None:
    more_load = load.model_copy(update={"events_per_s": load.events_per_s * factor})
    less, more = plan_load(load, JOB), plan_load(more_load, JOB)
    assume(not any(v.code == "SIZ-046" for v in load_violations(more_load, JOB, more)))
    assert more.parallelism >= less.parallelism
    assert more.executors >= less.executors
    assert more.topic_partitions["clicks"] >= less.topic_partitions["clicks"]
    assert more.capacity_events_per_s >= less.capacity_events_per_s
    if more.kafka.cluster is not None:
        assert less.kafka.cluster is not None
        assert more.kafka.cluster.usable_ingress_mibps >= less.kafka.cluster.usable_ingress_mibps * (1 - 1e-3)


def test_a_further_query_reads_all_topics_again_holds_a_micro_batch_and_writes_logs() -> None:
    (one, _), (two, _) = planned({"event_bytes": 2_400}), planned({"event_bytes": 2_400}, queries=2)
    assert two.kafka.peak_out_mibps == pytest.approx(one.kafka.peak_out_mibps * 3 / 2)
    assert two.memory.heap_mib > one.memory.heap_mib
    assert two.checkpoint.objects_per_batch == one.checkpoint.objects_per_batch + 2
    assert two.parallelism == one.parallelism
    for number in ("kafka.peakOutMibps", "memory.heapMib", "checkpoint.objectsPerBatch"):
        inputs = [{entry.number: entry for entry in result.explain}[number].inputs for result in (one, two)]
        assert [some.get("queries") for some in inputs] == [None, 2]
