"""From targets to the plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from penstock.sizing.errors import PenstockError, Place
from penstock.sizing.file_splits import FilesInput
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.spark_pods import driver_memory, executor_memory
from penstock.sizing.spark_settings import read_settings
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, Targets
from tests.sizing.mixed_targets import mixed_targets

EXECUTOR = ExecutorTarget(slots=5, cpu_millicores=4000, memory_mib=16384)


def targets(asked: int = 10, **changes: Any) -> Targets:
    return Targets(**{"parallelism": Parallelism(value=asked), "executor": EXECUTOR, **changes})


def codes(error: pytest.ExceptionInfo[PenstockError]) -> list[str]:
    return [fault.code for fault in error.value.errors]


def pods_of(planned: Plan, mode: str) -> tuple[int, int]:
    """Memory of the executor's and the driver's pod as Spark computes it from the plan's own sparkConf."""
    settings, faults = read_settings({**planned.spark_conf, "spark.submit.deployMode": mode})
    assert not faults
    assert settings.executor.heap_mib is not None
    assert settings.driver.heap_mib is not None
    return executor_memory(settings, settings.executor.heap_mib).total_mib, driver_memory(settings, settings.driver.heap_mib).total_mib


def test_five_slots_and_a_parallelism_of_ten_are_two_executors() -> None:
    planned = plan(targets(driver=DriverTarget(cpu_millicores=2000, memory_mib=2048)))
    totals = planned.totals
    assert (totals.executors, totals.pods, totals.executor_memory_mib, totals.executor_cpu_millicores) == (2, 3, 32 * 1024, 8000)
    assert (planned.pods.driver.count, planned.pods.driver.memory_mib, planned.pods.driver.request_cpu_millicores) == (1, 2048, 2000)
    assert (planned.per_slot.memory_mib, planned.per_slot.cpu_millicores) == (3276, 800)
    assert planned.tasks_at_a_time == 10
    assert planned.feasible


@pytest.mark.parametrize(("slots", "parallelism", "executors"), [(13, 7, 1), (2, 8, 4)])
def test_executors_follow_from_slots_and_parallelism(slots: int, parallelism: int, executors: int) -> None:
    planned = plan(targets(parallelism, executor=ExecutorTarget(slots=slots, memory_mib=16384)))
    assert planned.totals.executors == executors
    assert planned.spark_conf["spark.executor.instances"] == str(executors)


def test_a_parallelism_from_the_code_makes_seven_executors_and_91_tasks_at_a_time() -> None:
    parallelism = Parallelism(value=91, source="code")
    planned = plan(targets(parallelism=parallelism, operators=Operators(count=3), executor=ExecutorTarget(slots=13, memory_mib=16384)))
    assert (planned.totals.executors, planned.totals.subtasks, planned.tasks_at_a_time) == (7, 273, 91)
    assert planned.parallelism.source == "code"


@pytest.mark.parametrize(("mode", "pod_mib"), [("client", 4505), ("cluster", 5734)])
def test_a_heap_gives_the_pod_that_spark_makes_of_it(mode: str, pod_mib: int) -> None:
    executor = ExecutorTarget(heap_mib=4096, cpu_millicores=2000)
    planned = plan(targets(executor=executor, spark_conf={"spark.submit.deployMode": mode}))
    assert (planned.pods.executor.memory_mib, planned.pods.executor.slots) == (pod_mib, 2)
    assert pods_of(planned, "client")[0] == pods_of(planned, "cluster")[0] == pod_mib


def test_the_plan_writes_every_setting_that_makes_a_pod() -> None:
    conf = plan(targets(driver=DriverTarget(cpu_millicores=1500, memory_mib=2048), spark_conf={"spark.ui.port": "4050"})).spark_conf
    assert conf == {
        "spark.driver.cores": "2",
        "spark.driver.memory": "1280m",
        "spark.driver.memoryOverhead": "768m",
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.cores": "5",
        "spark.executor.instances": "2",
        "spark.executor.memory": "11703m",
        "spark.executor.memoryOverhead": "4681m",
        "spark.kubernetes.driver.request.cores": "1500m",
        "spark.kubernetes.executor.request.cores": "4",
        "spark.sql.shuffle.partitions": "10",
        "spark.submit.deployMode": "client",
        "spark.ui.port": "4050",
    }


