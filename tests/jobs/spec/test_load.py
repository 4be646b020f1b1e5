"""The load of a job spec in the targets."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.jobs.spec import load
from penstock.jobs.spec.schema import schema
from penstock.jobs.targets import targets
from penstock.sizing.errors import PenstockError
from penstock.sizing.load.planning import plan_load
from penstock.sizing.plan import plan
from penstock.sizing.plan.decided import decided
from penstock.sizing.plan.job_load import located_violations
from penstock.sizing.plan.job_shape import shape_of
from penstock.sizing.plan.settings import settings_of
from penstock.sizing.targets import Targets

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  executor: {slots: 4}
  load:
    eventsPerSecond: 100000
    eventBytes: 240
    eventsPerSlot: 12000
    state: {keys: 100000000, bytesPerKey: 200}
  sources:
    a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks}}
"""
PROFILE = """\
{"date": "2026-11-21", "source": "a bench",
 "points": [{"slots": 2, "eventsPerSecond": 30000}, {"slots": 4, "eventsPerSecond": 50000}]}
"""


def changed(old: str, new: str, text: str = SPEC) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def targets_of(folder: Path, text: str = SPEC, app: str = "") -> Targets:
    (folder / "app.py").write_text(app)
    path = folder / "spec.yaml"
    path.write_text(text)
    return targets(load(path))


def faults(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    with pytest.raises(PenstockError) as error:
        targets_of(folder, text)
    assert all(fault.fix for fault in error.value.errors)
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in error.value.errors]


def test_a_load_gives_the_parallelism(tmp_path: Path) -> None:
    result = targets_of(tmp_path)
    assert (result.parallelism, result.executor.undecided) == (None, True)
    planned = plan(result)
    assert planned.parallelism.value == 14
    assert (planned.parallelism.source, planned.totals.executors, planned.kafka.topics) == ("load", 4, {"a": 14})


def test_a_load_is_read_in_the_units_of_sizing(tmp_path: Path) -> None:
    more = "    peakFactor: 2\n    restart: 1m\n    catchUp: 10m\n    retention: 7d\n    fanOut: 3\n    batchOverhead: 250ms\n    state:"
    read = targets_of(tmp_path, changed("    state:", more)).load
    assert read is not None
    assert (read.peak_events_per_s, read.restart_s, read.catch_up_s, read.retention_h) == (200_000, 60, 600, 168)
    assert (read.fan_out, read.batch_overhead_s, read.state_bytes) == (3, 0.25, 20_000_000_000)


def test_what_the_environment_knows_too_stays_unset(tmp_path: Path) -> None:
    read = targets_of(tmp_path).load
    assert read is not None
    assert not {"retention_h", "replication"} & read.model_fields_set


def test_without_memory_the_executors_get_what_the_load_needs(tmp_path: Path) -> None:
    planned = plan(targets_of(tmp_path, changed("executor: {slots: 4}", "executor: {slots: 4}\n  state: {backend: rocksdb}")))
    executor = planned.pods.executor
    # The JVM, RocksDB, and four workers with their daemon and batches: the app imports what the plan does not read.
    assert (executor.heap_mib, executor.overhead_mib) == (1024, 384 + 500 + 554 + 46)
    assert planned.spark_conf["spark.executor.memoryOverhead"] == "1484m"
    assert planned.feasible


def test_what_the_load_decides_is_read_as_what_is_given(tmp_path: Path) -> None:
    result = targets_of(tmp_path)
    settings, _ = settings_of(result)
    ready = decided(result, settings)
    assert (ready.targets.parallelism.value, ready.targets.executor.heap_mib, ready.targets.memory_from_load) == (14, 1024, True)
    assert ready.settings.executor.overhead_mib == 384 + 500 + 554 + 46
    again = decided(ready.targets, ready.settings)
    assert (again.targets.parallelism, again.targets.executor) == (ready.targets.parallelism, ready.targets.executor)
    assert again.settings == ready.settings


def test_memory_that_is_given_is_kept(tmp_path: Path) -> None:
    planned = plan(targets_of(tmp_path, changed("slots: 4", "slots: 4, memory: 8g")))
    assert planned.pods.executor.memory_mib == 8192


def test_an_overhead_that_is_given_is_kept(tmp_path: Path) -> None:
    result = targets_of(tmp_path, SPEC + '  sparkConf: {spark.executor.memoryOverhead: "3g"}\n')
    assert result.spark_conf["spark.executor.memoryOverhead"] == "3g"


