"""TaskManagers, subtasks and maximum parallelism, as Flink counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.executors import executor_count
from penstock.sizing.flink.parallelism import max_parallelism, subtasks, task_managers


@pytest.mark.parametrize(("slots", "parallelism", "expected"), [(5, 10, 2), (13, 7, 1), (2, 8, 4), (13, 91, 7)])
def test_task_managers(slots: int, parallelism: int, expected: int) -> None:
    assert task_managers(parallelism, slots) == expected


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (10, 128), (85, 128), (86, 256), (128, 256), (200, 512), (1000, 2048), (21_845, 32_768), (32_768, 32_768)],
)
def test_max_parallelism(parallelism: int, expected: int) -> None:
    # Source: flink-runtime 1.20.3 and 2.1.0, KeyGroupRangeAssignment.computeDefaultMaxParallelism.
    assert max_parallelism(parallelism) == expected


def test_three_operators_at_91_are_273_subtasks() -> None:
    assert subtasks(3, 91) == 273


@given(parallelism=st.integers(1, 32_768), slots=st.integers(1, 1024))
def test_a_plan_has_as_many_executors_as_flink_has_task_managers(parallelism: int, slots: int) -> None:
    assert task_managers(parallelism, slots) == executor_count(parallelism, slots)
    assert max_parallelism(parallelism) >= parallelism
