"""The number of executors, and how work is counted."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.executors import executor_count, stages, subtasks, task_slots, tasks_at_a_time


@pytest.mark.parametrize(("slots", "parallelism", "executors"), [(13, 7, 1), (2, 8, 4), (13, 91, 7), (5, 10, 2), (5, 11, 3), (1, 1, 1)])
def test_executors_follow_from_parallelism_and_slots(slots: int, parallelism: int, executors: int) -> None:
    assert executor_count(parallelism, slots) == executors


@given(parallelism=st.integers(1, 32_768), slots=st.integers(1, 1024))
def test_there_are_slots_enough_and_no_executor_too_many(parallelism: int, slots: int) -> None:
    count = executor_count(parallelism, slots)
    assert (count - 1) * slots < parallelism <= count * slots


@pytest.mark.parametrize(
    ("cores", "task_cpus", "slots"),
    [(5, "2", 2), (4, "0.5", 8), (4, "1.5", 2), (4, "0.3", 13), (4, "0.1", 40), (10, "0.7", 14), (1, "2", 0)],
)
def test_slots_are_whole_tasks_in_the_cores(cores: int, task_cpus: str, slots: int) -> None:
    assert task_slots(cores, Decimal(task_cpus)) == slots


def test_flink_counts_every_operator_once_a_parallelism() -> None:
    assert subtasks(3, 91) == 273


def test_reads_run_together_and_the_rest_one_after_another() -> None:
    planned = stages({"a": 10, "b": 6}, 12)
    assert [(stage.name, stage.tasks) for stage in planned] == [("read a", 10), ("read b", 6), ("each stage after a shuffle", 12)]
    assert tasks_at_a_time(100, planned) == 16
    assert tasks_at_a_time(10, planned) == 10


def test_a_job_without_sources_has_its_shuffles() -> None:
    assert tasks_at_a_time(13, stages({}, 7)) == 7
