"""Flink's counts: TaskManagers, subtasks and the maximum parallelism."""

from __future__ import annotations

# Source: Flink 1.20.3, KeyGroupRangeAssignment.DEFAULT_LOWER_BOUND_MAX_PARALLELISM and UPPER_BOUND_MAX_PARALLELISM.
LEAST_MAX_PARALLELISM = 128
MOST_MAX_PARALLELISM = 32_768


def task_managers(parallelism: int, slots: int) -> int:
    """TaskManagers for a parallelism: max(1, ceil(parallelism / slots)).

    Args:
        parallelism: parallelism of the job, 1 or more; a value set in code takes precedence over the configuration.
        slots: ``taskmanager.numberOfTaskSlots``, 1 or more.
    """
    return max(1, -(-parallelism // slots))


def max_parallelism(parallelism: int) -> int:
    """Default number of key groups of a job: the maximum parallelism that its state can be rescaled to.

    Args:
        parallelism: of the operator when its state was first written, 1 to `MOST_MAX_PARALLELISM`.

    Returns:
        The next power of two of one and a half times the parallelism, from `LEAST_MAX_PARALLELISM` to `MOST_MAX_PARALLELISM`.

    Source: Flink 1.20.3 and 2.1.0, KeyGroupRangeAssignment.computeDefaultMaxParallelism.
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), LEAST_MAX_PARALLELISM), MOST_MAX_PARALLELISM)


def subtasks(operators: int, parallelism: int) -> int:
    """Subtasks of a job whose operators all have the job's parallelism; chained operators count as one."""
    return operators * parallelism
