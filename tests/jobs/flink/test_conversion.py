"""Conversion of a FlinkDeployment to the job spec that replaces it."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.document import parse_text, read
from penstock.jobs.flink.conversion import Conversion, app_name, conversion, convert
from penstock.jobs.flink.deployment import understand
from penstock.jobs.spec import StreamingJob, load
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan import plan
from penstock.sizing.units import MIB

DEPLOYMENTS = sorted((Path(__file__).parent).glob("*.yaml"))
SEVEN = Path(__file__).parent / "seven_task_managers.yaml"
PLAIN = """\
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: clicks}
spec:
  flinkVersion: v1_20
  flinkConfiguration:
    taskmanager.numberOfTaskSlots: "4"
  jobManager: {resource: {memory: 1600m, cpu: 1}}
  taskManager: {resource: {memory: 4g, cpu: 2}}
  job: {jarURI: "local:///j.jar", parallelism: 8, upgradeMode: stateless}
"""


def converted(text: str) -> Conversion:
    return conversion(understand(parse_text(text, "flink.yaml"), Path("flink.yaml")))


def faults(text: str) -> list[tuple[str, int | None, str]]:
    """Code, line and path of each error."""
    with pytest.raises(PenstockError) as error:
        converted(text)
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in error.value.errors]


def only_fault(text: str) -> PenstockError:
    with pytest.raises(PenstockError) as error:
        converted(text)
    (fault,) = error.value.errors
    return fault


def spec_of(made: Conversion) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(made.text)
    spec: dict[str, Any] = document["spec"]
    return spec


def note(made: Conversion, path: str) -> str:
    """The only note on a path."""
    (note,) = [note for note in made.notes if note.path == path]
    return note.text


def test_the_deployment_with_seven_task_managers() -> None:
    made = convert(read(SEVEN))
    assert spec_of(made) == {
        "app": "payment_events_job",
        "parallelism": 91,
        "upgradeMode": "last-state",
        "executor": {"slots": 13, "cores": 1, "memory": "2048m"},
        "driver": {"cores": 1, "memory": "2048m"},
        "trigger": "10s",
        "state": {"backend": "rocksdb", "incremental": True},
    }
    planned = plan(made.targets)
    assert (planned.totals.executors, planned.pods.executor.memory_mib, planned.pods.executor.request_cpu_millicores) == (7, 2048, 1000)
    assert planned.feasible
    assert (made.flink.task_managers, made.flink.max_parallelism) == (7, 256)


def test_the_deployment_with_two_task_managers_of_16_gib() -> None:
    made = convert(read(SEVEN.parent / "two_task_managers.yaml"))
    spec = spec_of(made)
    assert spec["executor"] == {"slots": 5, "cores": 4, "memory": "16g"}
    assert spec["driver"] == {"cores": 2, "memory": "2048m"}
    assert (spec["app"], spec["upgradeMode"], "trigger" in spec) == ("user_credit", "stateless", False)
    assert plan(made.targets).totals.executors == 2
    # Flink memory of a 16g process is 15837691904 bytes (F3 of the vectors), 0.3 of it managed here.
    assert made.flink.task_manager.managed_bytes == int(15837691904 * 0.30000001192092896)
    assert "divides Flink's process memory" in note(made, "spec.flinkConfiguration.taskmanager.memory.managed.fraction")


def test_a_python_job_in_standalone_mode_sized_by_its_replicas() -> None:
    made = convert(read(SEVEN.parent / "python_standalone.yaml"))
    spec = spec_of(made)
    assert (spec["app"], spec["parallelism"], spec["upgradeMode"]) == ("click_counts", 6, "savepoint")
    assert spec["executor"] == {"slots": 2, "cores": "250m", "memory": f"{made.flink.task_manager.pod_mib}m"}
    assert spec["driver"]["cores"] == 1
    assert spec["state"] == {"backend": "memory", "incremental": False}
    assert made.flink.task_manager.flink_bytes == 3 * 1024 * MIB
    assert made.flink.job_managers == 2
    assert made.targets.origins["executor.memory_mib"].path == "spec.flinkConfiguration.taskmanager.memory.flink.size"
    assert "taskmanager.cpu.cores takes precedence" in note(made, "spec.taskManager.resource.cpu")
    assert "ignores job.parallelism" in note(made, "spec.taskManager.replicas")
    assert "overwritten by the operator with the job's parallelism" in note(made, "spec.flinkConfiguration.parallelism.default")
    assert "does not autoscale" in note(made, "spec.flinkConfiguration.job.autoscaler.enabled")
    assert "no known counterpart" in note(made, "spec.flinkConfiguration.some.other.key")
    assert "empty state" in note(made, "spec.job.initialSavepointPath")
    assert "until it is removed from its environment" in note(made, "spec.job.state")
    assert "as Flink does in native mode" in note(made, "spec.mode")


def test_kubernetes_resources_come_before_the_operators_own() -> None:
    made = convert(read(SEVEN.parent / "new_resources.yaml"))
    spec = spec_of(made)
    # 2,500,000,000 bytes are 2384.2 MiB: Flink's pod has 2384.
    assert spec["executor"] == {"slots": 1, "cores": "1250m", "memory": "2384m"}
    assert made.flink.task_manager_cpu_limit_millicores == 2000
    assert "prefers taskManager.resources" in note(made, "spec.taskManager.resource")
    assert spec["driver"] == {"cores": 1, "memory": "1600m"}
    assert spec["upgradeMode"] == "stateless"
    assert yaml.safe_load(made.text)["metadata"] == {"name": "on"}


@pytest.mark.parametrize("path", DEPLOYMENTS, ids=lambda path: path.stem)
def test_the_spec_loads_and_equals_the_result_of_the_conversion(path: Path, tmp_path: Path) -> None:
    made = convert(read(path))
    written = tmp_path / "spec.yaml"
    written.write_text(made.text, encoding="utf-8")
    assert load(written).job == made.job
    assert yaml.safe_load(made.text) == made.document
    assert max(map(len, made.text.splitlines())) <= 120


@pytest.mark.parametrize("path", DEPLOYMENTS, ids=lambda path: path.stem)
def test_every_value_of_the_deployment_is_in_the_spec_or_named_in_a_note(path: Path) -> None:
    made = convert(read(path))
    # Values of the spec's fields.
    taken = {
        "apiVersion", "kind", "metadata.name", "spec.job.jarURI", "spec.job.parallelism", "spec.job.upgradeMode", "spec.job.entryClass",
        "spec.job.state", "spec.taskManager.resource", "spec.jobManager.resource", "spec.taskManager.resources",
        "spec.flinkConfiguration.taskmanager.numberOfTaskSlots", "spec.flinkConfiguration.execution.checkpointing.incremental",
        "spec.flinkConfiguration.taskmanager.cpu.cores",
    }  # fmt: skip
    noted = taken | {note.path for note in made.notes}

    def unsaid(value: Any, path: str) -> list[str]:
        if path in noted:
            return []
        if isinstance(value, dict):
            return [place for key, entry in value.items() for place in unsaid(entry, f"{path}.{key}".lstrip("."))]
        return [path]

    assert unsaid(yaml.safe_load(path.read_text()), "") == []


def test_notes_have_the_line_of_the_deployment() -> None:
    notes = {note.path: note.line for note in convert(read(SEVEN)).notes}
    assert notes["spec.podTemplate"] == 19
    assert notes["spec.flinkConfiguration.high-availability.type"] == 17
    assert notes["spec.job.args"] == 29


def test_all_the_faults_come_at_once_with_their_lines() -> None:
    text = PLAIN.replace('"4"', '"0"').replace("1600m", "16 gibi").replace("memory: 4g", "memory: 500m").replace("parallelism: 8, ", "")
    assert faults(text) == [
        ("SIZ-055", 7, "spec.flinkConfiguration.taskmanager.numberOfTaskSlots"),
        ("SIZ-055", 8, "spec.jobManager.resource.memory"),
        ("SIZ-057", 9, "spec.taskManager.resource.memory"),
        ("SPEC-005", 10, "spec.job.parallelism"),
    ]


def test_a_fault_of_a_key_has_the_line_of_that_key() -> None:
    text = PLAIN.replace('Slots: "4"', 'Slots: "4"\n    taskmanager.memory.network.min: 2g\n    taskmanager.memory.network.max: 1g')
    fault = only_fault(text)
    assert (fault.code, str(fault.at), fault.given) == ("SIZ-057", "flink.yaml:8", '"2g"')


def test_a_process_by_flinks_own_key_has_the_line_of_that_key() -> None:
    text = PLAIN.replace('Slots: "4"', 'Slots: "4"\n    taskmanager.memory.process.size: 500m').replace("{memory: 4g, cpu: 2}", "{cpu: 2}")
    fault = only_fault(text)
    assert (fault.code, str(fault.at), fault.given) == ("SIZ-057", "flink.yaml:8", '"500m"')


def test_several_documents_in_one_file_are_rejected_with_a_line() -> None:
    assert faults(f"{PLAIN}---\n{PLAIN}")[0][:2] == ("SPEC-002", 11)


def test_the_error_of_a_deployment_without_memory_names_the_field_to_set() -> None:
    fault = only_fault(PLAIN.replace("taskManager: {resource: {memory: 4g, cpu: 2}}", "taskManager: {resource: {cpu: 2}}"))
    assert (fault.code, fault.path) == ("SIZ-056", "spec.taskManager.resource.memory")
    assert fault.at
    assert fault.at.line == 9


def test_a_parallelism_by_default_only_is_rejected_as_by_the_operator() -> None:
    text = PLAIN.replace("parallelism: 8, ", "").replace('Slots: "4"', 'Slots: "4"\n    parallelism.default: "6"')
    fault = only_fault(text)
    assert (fault.code, fault.fix) == ("SPEC-005", "parallelism: 6")


def test_the_autoscalers_overrides_come_before_the_jobs_parallelism() -> None:
    made = converted(PLAIN.replace('Slots: "4"', 'Slots: "4"\n    pipeline.jobvertex-parallelism-overrides: "a:3,b:12"'))
    assert made.flink.parallelism == 12
    assert made.flink.task_managers == 3


@pytest.mark.parametrize(
    ("replace", "by", "code", "line"),
    [
        ("kind: FlinkDeployment", "kind: FlinkSessionJob", "SPEC-021", 2),
        ("kind: FlinkDeployment", "kind: SparkApplication", "SPEC-020", 2),
        ("kind: FlinkDeployment", "kind: FlinkBlueGreenDeployment", "SPEC-020", 2),
        ("v1beta1", "v1alpha1", "SPEC-020", 1),
        ('  job: {jarURI: "local:///j.jar", parallelism: 8, upgradeMode: stateless}\n', "", "SPEC-021", 4),
        ("upgradeMode: stateless", "upgrademode: stateless", "SPEC-004", 10),
        ("upgradeMode: stateless", "upgradeMode: laststate", "SPEC-006", 10),
        ("parallelism: 8", 'parallelism: "8"', "SPEC-006", 10),
        ("memory: 4g", "memory: 4096", "SPEC-006", 9),
        ("cpu: 2", "cpu: 0", "SPEC-006", 9),
        ("name: clicks", "name: Clicks", "SPEC-006", 3),
        ('"4"', '"2000"', "SPEC-006", 7),
        ("flinkVersion: v1_20", "flinkVersion: '1.20'", "SPEC-006", 5),
        ('Slots: "4"', 'Slots: "4"\n    taskmanager: {numberOfTaskSlots: 5}', "SPEC-008", 8),
        ('Slots: "4"', 'Slots: "4"\n    execution.checkpointing.interval: soon', "SIZ-055", 8),
        ('Slots: "4"', 'Slots: "4"\n    execution.checkpointing.timeout: never', "SIZ-055", 8),
        ('Slots: "4"', 'Slots: "4"\n    pipeline.max-parallelism: 4', "SPEC-008", 8),
        ("  flinkVersion: v1_20\n", "", "SPEC-005", 4),
    ],
)
def test_a_rejection_has_a_code_and_a_line(replace: str, by: str, code: str, line: int) -> None:
    assert replace in PLAIN
    fault = only_fault(PLAIN.replace(replace, by))
    assert (fault.code, fault.at.line if fault.at else None) == (code, line)
    assert fault.need
    assert fault.fix


def test_a_field_of_a_newer_operator_is_a_note() -> None:
    made = converted(PLAIN.replace("  flinkVersion:", "  shinyThing: {a: 1}\n  flinkVersion:"))
    assert "unknown field" in note(made, "spec.shinyThing")


def test_last_state_without_an_interval_has_the_operators() -> None:
    made = converted(PLAIN.replace("stateless", "last-state"))
    assert (spec_of(made)["trigger"], made.flink.checkpoint_interval_ms) == ("10s", 300_000)


@pytest.mark.parametrize(("interval", "trigger"), [("60s", "10s"), ("10 min", "10s"), ("10s", "10s"), ("2s", "2s"), ("500ms", "500ms")])
def test_a_checkpoint_interval_is_no_latency_unless_it_is_shorter(interval: str, trigger: str) -> None:
    made = converted(
        PLAIN.replace("  flinkConfiguration:\n", f'  flinkConfiguration:\n    execution.checkpointing.interval: "{interval}"\n')
    )
    assert spec_of(made)["trigger"] == trigger
    (said,) = (note.text for note in made.notes if "checkpoint interval is" in note.text)
    assert "in Spark the trigger is the latency as well" in said


@pytest.mark.parametrize(("timeout", "limit"), [("20 min", "20m"), ("5s", "10s")])
def test_the_timeout_of_checkpoints_limits_a_micro_batch_and_is_at_least_the_trigger(timeout: str, limit: str) -> None:
    given = f'  flinkConfiguration:\n    execution.checkpointing.timeout: "{timeout}"\n'
    assert spec_of(converted(PLAIN.replace("  flinkConfiguration:\n", given)))["progressTimeout"] == limit
    assert "progressTimeout" not in spec_of(converted(PLAIN))


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("restart-strategy.type: failure-rate", {"failures": 1, "within": "1m"}),
        ("restart-strategy: failurerate\n    restart-strategy.failure-rate.max-failures-per-interval: 5", {"failures": 5, "within": "1m"}),
        (
            "restart-strategy.type: failure-rate\n    restart-strategy.failure-rate.max-failures-per-interval: 60\n"
            "    restart-strategy.failure-rate.failure-rate-interval: 2 h",
            {"failures": 50, "within": "2h"},
        ),
        ("restart-strategy.type: fixed-delay", None),
    ],
)
def test_a_failure_rate_limits_restarts(given: str, limit: dict[str, object] | None) -> None:
    made = converted(PLAIN.replace("  flinkConfiguration:\n", f"  flinkConfiguration:\n    {given}\n"))
    assert spec_of(made).get("restart") == limit
    assert any("failure rate" in note.text for note in made.notes) == (limit is not None)


@pytest.mark.parametrize(
    ("entry_class", "args", "expected"),
    [
        ("com.example.UserCreditJob", [], "user_credit_job"),
        ("com.example.Outer$HTTPJob", [], "http_job"),
        (None, [], "my_job"),
        ("", [], "my_job"),
        ("com.example.Import", [], "import_job"),
        ("com.example.Größe", [], "gr_e"),
        ("com.example.9to5", [], "my_job"),
        ("p.PythonDriver", ["-py", "/a/b/word_count.py"], "word_count"),
        ("p.PythonDriver", ["-pym", "jobs.word_count"], "word_count"),
        ("p.PythonDriver", ["-py"], "python_driver"),
    ],
)
def test_the_apps_name(entry_class: str | None, args: list[str], expected: str) -> None:
    assert app_name("my-job", entry_class, args) == expected


def test_comments_stand_whatever_the_values_are() -> None:
    text = PLAIN.replace("flinkVersion:", 'image: "a\\nb\\u2028: [\\u0085] \\ufeff # x"\n  flinkVersion:')
    made = converted(text)
    assert yaml.safe_load(made.text) == made.document


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, entry in entries for below in _paths(entry, (*path, key)))]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["-1", "0", "1e9", "2Gi", "PT", "99999999999", "{}"]),
)


@given(
    source=st.sampled_from(DEPLOYMENTS),
    seed=st.integers(0, 2**32),
    value=st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2), max_leaves=4
    ),
    change=st.sampled_from(["replace", "remove", "rename"]),
)
def test_a_mutated_deployment_is_converted_or_rejected_with_lines(source: Path, seed: int, value: Any, change: str) -> None:
    document = copy.deepcopy(yaml.safe_load(source.read_text()))
    *above, last = random.Random(seed).choice(_paths(document)[1:])
    holder = document
    for key in above:
        holder = holder[key]
    if change == "replace":
        holder[last] = value
    else:
        moved = holder.pop(last)
        if change == "rename" and isinstance(holder, dict):
            holder[json.dumps(value, default=str)[:20]] = moved
    text = yaml.safe_dump(document, allow_unicode=True)
    try:
        made = converted(text)
    except PenstockError as error:
        for fault in error.errors:
            assert fault.at
            assert fault.at.line
            assert fault.need
            assert fault.fix
    else:
        assert StreamingJob.model_validate(yaml.safe_load(made.text)) == made.job
        assert plan(made.targets).totals.executors == made.flink.task_managers
