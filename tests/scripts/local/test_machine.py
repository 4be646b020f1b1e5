"""What of a plan a machine can give, and that every cut is said."""

from __future__ import annotations

import os

from penstock.scripts.local.machine import cut, cut_to_executors, too_many
from penstock.scripts.local.spark_cluster import ExecutorSize
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Parallelism, Targets


def _plan(parallelism: int, slots: int, memory_mib: int) -> Plan:
    executor = ExecutorTarget(slots=slots, cpu_millicores=1000 * slots, memory_mib=memory_mib)
    driver = DriverTarget(cpu_millicores=1000, memory_mib=2048)
    return plan(Targets(parallelism=Parallelism(value=parallelism), executor=executor, driver=driver))


def _heaps_mib(planned: Plan) -> int:
    return planned.pods.driver.heap_mib + planned.totals.executors * planned.pods.executor.heap_mib


def test_a_plan_that_fits_is_not_cut() -> None:
    planned = _plan(4, 2, 2048)
    machine = cut(planned, cores=8, memory_mib=64 * 1024)
    assert machine.master == "local[4]"
    assert machine.spark_conf == {"spark.driver.memory": f"{_heaps_mib(planned)}m"}
    assert machine.cuts == ()


def test_slots_are_cut_to_twice_the_cores_and_it_is_said() -> None:
    machine = cut(_plan(10, 5, 2048), cores=2, memory_mib=64 * 1024)
    assert machine.master == "local[4]"
    assert machine.cuts == ("10 slots to 4, twice the 2 cores of this machine",)


def test_slots_count_those_that_the_last_executor_has_beyond_the_parallelism() -> None:
    assert cut(_plan(7, 5, 2048), cores=64, memory_mib=64 * 1024).master == "local[10]"


def test_heap_is_cut_to_a_sixth_of_the_memory_and_it_is_said() -> None:
    planned = _plan(4, 2, 16 * 1024)
    machine = cut(planned, cores=8, memory_mib=12 * 1024)
    assert machine.spark_conf == {"spark.driver.memory": "2048m"}
    assert machine.cuts == (f"{_heaps_mib(planned):,} MiB of heap to 2,048 MiB, one sixth of this machine's memory",)


def test_a_small_machine_still_gives_the_heap_that_a_run_takes() -> None:
    assert cut(_plan(4, 2, 16 * 1024), cores=8, memory_mib=2 * 1024).spark_conf == {"spark.driver.memory": "1024m"}


def test_both_cuts_are_said() -> None:
    assert len(cut(_plan(100, 5, 16 * 1024), cores=2, memory_mib=12 * 1024).cuts) == 2


def test_this_machine_is_asked_where_nothing_is_given() -> None:
    machine = cut(_plan(2_000, 5, 2048))
    assert machine.master == f"local[{2 * (os.cpu_count() or 1)}]"
    assert len(machine.cuts) == 2


def test_executors_that_fit_are_not_cut() -> None:
    planned = _plan(4, 2, 2048)
    machine = cut_to_executors(planned, 2, cores=8, memory_mib=64 * 1024)
    executor = planned.pods.executor
    assert machine.executors == 2
    assert machine.size == ExecutorSize(2, executor.heap_mib, executor.overhead_mib)
    assert machine.spark_conf["spark.driver.memory"] == f"{planned.pods.driver.heap_mib}m"
    assert machine.cuts == ()


def test_executors_share_slots_and_memory_and_every_cut_is_said() -> None:
    planned = _plan(15, 5, 16 * 1024)
    machine = cut_to_executors(planned, 2, cores=2, memory_mib=21 * 1024)
    assert machine.size is not None
    assert (machine.size.slots, machine.size.heap_mib) == (2, 1194)
    assert machine.size.overhead_mib == 512
    assert machine.spark_conf["spark.driver.memory"] == "1194m"
    assert machine.cuts == (
        "3 executors to 2, as requested",
        "5 slots per executor to 2: in total 4 on the 2 cores of this machine",
        f"{planned.pods.executor.heap_mib:,} MiB of heap per executor to 1,194 MiB and {planned.pods.driver.heap_mib:,} MiB of heap for the"
        " driver to 1,194 MiB: in total 3,582 MiB of this machine's 21,504 MiB",
    )


def test_an_executors_overhead_is_scaled_down_with_its_heap() -> None:
    planned = _plan(15, 5, 16 * 1024)
    machine = cut_to_executors(planned, 2, cores=2, memory_mib=24 * 1024)
    assert machine.size is not None
    assert machine.size.heap_mib == 1365
    assert machine.size.overhead_mib == planned.pods.executor.overhead_mib * 1365 // planned.pods.executor.heap_mib
    assert machine.cuts[-1].startswith("11,703 MiB of heap per executor to 1,365 MiB: in total "), "the driver's heap is as planned"


def test_each_executor_has_a_slot_and_the_heap_that_a_run_takes() -> None:
    machine = cut_to_executors(_plan(10, 5, 16 * 1024), 4, cores=2, memory_mib=8 * 1024)
    assert machine.size == ExecutorSize(1, 512, 512)
    assert machine.spark_conf["spark.driver.memory"] == "1024m"
    assert machine.cuts[-1].endswith(": in total 3,072 MiB of this machine's 8,192 MiB")


def test_more_executors_than_planned_are_no_cut() -> None:
    assert cut_to_executors(_plan(2, 2, 2048), 3, cores=8, memory_mib=64 * 1024).cuts == ()


def test_executors_are_limited_by_slots_and_by_memory() -> None:
    assert too_many(0) == []
    assert too_many(4, cores=2, memory_mib=64 * 1024) == []
    (fault,) = too_many(5, cores=2, memory_mib=64 * 1024)
    assert (fault.need, fault.fix) == ("at most 4: each needs a slot, and 2 cores have 4", "--executors 4")
    (fault,) = too_many(5, cores=16, memory_mib=8 * 1024)
    assert fault.need.startswith("at most 4: each needs 1,280 MiB")
    assert "8,192 MiB" in fault.need
    (fault,) = too_many(1, cores=16, memory_mib=2 * 1024)
    assert fault.need.startswith("at most 0")
    assert "without --executors" in fault.fix
