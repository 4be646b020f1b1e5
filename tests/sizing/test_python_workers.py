"""Memory of Python workers, in integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.overhead import executor_overhead
from penstock.sizing.python_workers import DAEMON_MIB, WORKER_MIB, PythonUse, batch_bytes, python_memory

USES = st.lists(st.sampled_from(sorted(WORKER_MIB)), max_size=5)


def test_a_job_without_python_has_neither_workers_nor_a_daemon() -> None:
    assert python_memory((), 4, 10**6).total_mib == 0


def test_each_operator_has_a_worker_in_each_slot() -> None:
    taken = python_memory(("keyed", "client"), 4, 0)
    assert (taken.workers, taken.workers_mib, taken.daemon_mib, taken.batches_mib) == (8, 4 * (45 + 80), 150, 0)


def test_a_batch_has_ten_thousand_records_unless_a_task_reads_less() -> None:
    assert batch_bytes(240) == 2_400_000
    assert batch_bytes(240, 1_000) == 1_000
    taken = python_memory(("udf",), 4, batch_bytes(2_000))
    # 20 MB: 9 copies are 172 MiB of a worker; 5 copies for each of 4 workers are 382 MiB of the JVM.
    assert (taken.workers_mib, taken.batches_mib) == (4 * (43 + 172), 382)


@given(uses=USES, slots=st.integers(1, 64), batch=st.integers(0, 10**9))
def test_more_slots_operators_or_bytes_never_take_less(uses: list[PythonUse], slots: int, batch: int) -> None:
    taken = python_memory(uses, slots, batch).total_mib
    assert python_memory(uses, slots + 1, batch).total_mib >= taken
    assert python_memory([*uses, "udf"], slots, batch).total_mib > taken
    assert python_memory(uses, slots, batch + 10**6).total_mib >= taken


def test_an_overhead_is_the_sum_of_its_parts() -> None:
    parts = executor_overhead(1024, 408, python_memory(("client",), 4, 2_400_000))
    assert parts.needed_mib == parts.jvm_mib + parts.rocksdb_mib + parts.python_mib + parts.arrow_mib
    assert (parts.jvm_mib, parts.python_workers) == (384, 4)
    assert parts.python_mib == DAEMON_MIB + 4 * (80 + 21)
