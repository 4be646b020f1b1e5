"""The disk throughput of executors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.disk_throughput import BatchIo, cache_misses, executor_throughput, write_amplification
from penstock.sizing.units import MIB

GIB = 1024 * MIB


def batch(**changes: Any) -> BatchIo:
    known = {
        "interval_s": 10.0, "batch_bytes": 4000.0 * MIB, "shuffles": 1, "map_tasks": 8, "shuffle_partitions": 8, "memory_bytes": 8 * GIB,
        "state_bytes": 0, "stores": 0, "changed_bytes": 0.0, "changed_keys": 0.0, "batches_per_flush": 10,
        "write_buffer_bytes": 64 * MIB, "cache_bytes": 250 * MIB, "local_dirs_elsewhere": False,
    }  # fmt: skip
    return BatchIo.model_validate({**known, **changes})


def test_rows_of_a_shuffle_are_written_and_read_and_twice_so_where_map_tasks_concatenate_files() -> None:
    # 1,000 MiB of an executor in 10 s.
    assert executor_throughput(batch(), 4).shuffle_mibps == 400
    assert executor_throughput(batch(shuffle_partitions=201), 4).shuffle_mibps == 200
    assert executor_throughput(batch(shuffles=2), 4).shuffle_mibps == 800


def test_rows_are_spilled_only_beyond_the_memory_of_an_executor() -> None:
    assert executor_throughput(batch(), 4).spill_mibps == 0
    assert executor_throughput(batch(memory_bytes=900 * MIB), 4).spill_mibps == 20


def test_sequential_io_counts_by_256_kib_and_small_blocks_of_a_shuffle_one_by_one() -> None:
    assert executor_throughput(batch(), 4).iops == 1600
    # 200 * 200 files and as many blocks, in 10 s, by 4 executors.
    assert executor_throughput(batch(batch_bytes=1.0 * MIB, map_tasks=200, shuffle_partitions=200), 4).iops == 2 * 200 * 200 / 40


def test_state_is_flushed_compacted_and_uploaded() -> None:
    # Four stores of 64 MiB, of which 1 MiB changes in a micro-batch, and 10 until a flush: level 0 has 40 MiB, level 1 the 64.
    kept = batch(batch_bytes=0.0, state_bytes=256 * MIB, stores=4, changed_bytes=4.0 * MIB, changed_keys=1000.0)
    assert write_amplification(kept) == 1 + (40 + 64) / 40
    needs = executor_throughput(kept, 2)
    assert needs.uploads_mibps == pytest.approx(2 * 4 / 20)
    assert needs.state_mibps == pytest.approx(4 / 20 * (2 * write_amplification(kept) - 1), abs=0.01)


def test_without_a_changelog_small_flushes_rewrite_level_1_again_and_again() -> None:
    kept = batch(state_bytes=256 * MIB, stores=4, changed_bytes=4.0 * MIB)
    assert write_amplification(kept.model_copy(update={"batches_per_flush": 1})) == 1 + (4 + 64) / 4


@pytest.mark.parametrize(("store", "deeper"), [(256 * MIB, 0), (257 * MIB, 10), (2560 * MIB, 10), (2561 * MIB, 20)])
def test_each_level_beyond_the_first_adds_its_multiplier(store: int, deeper: int) -> None:
    kept = batch(state_bytes=store, stores=1, changed_bytes=64.0 * MIB)
    assert write_amplification(kept) == pytest.approx(1 + (256 + 256) / 256 + deeper)


def test_reads_of_the_state_miss_what_the_cache_does_not_hold() -> None:
    kept = batch(batch_bytes=0.0, state_bytes=1000 * MIB, stores=4, changed_keys=80_000.0, map_tasks=0)
    assert cache_misses(kept, 2) == 0.5
    # Four stores of which nothing changes are not compacted.
    needs = executor_throughput(kept, 2)
    assert needs.iops == 80_000 / 10 / 2 * 0.5
    assert needs.state_mibps == pytest.approx(2000 * 4 / 1024, abs=0.01)
    assert cache_misses(kept, 4) == 0


def test_a_local_directory_elsewhere_leaves_only_the_uploads() -> None:
    kept = batch(state_bytes=1000 * MIB, stores=4, changed_bytes=10.0 * MIB, changed_keys=80_000.0, memory_bytes=0)
    needs = executor_throughput(kept.model_copy(update={"local_dirs_elsewhere": True}), 2)
    assert needs.mibps == needs.uploads_mibps == 1


@given(
    rows=st.floats(0, 1e13),
    state=st.tuples(st.integers(1, 10**13), st.integers(1, 10**5), st.floats(1, 1e12)),
    executors=st.integers(1, 500),
    interval_s=st.floats(0.5, 600),
)
def test_more_executors_never_need_more_each(rows: float, state: tuple[int, int, float], executors: int, interval_s: float) -> None:
    state_bytes, stores, changed = state
    one = batch(
        interval_s=interval_s, batch_bytes=rows, state_bytes=state_bytes, stores=stores, changed_bytes=changed, changed_keys=changed
    )
    assert executor_throughput(one, executors + 1).mibps <= executor_throughput(one, executors).mibps + 0.01
