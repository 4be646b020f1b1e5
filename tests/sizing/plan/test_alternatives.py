"""Executors of other sizes beside those of the plan."""

from __future__ import annotations

import pytest

from penstock.sizing.plan import plan
from penstock.sizing.plan.alternatives import Alternative, alternatives
from penstock.sizing.targets import ExecutorTarget, Targets
from tests.sizing.clusters import LOAD, PRODUCTION, targets

EXECUTOR = {"memory_mib": 8192, "cpu_millicores": 2000}


def shapes(found: tuple[Alternative, ...]) -> list[tuple[int, int, int]]:
    return [(one.executors, one.slots, one.executor_memory_mib) for one in found]


def test_fifty_executors_of_two_slots_stand_beside_a_hundred_of_one() -> None:
    wanted = targets(100, 2, executor=EXECUTOR, spark_conf={"spark.executor.instances": "50"})
    found = alternatives(wanted, plan(wanted, PRODUCTION), PRODUCTION)
    assert shapes(found) == [(100, 1, 409_600), (50, 2, 409_600), (25, 4, 409_600)]
    assert [one.planned for one in found] == [False, True, False]
    assert found[0].needed_overhead_mib > found[1].needed_overhead_mib > found[2].needed_overhead_mib, "a JVM and a daemon each"


def test_a_shape_has_the_figures_of_its_own_plan() -> None:
    wanted, other = targets(100, 2, executor=EXECUTOR), targets(100, 1, executor={"memory_mib": 4096, "cpu_millicores": 1000})
    made = plan(other, PRODUCTION)
    small = alternatives(wanted, plan(wanted, PRODUCTION), PRODUCTION)[0]
    assert made.nodes is not None and made.cost is not None
    assert (small.nodes, small.usd_per_month) == (made.nodes.staged.nodes, made.cost.total.usd_per_month)
    assert small.needed_overhead_mib == 100 * made.executor_overhead.needed_mib


def test_no_shape_has_more_slots_than_there_are_tasks() -> None:
    wanted = targets(3, 2, executor=EXECUTOR)
    assert [one.slots for one in alternatives(wanted, plan(wanted), None)] == [1, 2, 3]
    alone = targets(1, 1, executor=EXECUTOR)
    assert shapes(alternatives(alone, plan(alone), None)) == [(1, 1, 8192)]


def test_a_load_decides_the_memory_of_each_shape() -> None:
    wanted = Targets(executor=ExecutorTarget(slots=4), load=LOAD, source_topics={"events": None})
    planned = plan(wanted)
    small, *_ = alternatives(wanted, planned, None)
    decided = plan(wanted.model_copy(update={"executor": ExecutorTarget(slots=2)}))
    assert shapes((small,)) == [(decided.totals.executors, 2, decided.totals.executor_memory_mib)]


@pytest.mark.parametrize("conf", [{"spark.executor.cores": "2", "spark.executor.memory": "4g", "spark.executor.memoryOverhead": "1g"}])
def test_a_shape_in_spark_settings_is_scaled(conf: dict[str, str]) -> None:
    wanted = targets(8, 2, executor={"memory_mib": None, "heap_mib": 4096, "cpu_millicores": 2000}, spark_conf=conf)
    assert shapes(alternatives(wanted, plan(wanted), None)) == [(8, 1, 20_480), (4, 2, 20_480), (2, 4, 20_480)]


def test_a_shape_that_spark_cannot_have_is_left_out() -> None:
    """3 slots would be one and a half cores."""
    shared = targets(8, 3, executor={"memory_mib": 8192, "cpu_millicores": 3000}, spark_conf={"spark.task.cpus": "0.5"})
    assert [one.slots for one in alternatives(shared, plan(shared), None)] == [6, 8]
