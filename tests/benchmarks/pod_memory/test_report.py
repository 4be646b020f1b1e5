from __future__ import annotations

from typing import Any

import pytest

from benchmarks.pod_memory.disk import DiskUse
from benchmarks.pod_memory.parts import Parts
from benchmarks.pod_memory.report import PodMemory, difference, joined, measured_parts, planned_parts, summary, table
from benchmarks.pod_memory.run import MeasuredRun, Pod
from benchmarks.streaming.results import Machine

MACHINE = Machine("2026-11-25", 2, 23.5, "a processor", "Linux 6", "Java 17", "3.11", "4.3.0")
JVM = {"class_mib": 150, "code_mib": 40, "threads_mib": 10, "collector_mib": 80, "direct_mib": 30, "jvm_other_mib": 50, "native_mib": 20}
PARTS = Parts(heap_mib=1024, rocksdb_mib=160, python_mib=200, python_processes=3, **JVM)
STORAGE = {"stateMib": 40, "shuffleMib": 24, "spillMib": 24, "uploadsMib": 10, "filesMib": 1024, "logsMib": 100}
PLAN: dict[str, Any] = {
    "pods": {"driver": {"heapMib": 1463, "overheadMib": 585}, "executor": {"heapMib": 1024, "overheadMib": 914}},
    "executorOverhead": {"jvmMib": 384, "arrowMib": 6, "rocksdbMib": 272, "pythonMib": 252, "neededMib": 914},
    "executorStorage": STORAGE,
    "driverStorage": STORAGE,
}


def _pod(name: str) -> Pod:
    used = {"rss_mib": 1700.0, "median_rss_mib": 1600.0, "working_set_mib": 1800.0, "median_working_set_mib": 1650.0}
    return Pod(name=name, limit_mib=1938, parts=PARTS, disk=DiskUse(state_mib=9), kills=0, **used)


def _run(job: str, *, full_heap: bool = True, records: int = 100) -> MeasuredRun:
    pods = [_pod("driver"), _pod("worker-1")]
    return MeasuredRun(job=job, full_heap=full_heap, seconds=90, records=records, micro_batches=9, plan=PLAN, pods=pods)


def test_a_pod_has_the_same_parts_measured_and_planned() -> None:
    run = _run("a")
    executor = run.pods[1]
    measured, planned = measured_parts(executor), planned_parts(run, executor)
    assert list(measured) == list(planned)
    assert measured == {"heap": 1024, "JVM with its buffers": 380, "RocksDB": 160, "Python": 200, "besides the heap": 740}
    assert planned == {"heap": 1024, "JVM with its buffers": 390, "RocksDB": 272, "Python": 252, "besides the heap": 914}


@pytest.mark.parametrize(("measured", "planned", "said"), [(115, 100, "+15%"), (80, 100, "-20%"), (5, 0, "-")])
def test_differences_are_in_percent_of_the_plan(measured: float, planned: float, said: str) -> None:
    assert difference(measured, planned) == said


def test_the_table_compares_a_total_with_heap_and_overhead() -> None:
    lines = table(_run("a")).splitlines()
    assert "| worker-1 | working set, highest | 1,800 | 1,938 | -7% |" in lines
    assert "| driver | working set, highest | 1,800 | 2,048 | -12% |" in lines
    assert "| worker-1 | disk: state | 9 | 40 | -78% |" in lines


def test_a_job_that_is_measured_again_replaces_its_earlier_run() -> None:
    before = PodMemory(machine=MACHINE, runs=[_run("a"), _run("a", full_heap=False), _run("b")])
    after = joined(before, PodMemory(machine=MACHINE, runs=[_run("a", records=200)]))
    assert [(run.job, run.full_heap, run.records) for run in after.runs] == [("a", False, 100), ("b", True, 100), ("a", True, 200)]


def test_the_tables_of_the_documents_have_the_driver_and_the_larger_executor() -> None:
    larger = _pod("worker-2").model_copy(update={"working_set_mib": 1900.0})
    run = _run("a").model_copy(update={"pods": [_pod("driver"), _pod("worker-1"), larger]})
    lines = summary(PodMemory(machine=MACHINE, runs=[run])).splitlines()
    assert "| a | driver | 2,048 | 1,600 | 1,700 | 1,650 | 1,800 | -12% | 0 |" in lines
    assert "| a | executor | 1,938 | 1,600 | 1,700 | 1,650 | 1,900 | -2% | 0 |" in lines
    assert "| a | executor | 380 / 390 | 160 / 272 | 200 / 252 | 740 / 914 |" in lines
    assert "| a | executor | 9 / 40 | 0 / 24 | 0 / 24 | 0 / 10 | 0 / 1,024 | 0 / 100 |" in lines
