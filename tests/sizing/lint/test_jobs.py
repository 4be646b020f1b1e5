"""Rules on job specs and their plans."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.lint.subject import LintedConf, LintedJob
from tests.sizing.lint.worlds import found, job, severities, source, subject

SHUFFLE = "spark.sql.shuffle.partitions"


def of(rule: str, linted: LintedJob) -> list[str]:
    return [finding.given for finding in found(rule, subject(jobs=(linted,)))]


def test_a_parallelism_above_the_partitions_is_found() -> None:
    assert of("LINT-050", job(source(4))) == ["events: 4 for a parallelism of 10"]
    assert of("LINT-050", job(source(10))) == of("LINT-050", job(source(12))) == of("LINT-050", job()) == []


def test_a_topic_with_few_partitions_beside_one_with_enough_is_a_warning() -> None:
    other = source(10).model_copy(update={"name": "b", "topic": "others"})
    assert severities("LINT-050", subject(jobs=(job(source(4)),))) == ["error"]
    assert severities("LINT-050", subject(jobs=(job(source(4), other),))) == ["warning"]
    assert of("LINT-050", job(source(4), has_load=True)) == [], "a load says how many partitions it takes"


def test_whole_executors_that_stay_idle_are_an_error() -> None:
    assert severities("LINT-051", subject(jobs=(job(source(5), spark_conf={SHUFFLE: "5"}),))) == ["error"]
    assert severities("LINT-051", subject(jobs=(job(source(7), parallelism=7, slots=13),))) == ["warning"]


def test_a_violation_with_its_own_rule_is_not_reported_twice() -> None:
    linted = job(source(4))
    assert [violation.code for violation in linted.plan.violations] == ["SIZ-015"]
    assert of("LINT-056", linted) == []


def test_idle_slots_are_found() -> None:
    assert of("LINT-051", job(source(7), parallelism=7, slots=13)) == ["13 slots, 7 used"]
    assert of("LINT-051", job(source(10))) == []


def test_slots_that_only_rounding_leaves_over_are_no_warning() -> None:
    assert severities("LINT-051", subject(jobs=(job(source(13), parallelism=13, slots=5),))) == ["info"]


def test_upgrades_that_skip_records_are_found() -> None:
    latest = source(starting_offsets="latest")
    assert len(of("LINT-052", job(latest, upgrade_mode="stateless"))) == 1
    assert of("LINT-052", job(latest)) == of("LINT-052", job(source(), upgrade_mode="stateless")) == []


def test_a_source_without_idleness_is_found() -> None:
    assert of("LINT-053", job(source(has_time=True))) == ["a: no idleness"]
    assert of("LINT-053", job(source(has_time=True, has_idleness=True))) == of("LINT-053", job(source())) == []
    assert of("LINT-053", job(source(1, has_time=True), parallelism=1, slots=1)) == [], "one partition alone holds nobody back"


@pytest.mark.parametrize(("bound_ms", "fires"), [(0, True), (1, False), (None, False)])
def test_a_watermark_without_room_for_rows_out_of_order_is_found(bound_ms: int | None, fires: bool) -> None:
    assert of("LINT-067", job(source(has_time=True, out_of_order_ms=bound_ms))) == (["a: an outOfOrderness of 0"] if fires else [])


@pytest.mark.parametrize(("partitions", "fires"), [("4", True), ("10", False), ("40", False), ("41", True), ("200", True), (None, False)])
def test_shuffle_partitions_that_do_not_fit_the_slots_are_found(partitions: str | None, fires: bool) -> None:
    settings = {SHUFFLE: partitions} if partitions else {}
    linted = job(source(), spark_conf=settings)
    assert bool(found("LINT-055", subject(jobs=(linted,), confs=(LintedConf(name="job", conf=settings),)))) is fires


def test_a_plan_that_is_not_feasible_is_found_with_its_code() -> None:
    (given,) = of("LINT-056", job(source(), memory_mib=512))
    assert given.startswith("SIZ-004: heap too small for Spark")
    assert of("LINT-056", job(source())) == []


def test_a_driver_that_is_too_small_for_its_tasks_is_found() -> None:
    large: dict[str, Any] = {"parallelism": 10_000, "slots": 10, "driver_mib": 2048}
    (given,) = of("LINT-058", job(source(10_000), spark_conf={"spark.ui.retainedStages": "1000"}, **large))
    assert given == "a heap of 1,280 MiB"
    assert of("LINT-058", job(source(10_000), **large)) == [], "it remembers fewer stages"
    assert of("LINT-058", job(source())) == []


def test_an_overhead_without_room_for_python_workers_is_found() -> None:
    (given,) = of("LINT-059", job(source(), memory_mib=2048))
    assert given == "585 MiB"
    assert of("LINT-059", job(source(), memory_mib=8192)) == []


def test_an_ephemeral_storage_smaller_than_the_state_and_the_shuffles_is_found() -> None:
    linted = job(source())
    pods, needs = linted.plan.pods, linted.plan.executor_storage
    small = pods.executor.model_copy(update={"request_ephemeral_storage_mib": 2048})
    plan = linted.plan.model_copy(update={"pods": pods.model_copy(update={"executor": small})})
    (finding,) = found("LINT-064", subject(jobs=(linted.model_copy(update={"plan": plan}),)))
    assert (finding.given, finding.need.partition(":")[0]) == ("2,048 MiB for the executor", f"{needs.needed_mib:,} MiB")
    assert of("LINT-064", linted) == []


def test_state_stores_that_may_outgrow_the_overhead_are_found() -> None:
    bounded = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
    many = {SHUFFLE: "200", bounded: "false"}
    assert len(of("LINT-057", job(source(), spark_conf=many, stateful_operators=1))) == 1
    assert of("LINT-057", job(source(), stateful_operators=1)) == []
    assert of("LINT-057", job(source(), spark_conf=many)) == [], "it keeps no state"
    assert of("LINT-057", job(source(), spark_conf=many, stateful_operators=1, state_backend="memory")) == []
    for conf in ({SHUFFLE: "200"}, {**many, bounded: "true"}):
        assert of("LINT-057", job(source(), spark_conf=conf, stateful_operators=1)) == []
        assert len(of("LINT-057", job(source(), spark_conf=conf, stateful_operators=1, memory_mib=1024))) == 1
