"""Flink's memory model, compared with results of Flink's own classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.errors import PenstockError
from penstock.sizing.flink.errors import BadFlinkSetting, FlinkMemoryContradicts, FlinkMemoryMissing
from penstock.sizing.flink.memory import MEMORY_KEYS, JobManagerMemory, TaskManagerMemory, job_manager_memory, task_manager_memory
from penstock.sizing.units import MAX_MEMORY_BYTES, MIB

RECORDED = json.loads((Path(__file__).parent / "data" / "flink_memory.json").read_text())["cases"]
TASK_PARTS = ("framework_heap", "task_heap", "framework_off_heap", "task_off_heap", "network", "managed", "metaspace", "overhead")


def memory_of(process: str, settings: dict[str, str]) -> TaskManagerMemory | JobManagerMemory:
    return task_manager_memory(settings) if process == "taskmanager" else job_manager_memory(settings)


def by_name(memory: TaskManagerMemory | JobManagerMemory) -> dict[str, int]:
    parts = {name.removesuffix("_bytes"): size for name, size in memory.model_dump().items()}
    return {"process": memory.process_bytes, "flink": memory.flink_bytes, **parts}


def task_manager(**settings: str) -> TaskManagerMemory:
    return task_manager_memory({f"taskmanager.memory.{key.replace('__', '-').replace('_', '.')}": text for key, text in settings.items()})


@pytest.mark.parametrize(
    ("process_mib", "expected"),
    [
        (1728, (201326592, 268435456, 1342177280, 536870920, 134217730, 402653174, 536870902)),
        (8192, (858993472, 268435456, 7462505664, 2985002310, 746250577, 3462817321, 3597035049)),
        (16384, (1073741824, 268435456, 15837691904, 6335076856, 1583769214, 7650410378, 7784628106)),
    ],
)
def test_a_task_manager_of_a_given_process_size(process_mib: int, expected: tuple[int, ...]) -> None:
    # Source: flink-runtime 1.20.3, ProcessMemoryUtils and TaskExecutorFlinkMemoryUtils.
    memory = task_manager(process_size=f"{process_mib}m")
    result = (memory.overhead_bytes, memory.metaspace_bytes, memory.flink_bytes, memory.managed_bytes, memory.network_bytes)
    assert (*result, memory.task_heap_bytes, memory.heap_bytes) == expected
    assert memory.framework_heap_bytes == memory.framework_off_heap_bytes == 128 * MIB
    assert memory.pod_mib == process_mib


def test_a_job_manager_of_a_given_process_size() -> None:
    # Source: flink-runtime 1.20.3, JobManagerFlinkMemoryUtils.
    memory = job_manager_memory({"jobmanager.memory.process.size": "1600m"})
    assert (memory.overhead_bytes, memory.flink_bytes) == (201326592, 1207959552)
    assert (memory.off_heap_bytes, memory.heap_bytes) == (134217728, 1073741824)


def test_the_recorded_cases_are_of_both_processes_and_of_both_outcomes() -> None:
    kinds = {(case["process"], case["expected"] is None) for case in RECORDED}
    assert kinds == {(process, refused) for process in ("taskmanager", "jobmanager") for refused in (True, False)}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: " ".join(case["settings"].values()))
def test_every_byte_is_where_flink_itself_puts_it(case: dict[str, Any]) -> None:
    if case["expected"] is None:
        with pytest.raises(PenstockError) as error:
            memory_of(case["process"], case["settings"])
        assert error.value.code in {"SIZ-055", "SIZ-056", "SIZ-057"}
    else:
        assert by_name(memory_of(case["process"], case["settings"])) == case["expected"]


def test_a_pod_asks_for_whole_mib_rounded_down() -> None:
    assert task_manager(process_size=str(2048 * MIB + MIB - 1)).pod_mib == 2048


def test_older_keys_count_where_todays_are_not_given() -> None:
    older = task_manager_memory({"taskmanager.memory.process.size": "4g", "taskmanager.memory.size": "512m"})
    assert older.managed_bytes == 512 * MIB
    both = task_manager_memory(
        {"taskmanager.memory.process.size": "4g", "taskmanager.memory.size": "512m", "taskmanager.memory.managed.size": "1g"}
    )
    assert both.managed_bytes == 1024 * MIB


def test_a_process_without_any_total_is_an_error_with_the_three_ways() -> None:
    with pytest.raises(FlinkMemoryMissing) as error:
        task_manager(managed_size="1g")
    assert error.value.path == "taskmanager.memory.process.size"
    assert "taskmanager.memory.task.heap.size and taskmanager.memory.managed.size" in error.value.need


def test_parts_that_exceed_the_process_say_the_least_that_is_enough() -> None:
    with pytest.raises(FlinkMemoryContradicts) as error:
        task_manager(process_size="500m")
    # 0.6 of the rest after overhead and metaspace (192 + 256 MiB) must hold 128 + 128 + 64 MiB.
    assert error.value.fix == '"982m" or more'
    assert task_manager(process_size="982m").task_heap_bytes >= 0
    with pytest.raises(FlinkMemoryContradicts):
        task_manager(process_size="981m")


def test_fractions_that_leave_nothing_at_any_size_are_an_error() -> None:
    with pytest.raises(FlinkMemoryContradicts) as error:
        task_manager(flink_size="4g", managed_fraction="0.8", network_fraction="0.3")
    assert error.value.fix == "reduce the fractions of managed and network memory"


def test_a_value_that_flink_cannot_read_names_its_own_key() -> None:
    with pytest.raises(BadFlinkSetting) as error:
        task_manager_memory({"taskmanager.memory.process.size": "2g", "taskmanager.network.memory.fraction": "half"})
    assert (error.value.path, error.value.given) == ("taskmanager.network.memory.fraction", "half")


@given(process_mib=st.integers(1024, MAX_MEMORY_BYTES // MIB))
def test_the_parts_of_a_task_manager_add_up_to_its_process(process_mib: int) -> None:
    memory = task_manager(process_size=f"{process_mib}m")
    assert sum(by_name(memory)[part] for part in TASK_PARTS) == memory.process_bytes == process_mib * MIB
    assert min(by_name(memory).values()) >= 0


@given(process_mib=st.integers(640, MAX_MEMORY_BYTES // MIB))
def test_the_parts_of_a_job_manager_add_up_to_its_process(process_mib: int) -> None:
    memory = job_manager_memory({"jobmanager.memory.process.size": f"{process_mib}m"})
    assert memory.heap_bytes + memory.off_heap_bytes + memory.metaspace_bytes + memory.overhead_bytes == process_mib * MIB


@given(less=st.integers(1024, 1_000_000), more=st.integers(0, 1_000_000))
def test_a_larger_process_never_has_a_smaller_heap(less: int, more: int) -> None:
    # Overhead and network memory stop growing, or grow slower than the process.
    assert task_manager(process_size=f"{less + more}m").heap_bytes >= task_manager(process_size=f"{less}m").heap_bytes


SIZES = st.one_of(
    st.integers(0, 40_000).map(lambda mib: f"{mib}m"), st.integers(0, 2**70).map(str), st.sampled_from(["", "0", "-1", "1.5g", "2Gi"])
)
FRACTIONS = st.one_of(st.floats(-1, 2).map(str), st.sampled_from(["", "nan", "1", "1e-40", "0.1f"]))


@given(
    settings=st.dictionaries(st.sampled_from(sorted(MEMORY_KEYS)), st.one_of(SIZES, FRACTIONS, st.text(max_size=8)), max_size=6),
    process=st.sampled_from(["taskmanager", "jobmanager"]),
)
def test_whatever_is_set_the_parts_add_up_or_it_is_rejected_with_a_code(settings: dict[str, str], process: str) -> None:
    try:
        parts = by_name(memory_of(process, settings))
    except PenstockError as error:
        assert error.code in {"SIZ-055", "SIZ-056", "SIZ-057"}
        assert error.path
        assert error.need
        assert error.fix
    else:
        assert min(parts.values()) >= 0
        assert parts["process"] == parts["flink"] + parts["metaspace"] + parts["overhead"]
        total = f"{process}.memory.process.size"
        if total in settings and settings[total].endswith("m"):
            assert parts["process"] == int(settings[total][:-1]) * MIB