def test_shuffle_partitions_of_the_users_stay() -> None:
    planned = plan(targets(spark_conf={"spark.sql.shuffle.partitions": "200"}))
    assert planned.spark_conf["spark.sql.shuffle.partitions"] == "200"
    assert (planned.stages[-1].tasks, planned.tasks_at_a_time) == (200, 10)
    assert "each stage after a shuffle: 200 tasks run in several waves on 10 slots" in planned.notes


def test_a_topic_without_partitions_gets_the_parallelism() -> None:
    planned = plan(targets(source_topics={"a": None, "b": 3}, sink_topics={"out": 1}))
    assert planned.kafka.topics == {"a": 10, "b": 3, "out": 1}
    assert [stage.tasks for stage in planned.stages] == [10, 3, 10]
    assert "topic b has 3 partitions, so only 3 of 10 tasks read it" in planned.notes


def test_idle_slots_are_noted() -> None:
    planned = plan(targets(7, executor=ExecutorTarget(slots=13, memory_mib=16384)))
    assert "13 slots, 7 used: the others are idle" in planned.notes


def test_a_task_of_two_cores_halves_the_slots() -> None:
    planned = plan(targets(10, executor=ExecutorTarget(slots=5, memory_mib=16384), spark_conf={"spark.task.cpus": "2"}))
    assert (planned.pods.executor.slots, planned.totals.executors) == (2, 5)
    assert planned.spark_conf["spark.executor.cores"] == "5"


@pytest.mark.parametrize(
    ("executor", "conf", "slots", "millicores"),
    [
        ({}, {}, 1, 1000),
        ({"slots": 3}, {}, 3, 3000),
        ({"cpu_millicores": 4500}, {}, 4, 4500),
        ({"cpu_millicores": 500}, {}, 1, 500),
        ({}, {"spark.executor.cores": "6"}, 6, 6000),
        ({"slots": 6}, {"spark.executor.cores": "6"}, 6, 6000),
        ({"slots": 6}, {"spark.kubernetes.executor.request.cores": "2500m"}, 6, 2500),
    ],
)
def test_slots_and_cores_follow_from_one_another(executor: dict[str, Any], conf: dict[str, str], slots: int, millicores: int) -> None:
    pod = plan(targets(executor=ExecutorTarget(memory_mib=8192, **executor), spark_conf=conf)).pods.executor
    assert (pod.slots, pod.request_cpu_millicores) == (slots, millicores)


def test_a_driver_without_settings_is_small_and_noted() -> None:
    planned = plan(targets())
    assert (planned.pods.driver.memory_mib, planned.pods.driver.request_cpu_millicores) == (2048, 1000)
    assert "the driver's memory is not set: its pod gets 2048 MiB" in planned.notes


def test_a_driver_may_be_described_by_settings_alone() -> None:
    conf = {"spark.driver.memory": "4g", "spark.driver.cores": "2", "spark.kubernetes.driver.limit.cores": "3"}
    driver = plan(targets(spark_conf=conf)).pods.driver
    assert (driver.memory_mib, driver.heap_mib, driver.request_cpu_millicores, driver.limit_cpu_millicores) == (4505, 4096, 2000, 3000)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.cores", "4"),
        ("spark.executor.memory", "16g"),
        ("spark.kubernetes.executor.request.cores", "5"),
        ("spark.executor.instances", "3"),
        ("spark.dynamicAllocation.enabled", "true"),
        ("spark.driver.cores", "1"),
        ("spark.driver.memory", "2g"),
        ("spark.kubernetes.driver.request.cores", "1"),
    ],
)
def test_a_setting_that_contradicts_a_field_is_an_error_with_its_line(key: str, value: str) -> None:
    origin = Origin(at=Place(file="spec.yaml", line=9, column=5), path=f"spec.sparkConf.{key}", given=value)
    given_targets = targets(
        driver=DriverTarget(cpu_millicores=2000, memory_mib=2048), spark_conf={key: value}, origins={f"spark_conf.{key}": origin}
    )
    with pytest.raises(PenstockError) as error:
        plan(given_targets)
    assert codes(error) == ["SIZ-003"]
    assert error.value.exit_code == 2
    assert str(error.value.at) == "spec.yaml:9"
    assert error.value.path == f"spec.sparkConf.{key}"
    assert error.value.need


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.cores", "5"),
        ("spark.executor.memory", "11703m"),
        ("spark.kubernetes.executor.request.cores", "4000m"),
        ("spark.executor.instances", "2"),
        ("spark.dynamicAllocation.enabled", "false"),
        ("spark.driver.memory", "1280m"),
    ],
)
def test_a_setting_that_says_the_same_as_a_field_is_fine(key: str, value: str) -> None:
    driver = DriverTarget(memory_mib=2048)
    assert plan(targets(driver=driver, spark_conf={key: value})).spark_conf == plan(targets(driver=driver)).spark_conf


