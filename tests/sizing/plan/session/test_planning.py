"""The plan of a session: the sizes of its jobs, added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sizing.plan import plan
from penstock.sizing.plan.session import SessionPlan, plan_session
from penstock.sizing.plan.session.planned import DriverSize
from penstock.sizing.planned import Plan
from penstock.sizing.targets import ExecutorTarget, Parallelism, PythonOperators, Targets
from tests.sizing.clusters import LOAD, PRODUCTION, targets

FAIR = {"spark.scheduler.mode": "FAIR"}
CONF = "spark_conf"


def job(parallelism: int = 8, slots: int = 4, **changes: Any) -> Plan:
    changes.setdefault("executor", {"memory_mib": 8192, "cpu_millicores": 2000})
    return plan(targets(parallelism, slots, **changes), PRODUCTION)


def codes(session: SessionPlan) -> list[str]:
    return [violation.code for violation in session.violations]


def said(session: SessionPlan) -> str:
    return "\n".join(violation.render() for violation in session.violations)


@settings(max_examples=20)
@given(
    parallelism=st.integers(1, 40),
    slots=st.sampled_from([1, 2, 4]),
    load=st.sampled_from([None, LOAD]),
    conf=st.dictionaries(
        st.sampled_from(["spark.sql.shuffle.partitions", "spark.sql.warehouse.dir", "spark.hadoop.a", "spark.penstock.a"]),
        st.sampled_from(["7", "8"]),
    ),
)
def test_the_session_of_one_job_has_that_jobs_plan(parallelism: int, slots: int, load: Any, conf: dict[str, str]) -> None:
    alone = job(parallelism, slots, load=load, source_topics={"a": None}, spark_conf=conf)
    session = plan_session({"a": alone}, PRODUCTION)
    shared = ("totals", "pods", "executor_overhead", "driver_needs", "executor_storage", "driver_storage", "tasks_at_a_time", "feasible")
    assert {name: getattr(session, name) for name in shared} == {name: getattr(alone, name) for name in shared}
    assert (session.nodes, session.cost) == (alone.nodes, alone.cost)
    assert {**session.spark_conf, **session.job_conf["a"]} == {**alone.spark_conf, **FAIR}
    assert not set(session.spark_conf) & set(session.job_conf["a"])


@settings(max_examples=20)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_totals_are_sums(each: list[int]) -> None:
    jobs = {f"job-{index}": job(parallelism) for index, parallelism in enumerate(each)}
    session = plan_session(jobs, PRODUCTION)
    plans = list(jobs.values())
    assert session.totals.executors == session.pods.executor.count == sum(one.totals.executors for one in plans)
    assert session.totals.pods == session.totals.executors + 1
    for size in ("executor_memory_mib", "executor_cpu_millicores", "subtasks"):
        assert getattr(session.totals, size) == sum(getattr(one.totals, size) for one in plans)
    for size in ("memory_mib", "heap_mib", "overhead_mib", "request_cpu_millicores", "request_ephemeral_storage_mib"):
        assert getattr(session.pods.driver, size) == sum(getattr(one.pods.driver, size) for one in plans)
    assert session.tasks_at_a_time == sum(one.tasks_at_a_time for one in plans)
    assert session.spark_conf["spark.executor.instances"] == str(session.totals.executors)


def test_a_session_has_its_nodes_and_its_bill() -> None:
    session = plan_session({"a": job(), "b": job()}, PRODUCTION)
    assert session.feasible
    assert session.nodes is not None and session.nodes.staged.nodes >= 1
    assert session.cost is not None
    without = plan_session({"a": job(), "b": job()})
    assert (without.nodes, without.cost) == (None, None)


def test_jobs_that_ask_for_different_executors_are_refused_with_what_differs() -> None:
    jobs = {"a": job(), "b": job(executor={"memory_mib": 4096, "cpu_millicores": 2000}), "c": job(slots=2)}
    session = plan_session(jobs, PRODUCTION)
    assert codes(session) == ["SIZ-060", "SIZ-060"]
    first, second = session.violations
    assert (first.path, second.path) == ("b", "c")
    assert "a has memory 8 GiB, heap" in first.given and "b has memory 4 GiB" in first.given and "slots" not in first.given
    assert second.given == "a has slots 4; c has slots 2"


def test_the_overhead_holds_the_python_workers_of_all_jobs() -> None:
    python: dict[str, Any] = {"python": PythonOperators(uses=("udf",)), CONF: {"spark.executor.memoryOverhead": "1300m"}}
    alone, pair = job(**python), {"a": job(**python), "b": job(**python)}
    assert alone.executor_overhead.needed_mib <= 1300
    session = plan_session(pair, PRODUCTION)
    overhead = session.executor_overhead
    assert overhead.python_workers == 2 * alone.executor_overhead.python_workers
    assert overhead.python_mib == 2 * alone.executor_overhead.python_mib
    assert overhead.jvm_mib == alone.executor_overhead.jvm_mib
    assert codes(session) == ["SIZ-061"]
    assert f"{overhead.needed_mib:,} MiB for 2 jobs" in said(session) and "8 Python workers" in said(session)
    python[CONF] = {"spark.executor.memoryOverhead": f"{overhead.needed_mib}m"}
    assert plan_session({"a": job(**python), "b": job(**python)}, PRODUCTION).feasible


def test_a_given_driver_is_the_same_whatever_jobs_it_has() -> None:
    size = DriverSize(cpu_millicores=4000, memory_mib=8192)
    one, two = plan_session({"a": job()}, PRODUCTION, size), plan_session({"a": job(), "b": job()}, PRODUCTION, size)
    assert one.pods.driver == two.pods.driver
    assert (one.pods.driver.memory_mib, one.pods.driver.request_cpu_millicores) == (8192, 4000)
    driver_settings = [key for key in one.spark_conf if "driver" in key]
    assert {key: one.spark_conf[key] for key in driver_settings} == {key: two.spark_conf[key] for key in driver_settings}


@settings(max_examples=20)
@given(st.integers(1, 8))
def test_a_given_driver_holds_as_many_default_ones_as_its_memory_has(number: int) -> None:
    default = plan(Targets(parallelism=Parallelism(value=1, source="spec"), executor=ExecutorTarget(slots=1, memory_mib=16384)))
    assert (default.pods.driver.memory_mib, default.pods.driver.request_cpu_millicores) == (2048, 1000)
    jobs = {f"job-{index}": default for index in range(number)}
    size = DriverSize(cpu_millicores=1000 * number, memory_mib=2048 * number)
    session = plan_session(jobs, driver=size)
    assert session.feasible
    assert session.pods.driver == plan_session(jobs).pods.driver


def test_a_given_driver_that_is_too_small_is_refused_with_the_numbers_and_what_suffices_does() -> None:
    jobs = {"a": job(), "b": job()}
    small = plan_session(jobs, PRODUCTION, DriverSize(cpu_millicores=1000, memory_mib=2048))
    assert codes(small) == ["SIZ-062", "SIZ-062"]
    assert "2 cores, the sum of its jobs' drivers" in said(small)
    least = int(small.violations[0].fix.split('"')[1].removesuffix("m"))
    enough = plan_session(jobs, PRODUCTION, DriverSize(cpu_millicores=2000, memory_mib=least))
    assert enough.feasible
    assert codes(plan_session(jobs, PRODUCTION, DriverSize(cpu_millicores=2000, memory_mib=least - 2))) == ["SIZ-062"]


@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ({"spark.hadoop.a": "1"}, {"spark.hadoop.a": "2"}, "1 in a, 2 in b"),
        ({"spark.hadoop.a": "1"}, {}, "1 in a, not set in b"),
        ({"spark.sql.warehouse.dir": "x"}, {"spark.sql.warehouse.dir": "y"}, "x in a, y in b"),
        ({"spark.scheduler.mode": "FIFO"}, {"spark.scheduler.mode": "FIFO"}, "FIFO in a"),
    ],
)
def test_a_setting_that_the_jobs_share_must_agree(first: dict[str, str], second: dict[str, str], given: str) -> None:
    session = plan_session({"a": job(spark_conf=first), "b": job(spark_conf=second)})
    assert codes(session) == ["SIZ-063"]
    assert session.violations[0].given == given


def test_each_job_has_the_settings_of_its_spark_session() -> None:
    first, second = ({"spark.sql.shuffle.partitions": number, "spark.penstock.a": number} for number in ("7", "9"))
    session = plan_session({"a": job(spark_conf=first), "b": job(spark_conf=second)})
    assert session.feasible
    assert {name: conf["spark.sql.shuffle.partitions"] for name, conf in session.job_conf.items()} == {"a": "7", "b": "9"}
    assert not [key for key in session.spark_conf if key.startswith(("spark.sql.shuffle", "spark.penstock."))]


def test_an_executor_has_one_memory_for_rocksdb_that_of_the_job_with_the_most() -> None:
    key = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
    session = plan_session({"a": job(spark_conf={key: "300"}), "b": job(spark_conf={key: "90"}), "c": job()})
    assert {name: conf[key] for name, conf in session.job_conf.items()} == {"a": "300", "b": "300", "c": "300"}
    bounded = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
    assert codes(plan_session({"a": job(spark_conf={bounded: "true"}), "b": job(spark_conf={bounded: "false"})})) == ["SIZ-063"]
    assert plan_session({"a": job(spark_conf={bounded: "true"}), "b": job()}).feasible


def test_the_driver_remembers_as_few_stages_as_any_job_allows() -> None:
    wide = job(5000, spark_conf={})
    kept = wide.spark_conf["spark.ui.retainedStages"]
    assert plan_session({"a": job(), "b": wide}).spark_conf["spark.ui.retainedStages"] == kept
