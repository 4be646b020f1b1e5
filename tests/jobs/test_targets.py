"""Conversion of a job spec to the targets of sizing."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.sizing.errors import PenstockError
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.plan import plan
from penstock.sizing.targets import Targets
from tests.sizing.clusters import with_pool

SPECS = Path(__file__).resolve().parents[2] / "jobs/specs"
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 7
  executor: {slots: 13, memory: 16g}
  sources:
    a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}
    b: {kafka: {topic: b, partitions: 3}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks}}
    errors: {kafka: {topic: errors}}
"""


def targets_of(folder: Path, app: str = "", more: str = "", spec: str = SPEC) -> Targets:
    (folder / "app.py").write_text(app)
    path = folder / "spec.yaml"
    path.write_text(spec + more)
    return targets(load(path))


def test_a_parallelism_in_the_code_wins_and_the_plan_has_a_note(tmp_path: Path) -> None:
    planned = plan(targets_of(tmp_path, "x = 1\nPARALLELISM = 91\nOPERATORS = 3\n"))
    assert (planned.parallelism.value, planned.parallelism.source) == (91, "code")
    assert (planned.totals.executors, planned.totals.subtasks) == (7, 273)
    here, spec_place = tmp_path / "app.py", tmp_path / "spec.yaml"
    assert f"PARALLELISM = 91 in {here}:2 overrides parallelism: 7 in {spec_place}:6" in planned.notes


def test_a_spread_that_is_not_met_is_reported_at_its_line(tmp_path: Path) -> None:
    spread = "executor:\n    slots: 1\n    memory: 2g\n    spread: {zones: required}\n"
    wanted = targets_of(tmp_path, spec=SPEC.replace("executor: {slots: 13, memory: 16g}\n", spread))
    assert wanted.executor.spread == ExecutorSpread(zones="required")
    two_zones = with_pool("executors", requirements={"topology.kubernetes.io/zone": ["us-east-1a", "us-east-1b"]})
    (fault,) = plan(wanted, two_zones).violations
    assert (fault.code, fault.line, fault.path) == ("SIZ-019", 10, "spec.executor.spread")


def test_without_one_in_the_code_the_specs_parallelism_holds(tmp_path: Path) -> None:
    decided = targets_of(tmp_path)
    assert decided.parallelism is not None
    assert (decided.parallelism.value, decided.parallelism.source, decided.notes) == (7, "spec", ())


def test_operators_the_app_does_not_name_are_counted_and_explained(tmp_path: Path) -> None:
    operators = targets_of(tmp_path, "def build(job):\n    interval_join(1, 2)\n").operators
    assert operators.count == 2 + 1 + 2
    assert operators.counted_from == "2 sources + 1 x interval_join in the app + 2 sinks, at least 1"


def test_slots_follow_from_the_stage_with_the_most_tasks(tmp_path: Path) -> None:
    planned = plan(targets_of(tmp_path, more="  stages: {source: 4, stateless: 12, stateful: 26}\n"))
    assert (planned.parallelism.value, planned.parallelism.source, planned.totals.executors) == (26, "spec", 2)
    tasks = {stage.name: stage.tasks for stage in planned.stages}
    assert tasks == {"read a": 4, "read b": 4, "rows before the state": 12, "each stage after a shuffle": 26}
    # A topic that has no number of partitions gets one for each task that reads it.
    assert (planned.kafka.topics["a"], planned.kafka.topics["b"]) == (4, 3)
    assert planned.spark_conf["spark.sql.shuffle.partitions"] == "26"
    message = "slots for the largest stage, 26: source 4, stateless 12, stateful 26"
    assert any(note.startswith(message) for note in planned.notes)
    assert planned.feasible


def test_a_stage_that_is_not_given_has_the_parallelism(tmp_path: Path) -> None:
    planned = plan(targets_of(tmp_path, more="  stages: {stateful: 3}\n"))
    assert planned.parallelism.value == 7
    assert planned.spark_conf["spark.sql.shuffle.partitions"] == "3"
    message = "slots for the largest stage, 7: source 7 (the parallelism), stateless 7 (the parallelism), stateful 3"
    assert any(note.startswith(message) for note in planned.notes)


def test_a_setting_that_contradicts_a_stage_is_rejected(tmp_path: Path) -> None:
    more = "  stages: {source: 4, stateful: 3}\n  sparkConf: {spark.sql.shuffle.partitions: 4}\n"
    spec = SPEC.replace("{kafka: {topic: a}", "{kafka: {topic: a, minPartitions: 5}")
    with pytest.raises(PenstockError) as raised:
        targets_of(tmp_path, more=more, spec=spec)
    needs = [error.need for error in raised.value.errors]
    assert needs == ["stages.stateful: 3, which sets the same", "stages.source: 4, which sets the same for all sources"]


@pytest.mark.parametrize(("retention", "batches"), [("1h", "360"), ("5m", "100"), ("1005s", "101")])
def test_a_retention_is_a_number_of_micro_batches(tmp_path: Path, retention: str, batches: str) -> None:
    """Those that the trigger of 10 s starts within it, and at least Spark's 100."""
    conf = plan(targets_of(tmp_path, more=f"  checkpoint: {{retention: {retention}}}\n")).spark_conf
    assert conf["spark.sql.streaming.minBatchesToRetain"] == batches