def test_all_that_contradicts_is_found_at_once() -> None:
    conf = {"spark.executor.cores": "4", "spark.executor.instances": "9", "spark.kubernetes.executor.limit.cores": "1"}
    with pytest.raises(PenstockError) as error:
        plan(targets(spark_conf=conf))
    assert sorted(codes(error)) == ["SIZ-003", "SIZ-003", "SIZ-006"]


def test_a_limit_below_the_request_is_rejected() -> None:
    with pytest.raises(PenstockError) as error:
        plan(targets(spark_conf={"spark.kubernetes.executor.limit.cores": "3500m"}))
    assert codes(error) == ["SIZ-006"]
    assert plan(targets(spark_conf={"spark.kubernetes.executor.limit.cores": "6"})).pods.executor.limit_cpu_millicores == 6000


def test_an_executor_without_a_slot_is_rejected() -> None:
    with pytest.raises(PenstockError) as error:
        plan(targets(executor=ExecutorTarget(slots=1, memory_mib=8192), spark_conf={"spark.task.cpus": "2"}))
    assert codes(error) == ["SIZ-001"]
    assert error.value.need == "spark.executor.cores >= spark.task.cpus = 2"


def test_what_spark_would_refuse_is_rejected() -> None:
    with pytest.raises(PenstockError) as error:
        plan(targets(spark_conf={"spark.executor.memoryOverhead": "1.5g", "spark.task.cpus": "none"}))
    assert codes(error) == ["SIZ-002", "SIZ-002"]


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"executor": ExecutorTarget(memory_mib=833)}, 'memory: "834m" or more'),
        ({"executor": ExecutorTarget(memory_mib=1)}, 'memory: "834m" or more'),
        ({"executor": ExecutorTarget(heap_mib=449)}, 'heap: "450m" or more'),
        ({"driver": DriverTarget(memory_mib=500)}, 'memory: "834m" or more'),
        ({"spark_conf": {"spark.executor.memoryOverhead": "16g"}}, 'memory: "16834m" or more'),
        ({"spark_conf": {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "16g"}}, 'memory: "17218m" or more'),
        ({"spark_conf": {"spark.executor.memoryOverheadFactor": "100000"}}, 'memory: "45000450m" or more'),
    ],
)
def test_a_heap_below_sparks_least_is_infeasible_with_the_least_that_suffices(changes: dict[str, Any], fix: str) -> None:
    planned = plan(targets(**changes))
    assert not planned.feasible
    assert [(violation.code, violation.fix) for violation in planned.violations] == [("SIZ-004", fix)]


@pytest.mark.parametrize("conf", [{}, {"spark.executor.memoryOverhead": "1g"}, {"spark.executor.memoryOverheadFactor": "0.7"}])
def test_the_least_pod_that_an_error_names_is_feasible_and_one_less_is_not(conf: dict[str, str]) -> None:
    small = plan(targets(executor=ExecutorTarget(memory_mib=1), spark_conf=conf))
    least = int(str(small.violations[0].fix).split('"')[1].removesuffix("m"))
    assert plan(targets(executor=ExecutorTarget(memory_mib=least), spark_conf=conf)).feasible
    assert not plan(targets(executor=ExecutorTarget(memory_mib=least - 1), spark_conf=conf)).feasible


def test_a_factor_that_rounds_past_the_pod_is_infeasible_with_its_neighbours() -> None:
    conf = {"spark.executor.memoryOverheadFactor": "0.5"}
    unmet = [size for size in range(2000, 2010) if not plan(targets(executor=ExecutorTarget(memory_mib=size), spark_conf=conf)).feasible]
    assert unmet == [2000, 2003, 2006, 2009]
    (violation,) = plan(targets(executor=ExecutorTarget(memory_mib=2003), spark_conf=conf)).violations
    assert violation.code == "SIZ-005"
    assert violation.fix == 'memory: "2002m" or "2004m", or an absolute memoryOverhead instead of the factor'


