"""Comparison of Flink's sizing with Spark's."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.flink.comparison import Row, compare
from penstock.sizing.flink.job import FlinkJob
from penstock.sizing.flink.memory import job_manager_memory, task_manager_memory
from penstock.sizing.flink.parallelism import max_parallelism, task_managers
from penstock.sizing.plan import plan
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Parallelism, Targets
from penstock.sizing.units import MIB

Backend = Literal["rocksdb", "hashmap", "other"]


def flink_job(parallelism: int = 91, slots: int = 13, memory_mib: int = 2048, backend: Backend = "rocksdb") -> FlinkJob:
    return FlinkJob(
        name="pay",
        parallelism=parallelism,
        slots=slots,
        task_managers=task_managers(parallelism, slots),
        task_manager=task_manager_memory({"taskmanager.memory.process.size": f"{memory_mib}m"}),
        task_manager_cpu_millicores=1000,
        task_manager_cpu_limit_millicores=1000,
        job_managers=1,
        job_manager=job_manager_memory({"jobmanager.memory.process.size": "2048m"}),
        job_manager_cpu_millicores=1000,
        job_manager_cpu_limit_millicores=1000,
        state_backend=backend,
        checkpoint_interval_ms=60_000,
        max_parallelism=max_parallelism(parallelism),
    )


def rows(job: FlinkJob) -> dict[tuple[str, str], Row]:
    targets = Targets(
        parallelism=Parallelism(value=job.parallelism),
        executor=ExecutorTarget(slots=job.slots, cpu_millicores=job.task_manager_cpu_millicores, memory_mib=job.task_manager.pod_mib),
        driver=DriverTarget(cpu_millicores=job.job_manager_cpu_millicores, memory_mib=job.job_manager.pod_mib),
    )
    return {(row.of, row.name): row for row in compare(job, plan(targets), 60_000)}


def test_seven_task_managers_become_seven_executors_of_the_same_pod() -> None:
    result = rows(flink_job())
    same = [
        ("job", "pods that run tasks"),
        ("job", "task slots in all"),
        ("job", "tasks at a time"),
        ("task", "pod memory"),
        ("task", "CPU request"),
    ]
    assert [(result[row].flink, result[row].spark) for row in same] == [(7, 7), (91, 91), (91, 91), (2048 * MIB, 2048 * MIB), (1000, 1000)]
    assert (result["job", "memory of all pods"].flink, result["job", "CPU of all pods"].flink) == (8 * 2048 * MIB, 8000)


def test_the_same_pod_is_cut_differently() -> None:
    result = rows(flink_job())
    # Of 2048 MiB: Flink's overhead 0.1, metaspace 256 MiB; Spark's overhead 0.4 of a heap of 1463 MiB.
    assert (result["task", "overhead"].flink, result["task", "overhead"].spark) == (214748368, 585 * MIB)
    assert (result["task", "JVM heap"].flink, result["task", "JVM heap"].spark) == (134217728 + 563714445, 1463 * MIB)
    assert result["task", "heap for tasks"].spark == int((1463 - 300) * MIB * 0.6)
    assert (result["task", "metaspace"].flink, result["task", "metaspace"].spark) == (256 * MIB, None)


def test_rocksdb_is_bounded_in_flink_and_counted_by_stores_in_spark() -> None:
    row = rows(flink_job())["task", "state store"]
    assert (row.flink, row.spark) == (665719939, 13 * 136 * MIB)
    assert "13 stores of up to 136 MiB for each stateful operator, in an overhead of 585 MiB" in row.note


def test_state_on_the_heap_has_no_memory_of_its_own() -> None:
    row = rows(flink_job(backend="hashmap"))["task", "state store"]
    assert (row.flink, row.spark) == (None, None)
    assert "635 MiB" in row.note


def test_idle_slots_are_noted() -> None:
    assert rows(flink_job(parallelism=7))["job", "task slots in all"].note == "6 of them idle at a parallelism of 7"


@given(
    parallelism=st.integers(1, 32_768),
    slots=st.integers(1, 1024),
    memory_mib=st.integers(1024, 1_000_000),
    backend=st.sampled_from(["rocksdb", "hashmap", "other"]),
)
def test_every_row_has_words_and_the_parts_of_both_pods_fit(parallelism: int, slots: int, memory_mib: int, backend: Backend) -> None:
    result = rows(flink_job(parallelism, slots, memory_mib, backend))
    assert all(row.note for row in result.values())
    assert result["job", "pods that run tasks"].flink == result["job", "pods that run tasks"].spark
    pod, heap, overhead = (result["task", name] for name in ("pod memory", "JVM heap", "overhead"))
    assert pod.spark is not None
    assert heap.spark is not None
    assert overhead.spark is not None
    assert pod.spark == pod.flink == heap.spark + overhead.spark


@pytest.mark.parametrize("of", ["job", "task", "control"])
def test_each_part_of_the_job_has_rows(of: str) -> None:
    assert any(row == of for row, _ in rows(flink_job()))
