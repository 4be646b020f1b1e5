"""The default limit of a micro-batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.load.load import Load
from penstock.sizing.plan import plan
from penstock.sizing.plan.read_limit import RECORD_BYTES, RECORDS_PER_SLOT_PER_S
from penstock.sizing.targets import ExecutorTarget, Parallelism, Targets


def _targets(*, parallelism: int = 4, slots: int = 2, memory_mib: int = 4096, trigger_s: float | None = 10.0) -> Targets:
    executor = ExecutorTarget(slots=slots, memory_mib=memory_mib)
    return Targets(parallelism=Parallelism(value=parallelism), executor=executor, source_topics={"clicks": 4}, trigger_s=trigger_s)


@pytest.mark.parametrize(("trigger_s", "seconds"), [(0.001, 10), (10.0, 10), (30.0, 30)])
def test_a_micro_batch_reads_what_the_slots_can_in_a_trigger_or_ten_seconds(trigger_s: float, seconds: int) -> None:
    limit = plan(_targets(trigger_s=trigger_s)).read_limit
    assert limit is not None
    assert (limit.records, limit.binding) == (4 * RECORDS_PER_SLOT_PER_S * seconds, "time")


def test_with_little_memory_a_micro_batch_reads_what_the_executors_can_cache() -> None:
    planned = plan(_targets(trigger_s=300.0))
    assert planned.pods.executor.heap_mib == 2926
    # Two executors, half of 0.6 of the heap beyond 300 MiB.
    assert planned.max_offsets_per_trigger == int(2 * (2926 - 300) * 0.3 * 1024**2 / RECORD_BYTES)
    assert planned.read_limit is not None and planned.read_limit.binding == "memory"
    (explained,) = (one for one in planned.explain if one.number == "readLimit.records")
    assert (explained.value, explained.inputs["heapMib"]) == (planned.max_offsets_per_trigger, 2926)


def test_the_micro_batches_of_several_queries_share_the_memory() -> None:
    one, two = (plan(_targets(trigger_s=300.0).model_copy(update={"queries": queries})).max_offsets_per_trigger for queries in (1, 2))
    assert one is not None and two == one // 2


def _load(batch_overhead_s: float = 0.5) -> Load:
    return Load(events_per_s=1_000.0, event_bytes=200, events_per_slot_per_s=1_000.0, batch_overhead_s=batch_overhead_s)


def test_with_a_load_it_is_the_limit_of_the_load() -> None:
    planned = plan(_targets().model_copy(update={"load": _load()}))
    assert planned.throughput is not None and planned.read_limit is not None
    assert (planned.read_limit.records, planned.read_limit.binding) == (planned.throughput.max_offsets_per_trigger, "load")


def test_a_trigger_that_is_shorter_than_an_empty_micro_batch_does_not_stop_the_job() -> None:
    planned = plan(_targets(trigger_s=0.4).model_copy(update={"load": _load(batch_overhead_s=0.5)}))
    assert planned.throughput is not None and planned.throughput.max_offsets_per_trigger == 1
    assert planned.read_limit is not None and planned.read_limit.binding != "load"


def test_neither_a_bounded_run_nor_one_whose_sources_have_limits_gets_one() -> None:
    assert plan(_targets(trigger_s=None)).read_limit is None
    assert plan(_targets().model_copy(update={"limited_reads": True})).max_offsets_per_trigger is None


@given(parallelism=st.integers(1, 200), slots=st.integers(1, 16), memory_mib=st.integers(1_000, 100_000), trigger_s=st.floats(0.001, 600))
def test_it_never_grows_with_less_memory_and_is_at_least_one_record(
    parallelism: int, slots: int, memory_mib: int, trigger_s: float
) -> None:
    more, less = (
        plan(_targets(parallelism=parallelism, slots=slots, memory_mib=mib, trigger_s=trigger_s)).max_offsets_per_trigger
        for mib in (memory_mib * 2, memory_mib)
    )
    assert more is not None and less is not None
    assert 1 <= less <= more