def test_a_parallelism_of_the_code_wins_over_the_load_and_the_plan_has_a_note(tmp_path: Path) -> None:
    result = targets_of(tmp_path, app="PARALLELISM = 91\n")
    assert result.parallelism is not None
    assert (result.parallelism.value, result.parallelism.source) == (91, "code")
    note = f"PARALLELISM = 91 in {tmp_path / 'app.py'}:1 overrides the 14 required by the load in {tmp_path / 'spec.yaml'}:7"
    assert note in plan(result).notes


def test_the_joins_of_the_app_are_its_stateful_operators(tmp_path: Path) -> None:
    joined = targets_of(tmp_path, app="def build(job):\n    return interval_join(job, job)\n").load
    named = targets_of(tmp_path, changed("bytesPerKey: 200}", "bytesPerKey: 200, operators: [other, other]}")).load
    assert joined is not None and joined.operators == ("join",)
    assert named is not None and named.operators == ("other", "other")


def test_an_event_too_large_for_the_parallelism_gives_more_partitions(tmp_path: Path) -> None:
    assert plan(targets_of(tmp_path, changed("240", "10000"))).kafka.topics == {"a": 96}


def test_a_bounded_run_has_no_trigger(tmp_path: Path) -> None:
    text = changed("{topic: a}", "{topic: a, startingOffsets: earliest}") + "  trigger: availableNow\n"
    assert targets_of(tmp_path, text).trigger_s is None


def test_a_profile_beside_the_spec_gives_the_throughput(tmp_path: Path) -> None:
    (tmp_path / "measured.json").write_text(PROFILE)
    result = targets_of(tmp_path, changed("eventsPerSlot: 12000", "profile: measured.json"))
    assert result.load is not None and result.load.profile is not None
    assert result.load.profile.source == "a bench"
    # 4 slots process 50,000, each further one 10,000.
    assert plan(result).parallelism.value == 15


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("  executor:", "  parallelism: 3\n  executor:", ("SPEC-008", 8, "spec.load")),
        ("eventBytes: 240", "eventBytes: 0", ("SPEC-006", 9, "spec.load.eventBytes")),
        ("eventsPerSecond: 100000", "eventsPerSecond: .nan", ("SPEC-006", 8, "spec.load.eventsPerSecond")),
        ("eventsPerSecond: 100000", "eventsPerSecond: many", ("SPEC-006", 8, "spec.load.eventsPerSecond")),
        ("    eventBytes: 240\n", "", ("SPEC-005", 7, "spec.load.eventBytes")),
        ("    eventsPerSlot: 12000\n", "", ("SPEC-006", 7, "spec.load")),
        ("eventsPerSlot: 12000", "eventsPerSlot: 12000\n    profile: a.json", ("SPEC-006", 7, "spec.load")),
        ("eventsPerSlot: 12000", "profile: /etc/profile.json", ("SPEC-006", 10, "spec.load.profile")),
        ("eventsPerSlot: 12000", "profile: nowhere.json", ("SPEC-001", 10, "spec.load.profile")),
        ("eventsPerSlot: 12000", "eventsPerSlot: 12000\n    restart: 5", ("SPEC-007", 11, "spec.load.restart")),
        ("eventsPerSlot: 12000", "eventsPerSlot: 12000\n    catchUp: 5ms", ("SPEC-006", 11, "spec.load.catchUp")),
        ("eventsPerSlot: 12000", "eventsPerSlot: 12000\n    utilization: 0.5", ("SPEC-004", 11, "spec.load.utilization")),
        ("keys: 100000000", "key: 100000000", ("SPEC-004", 11, "spec.load.state.key")),
    ],
)
def test_a_wrong_load_is_an_error_with_its_line(tmp_path: Path, old: str, new: str, fault: tuple[str, int, str]) -> None:
    assert fault in faults(tmp_path, changed(old, new))


def test_neither_parallelism_nor_load_is_an_error(tmp_path: Path) -> None:
    text = yaml.safe_load(SPEC)
    del text["spec"]["load"]
    text["spec"]["executor"]["memory"] = "4g"
    (code, _, path), *more = faults(tmp_path, yaml.safe_dump(text))
    assert (code, path, more) == ("SPEC-005", "spec.parallelism", [])


