"""State stores, their memory, and checkpoint traffic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.state.backend_conf import backend_conf
from penstock.sizing.state.checkpoint import CheckpointSettings, checkpoint_traffic, checkpoint_violations
from penstock.sizing.state.memory import chosen_backend, free_heap_mib, heap_for_state_mib, state_memory, unified_memory
from penstock.sizing.state.stores import Backend, OperatorKind, join_format, state_stores, stores_per_partition
from tests.sizing.load_cases import case

USD_PER_1000_PUTS = 0.005
MIB, GIB = 1024**2, 1024**3


def test_unified_memory_is_that_of_the_known_answer() -> None:
    _, expected = case("M1")
    result = unified_memory(17_179_869_184)
    assert (result.total_bytes, result.storage_bytes) == (expected["max_memory"], expected["storage"])


@pytest.mark.parametrize("name", ["C1", "C2", "C3"])
def test_a_checkpoint_writes_what_the_known_answers_say(name: str) -> None:
    asked, expected = case(name)
    backend: Backend = "memory" if asked["provider"] == "hdfs" else "rocksdb"
    stores = state_stores(asked["shuffle"], asked["stores_per_partition"])
    result = checkpoint_traffic(stores, asked["trigger_s"], CheckpointSettings(backend=backend, checksums=asked["crc"]))
    assert result.objects_per_batch == expected["objects_per_batch"]
    assert result.objects_per_day == expected["objects_per_day"]
    assert result.snapshot_objects_per_day == expected["snapshot_objects_per_day"]
    assert round(result.requests_per_month / 1000 * USD_PER_1000_PUTS, 2) == expected["put_usd_per_month_1put"]


@pytest.mark.parametrize(
    ("operators", "state_format", "stores"),
    [
        ((), 2, 0),
        (("other",), 2, 1),
        (("join",), 2, 4),
        (("join",), 3, 1),
        (("join", "other"), 2, 5),
        (("join", "other"), 3, 2),
        (("join",), 4, 1),
    ],
)
def test_a_join_has_four_stores_before_format_3(operators: tuple[OperatorKind, ...], state_format: int, stores: int) -> None:
    assert stores_per_partition(operators, state_format) == stores


def test_a_rename_costs_two_requests_for_each_file_but_those_that_rocksdb_uploads() -> None:
    abortable = checkpoint_traffic(32, 30, CheckpointSettings())
    rename = checkpoint_traffic(32, 30, CheckpointSettings(manager="rename"))
    assert (abortable.requests_per_batch, rename.requests_per_batch) == (66, 132)
    snapshots = 32 * 2880 / 10
    assert rename.requests_per_day == 132 * 2880 + snapshots * (2 * 2 + 2)


def test_without_checksums_there_is_one_file_a_store() -> None:
    assert checkpoint_traffic(200, 10, CheckpointSettings(backend="memory", checksums=False)).objects_per_batch == 202


def test_without_the_changelog_every_batch_is_a_snapshot() -> None:
    result = checkpoint_traffic(32, 30, CheckpointSettings(incremental=False))
    assert (result.objects_per_batch, result.snapshot_objects_per_day) == (2 + 32 * (2 + 2), 0)


def test_a_query_without_state_writes_two_logs() -> None:
    result = checkpoint_traffic(0, 10)
    assert (result.objects_per_batch, result.snapshot_objects_per_day, result.storage_bytes) == (2, 0, 0)


def test_a_checkpoint_that_s3_does_not_take_is_a_violation_with_the_trigger_that_it_needs() -> None:
    busy = checkpoint_traffic(20_000, 1, CheckpointSettings(backend="memory"))
    (result,) = checkpoint_violations(busy, 1)
    assert (result.code, result.error().exit_code) == ("SIZ-044", 3)
    assert result.fix == "trigger: 12s or longer, or fewer shuffle partitions"
    assert checkpoint_violations(checkpoint_traffic(20_000, 12, CheckpointSettings(backend="memory")), 12) == []


def test_rocksdb_takes_native_memory_a_store_or_once_an_executor_where_it_is_bounded() -> None:
    unbounded = state_memory("rocksdb", 10 * GIB, 14, 4, bounded=False)
    assert (unbounded.stores, unbounded.native_mib, unbounded.heap_mib) == (4, 4 * 136, 0)
    assert state_memory("rocksdb", 10 * GIB, 14, 4).native_mib == 500


def test_the_stores_of_an_executor_share_a_cache_of_500_mib_however_few_they_are() -> None:
    assert state_memory("rocksdb", 10 * GIB, 3, 4).native_mib == 500
    assert state_memory("rocksdb", 400 * MIB, 3, 4).native_mib == 128 + 100
    assert state_memory("rocksdb", 4 * MIB, 3, 4).native_mib == 136


def test_the_stores_of_an_executor_share_250_mib_of_write_buffers() -> None:
    assert state_memory("rocksdb", 4 * MIB, 8, 4).native_mib == 250 + 2 * 8
    assert state_memory("rocksdb", 400 * MIB, 16, 4).native_mib == 250 + 100
    assert state_memory("rocksdb", 4 * MIB, 160, 4).native_mib == 500


def test_the_memory_backend_takes_two_versions_of_the_heap() -> None:
    result = state_memory("memory", 4 * GIB, 16, 4)
    assert (result.heap_mib, result.native_mib) == (2048, 0)


def test_without_stores_nothing_is_taken() -> None:
    assert state_memory("rocksdb", 0, 0, 4).native_mib == 0


def test_a_small_state_stays_in_memory_and_a_large_one_goes_to_rocksdb() -> None:
    assert chosen_backend(100 * 1024**2, 4, 8192) == "memory"
    assert chosen_backend(100 * GIB, 4, 8192) == "rocksdb"


@given(needed=st.integers(1, 1_000_000))
def test_the_heap_for_a_state_is_the_least_that_holds_it(needed: int) -> None:
    heap = heap_for_state_mib(needed)
    assert free_heap_mib(heap) >= needed > free_heap_mib(heap - 1)


@given(less=st.integers(0, 10**13), more=st.integers(0, 10**13), executors=st.integers(1, 500), heap=st.integers(450, 200_000))
def test_more_state_never_goes_back_from_rocksdb_to_memory(less: int, more: int, executors: int, heap: int) -> None:
    less, more = sorted((less, more))
    assert (chosen_backend(less, executors, heap), chosen_backend(more, executors, heap)) != ("rocksdb", "memory")


def test_the_settings_of_a_backend_go_together() -> None:
    memory, rocksdb = backend_conf("memory"), backend_conf("rocksdb", incremental=False)
    key = "spark.sql.streaming.join.stateFormatVersion"
    assert (memory[key], rocksdb[key]) == ("2", "4") == (str(join_format("memory")), str(join_format("rocksdb")))
    assert rocksdb["spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"] == "false"
    assert [conf["spark.sql.streaming.stateStore.checkpointFormatVersion"] for conf in (memory, rocksdb)] == ["1", "2"]


def test_each_query_writes_two_logs() -> None:
    assert [checkpoint_traffic(32, 30, queries=queries).objects_per_batch for queries in (1, 2, 3)] == [66, 68, 70]
