"""The memory of a driver."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.driver import driver_needs, remembered_stages
from penstock.sizing.executors import stages
from penstock.sizing.plan import plan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.targets import DriverTarget
from tests.sizing.clusters import targets

NONE = SparkSettings()
KEPT = "spark.ui.retainedStages"


def test_a_small_job_has_the_default_driver_and_sparks_own_memory_of_stages() -> None:
    made = plan(targets(10, source_topics={"a": None}))
    assert made.pods.driver.memory_mib == 2048
    assert KEPT not in made.spark_conf
    assert made.driver_needs.heap_mib < made.pods.driver.heap_mib
    assert not any("driver's heap" in note for note in made.notes)


def test_thousands_of_tasks_take_a_larger_driver_that_remembers_fewer_stages() -> None:
    made = plan(targets(13_294, source_topics={"a": None}).model_copy(update={"driver": DriverTarget()}))
    assert made.spark_conf[KEPT] == "37"
    assert made.driver_needs.batch_tasks == 2 * 13_294
    assert made.driver_needs.remembered_tasks == 37 * 13_294
    assert made.pods.driver.memory_mib >= made.driver_needs.heap_mib * 7 // 5
    (default,) = (note for note in made.notes if "memory is not set" in note)
    assert str(made.pods.driver.memory_mib) in default


def test_a_driver_of_a_given_size_that_is_too_small_is_noted_and_stays_as_it_is() -> None:
    wanted = targets(13_294, source_topics={"a": None}, spark_conf={KEPT: "1000"})
    made = plan(wanted)
    assert made.pods.driver.memory_mib == 2048
    assert made.spark_conf[KEPT] == "1000"
    (note,) = (note for note in made.notes if "driver's heap" in note)
    assert note == (
        f"the driver's heap of 1,280 MiB is less than the {made.driver_needs.heap_mib:,} MiB that it may need for 26,588 tasks of a "
        "micro-batch and 13,294,000 of earlier ones that Spark's status store keeps"
    )
    # As the note says: that heap, and the note is gone.
    enough = wanted.model_copy(update={"driver": DriverTarget(heap_mib=made.driver_needs.heap_mib)})
    assert not any("driver's heap" in note for note in plan(enough).notes)


@given(tasks=st.integers(1, 32_768), queries=st.integers(1, 20))
def test_more_tasks_or_queries_never_take_a_smaller_heap(tasks: int, queries: int) -> None:
    fixed = SparkSettings(retained_stages=100)
    one = driver_needs(stages({"a": tasks}, tasks), queries, fixed).heap_mib
    assert driver_needs(stages({"a": tasks + 1}, tasks + 1), queries, fixed).heap_mib >= one
    assert driver_needs(stages({"a": tasks}, tasks), queries + 1, fixed).heap_mib > one


@given(tasks=st.integers(1, 32_768))
def test_the_driver_remembers_between_ten_stages_and_sparks_thousand(tasks: int) -> None:
    assert 10 <= remembered_stages(stages({"a": tasks}, tasks), NONE) <= 1_000