def test_a_small_heap_says_which_collector_it_needs() -> None:
    notes = " ".join(plan(targets(executor=ExecutorTarget(memory_mib=840))).notes)
    assert "the executor's heap of 456 MiB suffices only with -XX:+UseG1GC" in notes


def test_pythons_memory_says_what_cluster_mode_would_make_of_it() -> None:
    planned = plan(targets(spark_conf={"spark.executor.pyspark.memory": "2g"}))
    assert planned.pods.executor.memory_mib == 16384
    assert any("18432 MiB" in note for note in planned.notes)
    assert pods_of(planned, "cluster")[0] == 18432


def test_every_number_of_the_plan_is_explained() -> None:
    files = FilesInput(files=16, size_bytes=2 * 1024**3, files_per_batch=5)
    planned = plan(targets(source_topics={"a": None}, sink_topics={"out": 2}, files={"lines": files}))
    explained = {explanation.number: explanation.value for explanation in planned.explain}
    document = planned.model_dump(mode="json", by_alias=True, exclude={"explain", "schema_version", "notes", "violations"})
    numbers = dict(_numbers(document, ""))
    left_out = {"pods.driver.count", "pods.executor.count", "pods.driver.offHeapMib", "pods.driver.pysparkMib"}
    assert {path: value for path, value in numbers.items() if path not in left_out} == {
        path: value for path, value in explained.items() if value is not None
    }
    assert all(explanation.rule for explanation in planned.explain)


def _numbers(value: Any, path: str) -> list[tuple[str, int | float]]:
    if isinstance(value, dict):
        return [number for key, inner in value.items() for number in _numbers(inner, f"{path}.{key}".lstrip("."))]
    if isinstance(value, list):
        return [number for index, inner in enumerate(value) for number in _numbers(inner, f"{path}[{index}]")]
    return [(path, value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_the_json_has_the_fields_that_readers_were_promised() -> None:
    document = plan(targets()).model_dump(mode="json", by_alias=True)
    assert set(document) == {
        "schemaVersion", "parallelism", "totals", "pods", "perSlot", "executorOverhead", "driverNeeds",
        "executorStorage", "driverStorage", "executorDisk", "stages", "files", "tasksAtATime",
        "sparkConf", "kafka", "nodes", "cost",
        "state", "throughput", "readLimit", "spot", "range", "feasible", "violations", "notes", "explain",
    }  # fmt: skip
    assert set(document["totals"]) == {"executors", "pods", "executorMemoryMib", "executorCpuMillicores", "subtasks"}
    assert document["pods"]["driver"]["slots"] is None
    assert document["pods"]["driver"]["limitCpuMillicores"] is None
    assert set(document["pods"]["driver"]) == set(document["pods"]["executor"])
    assert [document[name] for name in ("nodes", "cost", "throughput", "spot", "range")] == [None] * 5
    assert set(document["state"]) == {"backend", "stores", "stateBytes", "executorHeapMib", "executorNativeMib", "checkpoint"}


def test_targets_and_plans_cannot_be_changed() -> None:
    planned = plan(targets())
    with pytest.raises(ValidationError):
        planned.feasible = False  # type: ignore[misc]


@given(given_targets=mixed_targets())
def test_the_plans_settings_make_exactly_the_plans_pods_in_either_mode(given_targets: Targets) -> None:
    planned = plan(given_targets)
    pods = (planned.pods.executor.memory_mib, planned.pods.driver.memory_mib)
    assert pods_of(planned, "client") == pods
    assert pods_of(planned, "cluster") == pods
    if planned.feasible:
        assert pods[0] == (given_targets.executor.memory_mib or pods[0])
        assert pods[1] == (given_targets.driver.memory_mib or pods[1])


@given(given_targets=mixed_targets())
def test_a_plan_made_of_a_plans_settings_is_the_same_plan(given_targets: Targets) -> None:
    planned = plan(given_targets)
    if not planned.feasible:
        return
    again = plan(given_targets.model_copy(update={"spark_conf": planned.spark_conf}))
    assert again.spark_conf == planned.spark_conf
    assert again.pods == planned.pods