def test_a_retention_and_the_setting_of_spark_exclude_each_other(tmp_path: Path) -> None:
    more = "  checkpoint: {retention: 1h}\n  sparkConf: {spark.sql.streaming.minBatchesToRetain: 200}\n"
    with pytest.raises(PenstockError) as raised:
        targets_of(tmp_path, more=more)
    assert (raised.value.code, raised.value.path) == ("SPEC-008", "spec.checkpoint.retention")


def test_a_longer_retention_is_stored_and_paid_for(tmp_path: Path) -> None:
    load_ = "  load: {eventsPerSecond: 100, eventBytes: 500, eventsPerSlot: 1000, state: {keys: 100000, bytesPerKey: 200}}\n"
    spec = SPEC.replace("  parallelism: 7\n", load_)

    def stored(more: str) -> int:
        return plan(targets_of(tmp_path, more=more, spec=spec)).state.checkpoint.storage_bytes

    # A micro-batch of 10 s changes at most 1,000 keys; the longer retention keeps the changes of 720 instead of 100.
    assert stored("  checkpoint: {retention: 2h}\n") - stored("") == (720 - 100) * 1_000 * 200


def test_operators_that_the_app_names_are_kept(tmp_path: Path) -> None:
    operators = targets_of(tmp_path, 'OPERATORS = ("read", "write")\n').operators
    assert (operators.count, operators.names) == (2, ("read", "write"))


def test_a_job_has_one_operator_at_least(tmp_path: Path) -> None:
    assert targets_of(tmp_path, spec=SPEC[: SPEC.index("  sources:")]).operators.count == 1


def test_topics_are_split_by_what_reads_and_what_writes(tmp_path: Path) -> None:
    decided = targets_of(tmp_path)
    assert (decided.source_topics, decided.sink_topics) == ({"a": None, "b": 3}, {"errors": 1})


def test_settings_become_the_text_that_spark_reads(tmp_path: Path) -> None:
    more = "  sparkConf: {spark.a: true, spark.b: 1, spark.c: 0.5, spark.d: x}\n"
    assert targets_of(tmp_path, more=more).spark_conf == {"spark.a": "true", "spark.b": "1", "spark.c": "0.5", "spark.d": "x"}


def test_cores_of_the_driver_that_are_not_set_may_come_from_a_setting(tmp_path: Path) -> None:
    more = '  driver: {memory: 2g}\n  sparkConf: {spark.kubernetes.driver.request.cores: "2"}\n'
    assert plan(targets_of(tmp_path, more=more)).pods.driver.request_cpu_millicores == 2000


@pytest.mark.parametrize(
    ("more", "code", "line", "path"),
    [
        ("  sparkConf:\n    spark.executor.cores: 4\n", "SIZ-003", 15, "spec.sparkConf.spark.executor.cores"),
        ("  sparkConf:\n    spark.executor.memoryOverhead: 1.5g\n", "SIZ-002", 15, "spec.sparkConf.spark.executor.memoryOverhead"),
        ("  sparkConf:\n    spark.task.cpus: 14\n", "SIZ-001", 7, "spec.executor.slots"),
    ],
)
def test_what_sizing_finds_wrong_has_the_line_of_the_spec(tmp_path: Path, more: str, code: str, line: int, path: str) -> None:
    with pytest.raises(PenstockError) as error:
        plan(targets_of(tmp_path, more=more))
    (result,) = error.value.errors
    assert (result.code, result.path, str(result.at)) == (code, path, f"{tmp_path / 'spec.yaml'}:{line}")


def test_an_unmet_target_has_the_line_of_the_spec(tmp_path: Path) -> None:
    (violation,) = plan(targets_of(tmp_path, spec=SPEC.replace("memory: 16g", "memory: 512m"))).violations
    assert (violation.code, violation.line, violation.path, violation.given) == ("SIZ-004", 7, "spec.executor.memory", '"512m"')


def test_a_missing_app_is_reported_with_the_line_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        targets_of(tmp_path, spec=SPEC.replace("app: app", "app: ap"))
    assert (error.value.code, str(error.value.at), error.value.given) == ("SPEC-009", f"{tmp_path / 'spec.yaml'}:5", '"ap"')
    assert error.value.fix == "did you mean app?"


def test_an_app_may_lie_on_the_app_path(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "there.py").write_text("PARALLELISM = 2\n")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("app: app", "app: there"))
    assert plan(targets(load(path), [elsewhere])).parallelism.value == 2


@pytest.mark.parametrize(("name", "executors", "subtasks"), [("user_credit", 2, 50), ("flights", 2, 16)])
def test_the_shipped_jobs_have_plans(name: str, executors: int, subtasks: int) -> None:
    planned = plan(targets(load(SPECS / f"{name}.yaml")))
    assert (planned.feasible, planned.totals.executors, planned.totals.subtasks) == (True, executors, subtasks)


def test_queries_apart_are_counted_and_said(tmp_path: Path) -> None:
    one, two = "def build(job):\n    job.write(a, 'out')\n", "    job.write(b, 'other')\n"
    assert "queries" not in " ".join(plan(targets_of(tmp_path, one)).notes)
    planned = plan(targets_of(tmp_path, one + two))
    assert "2 queries in one driver: a topic that all of them read is read 2 times" in planned.notes
    assert planned.state.checkpoint.objects_per_batch == 4
    (logs,) = [entry for entry in planned.explain if entry.number == "state.checkpoint.objectsPerBatch"]
    assert (logs.rule, logs.inputs["queries"]) == ("2 logs of each query + stores * 2: a file and its checksum", 2)