def test_an_executor_without_memory_needs_a_load(tmp_path: Path) -> None:
    text = yaml.safe_load(SPEC)
    del text["spec"]["load"]
    text["spec"]["parallelism"] = 4
    assert [fault[0] for fault in faults(tmp_path, yaml.safe_dump(text))] == ["SPEC-006"]


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        ("{", "SPEC-002"),
        ('{"points": []}', "SPEC-006"),
        ('{"points": [{"slots": 2}]}', "SPEC-005"),
        ('{"points": [{"slots": 2, "eventsPerSecond": 5}, {"slots": 2, "eventsPerSecond": 6}]}', "SPEC-008"),
        ('{"points": [{"slots": 2, "eventsPerSecond": -5}]}', "SPEC-006"),
    ],
)
def test_a_wrong_profile_is_an_error_with_its_own_line(tmp_path: Path, profile: str, code: str) -> None:
    (tmp_path / "measured.json").write_text(profile)
    with pytest.raises(PenstockError) as error:
        targets_of(tmp_path, changed("eventsPerSlot: 12000", "profile: measured.json"))
    (fault,) = error.value.errors
    assert (fault.code, fault.at.file if fault.at else "") == (code, str(tmp_path / "measured.json"))
    assert fault.at is not None and fault.at.line is not None


def test_what_a_plan_does_not_carry_is_reported_with_its_place(tmp_path: Path) -> None:
    result = targets_of(tmp_path, SPEC + "  trigger: 400ms\n", app="PARALLELISM = 7\n")
    assert result.load is not None
    ready = decided(result, settings_of(result)[0]).targets
    shape = shape_of(ready, slots_per_executor=4)
    violations = located_violations(ready, shape, plan_load(result.load, shape))
    assert [(fault.code, fault.at.line if fault.at else None, fault.path, fault.given) for fault in violations] == [
        ("SIZ-047", 4, "spec.parallelism", "7")
    ]
    slow = targets_of(tmp_path, SPEC + "  trigger: 400ms\n")
    assert slow.load is not None
    ready = decided(slow, settings_of(slow)[0]).targets
    shape = shape_of(ready, slots_per_executor=4)
    violations = located_violations(ready, shape, plan_load(slow.load, shape))
    assert [(fault.code, fault.at.line if fault.at else None, fault.path, fault.given) for fault in violations] == [
        ("SIZ-046", 16, "spec.trigger", "0.4 s")
    ]


def test_the_schema_accepts_either_of_the_two() -> None:
    validator = Draft202012Validator(schema())
    spec = yaml.safe_load(SPEC)
    assert validator.is_valid(spec)
    both = copy.deepcopy(spec)
    both["spec"]["parallelism"] = 3
    assert not validator.is_valid(both)
    del both["spec"]["load"]
    assert validator.is_valid(both)
    del both["spec"]["parallelism"]
    assert not validator.is_valid(both)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=10),
    st.sampled_from(["10s", "1d", "measured.json", "app", 0, 1, 10**400, 1e300, 5e-324, "12000"]),
    st.lists(st.sampled_from(["join", "other", 1]), max_size=3),
)
FIELDS = st.sampled_from(
    [
        "eventsPerSecond",
        "eventBytes",
        "eventsPerSlot",
        "profile",
        "peakFactor",
        "utilisation",
        "restart",
        "catchUp",
        "backlog",
        "retention",
        "fanOut",
        "replication",
        "state",
        "batchOverhead",
        "more",
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a profile beside the spec."""
    made = tmp_path_factory.mktemp("load")
    (made / "measured.json").write_text(PROFILE)
    return made


@settings(max_examples=300)
@given(fields=st.dictionaries(FIELDS, VALUES, max_size=4), trigger=st.none() | st.sampled_from(["1ms", "10s", "1h"]))
def test_any_load_makes_a_plan_or_a_coded_error_with_a_line(folder: Path, fields: dict[str, Any], trigger: str | None) -> None:
    spec = yaml.safe_load(SPEC)
    spec["spec"]["load"] |= fields
    if trigger:
        spec["spec"]["trigger"] = trigger
    try:
        plan(targets_of(folder, yaml.safe_dump(spec)))
    except PenstockError as error:
        assert all(fault.code and fault.at and fault.at.line and fault.fix for fault in error.errors), error.render()
