"""Spark's pods, and heaps for pods of a given size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.executors import task_slots
from penstock.sizing.spark_pods import (
    MIN_HEAP_MIB,
    driver_memory,
    executor_memory,
    fit_driver,
    fit_executor,
    planned_driver,
    planned_executor,
)
from penstock.sizing.spark_settings import SparkSettings, read_settings

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/spark_pods.json").read_text())["cases"]
_KEYS = {
    "memory": "spark.{}.memory",
    "cores": "spark.{}.cores",
    "overhead": "spark.{}.memoryOverhead",
    "min_overhead": "spark.{}.minMemoryOverhead",
    "factor": "spark.{}.memoryOverheadFactor",
    "request_cores": "spark.kubernetes.{}.request.cores",
    "pyspark": "spark.executor.pyspark.memory",
    "task_cpus": "spark.task.cpus",
    "offheap_enabled": "spark.memory.offHeap.enabled",
    "offheap_bytes": "spark.memory.offHeap.size",
}


def settings_of(conf: dict[str, str]) -> SparkSettings:
    settings, faults = read_settings(conf)
    assert not faults
    return settings


def _conf(case: dict[str, Any]) -> dict[str, str]:
    kind = "executor" if case["id"].startswith("S") else "driver"
    conf = {_KEYS[name].format(kind): str(value) for name, value in case["input"].items() if name in _KEYS}
    return {**conf, "spark.submit.deployMode": "client" if case["input"].get("client_mode") else "cluster"}


@pytest.mark.parametrize("case", [case for case in CASES if case["id"].startswith("S")], ids=lambda case: str(case["id"]))
def test_an_executor_pod_is_as_large_as_spark_makes_it(case: dict[str, Any]) -> None:
    settings, expected = settings_of(_conf(case)), case["expected"]
    assert settings.executor.heap_mib is not None
    assert settings.executor.cores is not None
    pod = executor_memory(settings, settings.executor.heap_mib, python=case["input"].get("python", False))
    assert (pod.total_mib, pod.overhead_mib) == (expected["memory_mib"], expected["overhead_mib"])
    assert task_slots(settings.executor.cores, settings.task_cpus) == expected["slots"]
    request = settings.executor.request_cpu_millicores
    assert expected["cpu"] == (str(settings.executor.cores) if request is None else f"{request}m")


@pytest.mark.parametrize("case", [case for case in CASES if case["id"].startswith("D")], ids=lambda case: str(case["id"]))
def test_a_driver_pod_is_as_large_as_spark_makes_it(case: dict[str, Any]) -> None:
    settings, expected = settings_of(_conf(case)), case["expected"]
    assert settings.driver.heap_mib is not None
    pod = driver_memory(settings, settings.driver.heap_mib, python=case["input"]["python"])
    assert (pod.total_mib, pod.overhead_mib) == (expected["memory_mib"], expected["overhead_mib"])


@pytest.mark.parametrize(("mode", "pod_mib"), [("client", 4505), ("cluster", 5734)])
def test_spark_gives_4g_another_pod_in_each_mode(mode: str, pod_mib: int) -> None:
    assert executor_memory(settings_of({"spark.submit.deployMode": mode}), 4096).total_mib == pod_mib


def test_the_executors_own_factor_wins_over_that_of_both() -> None:
    both = {"spark.kubernetes.memoryOverheadFactor": "0.5"}
    assert executor_memory(settings_of(both), 4096).overhead_mib == 2048
    assert executor_memory(settings_of({**both, "spark.executor.memoryOverheadFactor": "0.25"}), 4096).overhead_mib == 1024


def test_a_factor_of_the_driver_does_not_reach_executors() -> None:
    assert executor_memory(settings_of({"spark.driver.memoryOverheadFactor": "0.9"}), 16384).overhead_mib == 1638


def test_off_heap_memory_is_not_added_to_a_driver() -> None:
    settings = settings_of({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "2g"})
    assert driver_memory(settings, 4096).total_mib == 4505
    assert executor_memory(settings, 4096).total_mib == 4505 + 2048


@pytest.mark.parametrize(
    ("pod_mib", "heap_mib", "overhead_mib"), [(16384, 11703, 4681), (2048, 1463, 585), (834, 450, 384), (1344, 960, 384)]
)
def test_a_pod_leaves_room_beside_the_largest_heap(pod_mib: int, heap_mib: int, overhead_mib: int) -> None:
    pod = fit_executor(SparkSettings(), pod_mib)
    assert (pod.heap_mib, pod.overhead_mib) == (heap_mib, overhead_mib)


@pytest.mark.parametrize(
    ("pod_mib", "heap_mib", "overhead_mib"), [(4096, 2926, 1170), (2048, 1280, 768), (1276, 508, 768), (1024, 507, 517), (834, 450, 384)]
)
def test_a_driver_has_room_for_its_jvm_and_its_python_process(pod_mib: int, heap_mib: int, overhead_mib: int) -> None:
    pod = fit_driver(SparkSettings(), pod_mib)
    assert (pod.heap_mib, pod.overhead_mib) == (heap_mib, overhead_mib)


def test_an_overhead_of_the_users_is_the_drivers() -> None:
    assert fit_driver(settings_of({"spark.driver.memoryOverhead": "512m"}), 2048).overhead_mib == 512


def test_the_python_workers_have_room_in_either_mode() -> None:
    python = {"spark.executor.pyspark.memory": "8g"}
    client = fit_executor(settings_of(python), 16384)
    cluster = fit_executor(settings_of({**python, "spark.submit.deployMode": "cluster"}), 16384)
    assert (client.overhead_mib, client.pyspark_mib, client.total_mib) == (8192, 0, 16384)
    assert (cluster.pyspark_mib, cluster.total_mib) == (8192, 16384)


POD = st.integers(1, 2_000_000)
FACTOR = st.floats(0.001, 20)


@st.composite
def overhead_conf(draw: st.DrawFn, kind: str) -> dict[str, str]:
    """Any combination of settings that affect an overhead."""
    conf = {"spark.submit.deployMode": draw(st.sampled_from(["client", "cluster"]))}
    if draw(st.booleans()):
        conf[f"spark.{kind}.minMemoryOverhead"] = f"{draw(st.integers(0, 4096))}m"
    if draw(st.booleans()):
        conf |= {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": f"{draw(st.integers(1, 8192))}m"}
    if draw(st.booleans()):
        conf["spark.executor.pyspark.memory"] = f"{draw(st.integers(0, 8192))}m"
    return conf


@given(pod_mib=POD, conf=overhead_conf("executor"))
def test_without_a_rule_of_the_users_every_pod_is_met_to_the_mib(pod_mib: int, conf: dict[str, str]) -> None:
    settings = settings_of(conf)
    pod = fit_executor(settings, pod_mib)
    smallest = planned_executor(settings, 0).total_mib
    assert pod.total_mib == max(pod_mib, smallest)
    assert (
        pod.heap_mib == 0
        or planned_executor(settings, pod.heap_mib).total_mib <= pod_mib < planned_executor(settings, pod.heap_mib + 1).total_mib
    )


@given(pod_mib=POD, factor=FACTOR, kind=st.sampled_from(["executor", "driver"]))
def test_a_factor_of_the_users_is_never_bent(pod_mib: int, factor: float, kind: str) -> None:
    settings = settings_of({f"spark.{kind}.memoryOverheadFactor": str(factor)})
    fit, rule = (fit_executor, planned_executor) if kind == "executor" else (fit_driver, planned_driver)
    pod = fit(settings, pod_mib)
    assert pod.overhead_mib == max(int(factor * pod.heap_mib), 384)
    assert pod.total_mib <= max(pod_mib, 384)
    assert rule(settings, pod.heap_mib + 1).total_mib > pod_mib


@given(heap_mib=st.integers(MIN_HEAP_MIB, 1_000_000), overhead_mib=st.integers(0, 100_000))
def test_an_overhead_of_the_users_leaves_the_rest_to_the_heap(heap_mib: int, overhead_mib: int) -> None:
    settings = settings_of({"spark.executor.memoryOverhead": f"{overhead_mib}m"})
    assert fit_executor(settings, heap_mib + overhead_mib).heap_mib == heap_mib
