"""Conversion of a Flink session cluster with its jobs to job specs and a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.flink.session import SessionConversion, convert_session, documents
from penstock.jobs.spec import load
from penstock.sizing.errors import PenstockError

SMALL_JOBS = Path(__file__).parent / "session" / "small_jobs.yaml"
TEXT = SMALL_JOBS.read_text("utf-8")
CLUSTER, CLICKS, ERROR_LOGS = TEXT.split("---\n")


def converted(folder: Path, *texts: str) -> SessionConversion:
    """The conversion of files, one for each text."""
    files = [folder / f"{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, "utf-8")
    return convert_session(documents(files))


def refused(folder: Path, *texts: str) -> list[tuple[str, str]]:
    """Code and place of each error."""
    with pytest.raises(PenstockError) as error:
        converted(folder, *texts)
    return [(fault.code, str(fault.at).removeprefix(f"{folder}/")) for fault in error.value.errors]


def spec_of(made: SessionConversion, job: int) -> dict[str, Any]:
    spec: dict[str, Any] = made.jobs[job].document["spec"]
    return spec


def test_each_job_has_the_pods_of_the_cluster_and_its_own_configuration(tmp_path: Path) -> None:
    made = converted(tmp_path, TEXT)
    executor = {"slots": 4, "cores": 2, "memory": "8g"}
    common = {"executor": executor, "upgradeMode": "last-state"}
    assert spec_of(made, 0) == {
        **common,
        "app": "clicks_job",
        "parallelism": 2,
        "trigger": "10s",
        "state": {"backend": "rocksdb", "incremental": False},
    }
    assert spec_of(made, 1) == {
        **common,
        "app": "error_logs_job",
        "parallelism": 6,
        "upgradeMode": "savepoint",
        "trigger": "5s",
        "state": {"backend": "memory", "incremental": False},
    }


def test_they_are_sized_together(tmp_path: Path) -> None:
    made = converted(tmp_path, TEXT)
    assert (made.name, made.plan.jobs, made.plan.feasible) == ("small-jobs", ("clicks", "error-logs"), True)
    # Of 8 slots that are in use Flink has two TaskManagers; the jobs have one executor and two.
    assert (made.task_managers, made.plan.totals.executors) == (2, 3)
    # The JobManager is not each job's driver.
    drivers = [plan.pods.driver.memory_mib for plan in made.plans.values()]
    assert drivers == [2048, 2048] and made.plan.pods.driver.memory_mib == 4096


def test_executors_that_are_too_small_for_the_workers_of_all_jobs_get_an_overhead(tmp_path: Path) -> None:
    made = converted(tmp_path, TEXT.replace("memory: 8g", "memory: 3g"))
    needed = {"spark.executor.memoryOverhead": f"{made.plan.executor_overhead.needed_mib}m"}
    assert [spec_of(made, job)["sparkConf"] for job in (0, 1)] == [needed, needed]
    assert made.plan.feasible and made.plan.pods.executor.memory_mib == 3072
    assert "sparkConf" not in spec_of(converted(tmp_path, TEXT), 0)


def test_the_task_managers_of_a_standalone_cluster_are_its_replicas_and_no_jobs_parallelism(tmp_path: Path) -> None:
    made = converted(tmp_path, TEXT.replace("taskManager: {", "taskManager: {replicas: 5, "))
    assert made.task_managers == 5
    assert [spec_of(made, job)["parallelism"] for job in (0, 1)] == [2, 6]


@pytest.mark.parametrize(
    "texts", [(TEXT,), (CLUSTER, CLICKS, ERROR_LOGS), (f"{CLICKS}---\n{ERROR_LOGS}", f"--- # the cluster\n{CLUSTER}...\n")]
)
def test_the_documents_may_be_in_one_file_or_in_several_in_any_order(texts: tuple[str, ...], tmp_path: Path) -> None:
    made = converted(tmp_path, *texts)
    assert [job.document for job in made.jobs] == [job.document for job in converted(tmp_path, TEXT).jobs]


def as_list(*texts: str) -> str:
    """As `kubectl get -o yaml` prints objects."""
    live = {"status": {"lifecycleState": "STABLE"}}
    objects = [{**yaml.safe_load(text), **live} for text in texts]
    for one in objects:
        one["metadata"].update(creationTimestamp="2026-11-24T10:00:00Z", namespace="flink", resourceVersion="1", uid="0-1")
    text: str = yaml.safe_dump({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}})
    return text


def test_what_kubectl_prints_of_a_cluster_is_read_with_its_lines(tmp_path: Path) -> None:
    made = converted(tmp_path, as_list(CLICKS, CLUSTER, ERROR_LOGS))
    assert [job.document for job in made.jobs] == [job.document for job in converted(tmp_path, TEXT).jobs]
    left = {note.path for note in made.jobs[0].notes}
    assert "metadata.namespace" in left and not left & {"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp"}
    text = as_list(CLUSTER, CLICKS.replace("parallelism: 2", "parallelism: 0"))
    line = text.splitlines().index("      parallelism: 0") + 1
    assert refused(tmp_path, text) == [("SPEC-005", f"0.yaml:{line}")]
    assert refused(tmp_path, "apiVersion: v1\nkind: List\nitems: []\n", CLUSTER)[0] == ("SPEC-020", "0.yaml:2")
    assert refused(tmp_path, "apiVersion: v1\nkind: List\nitems: [5]\n", CLUSTER)[0][1] == "0.yaml:3"


def test_notes_have_the_line_of_their_file_and_its_name_if_it_is_another_one(tmp_path: Path) -> None:
    notes = {note.path: (note.file.removeprefix(f"{tmp_path}/"), note.line) for note in converted(tmp_path, CLUSTER, CLICKS).jobs[0].notes}
    assert notes["spec.image"] == ("0.yaml", 6)
    assert notes["spec.flinkConfiguration.state.backend.type"] == ("0.yaml", 10)
    assert notes["spec.job.entryClass"] == ("", 6)
    notes = {note.path: (note.file, note.line) for note in converted(tmp_path, TEXT).jobs[1].notes}
    assert notes["spec.image"] == ("", 6)
    assert notes["spec.flinkConfiguration.state.backend.type"] == ("", 31)
    assert notes["spec.restartNonce"] == ("", 29)


def test_the_specs_load_and_equal_the_result(tmp_path: Path) -> None:
    for job in converted(tmp_path, CLUSTER.replace("memory: 8g", "memory: 3g"), CLICKS, ERROR_LOGS).jobs:
        file = tmp_path / "spec.yaml"
        file.write_text(job.text, "utf-8")
        assert load(file).job == job.job
        assert yaml.safe_load(job.text) == job.document


def test_a_session_has_no_name_of_a_job(tmp_path: Path) -> None:
    assert converted(tmp_path, CLUSTER, CLICKS.replace("name: clicks", "name: small-jobs")).name == "small-jobs-session"
    long = "a" * 45
    texts = (text.replace("small-jobs", long) for text in (CLUSTER, CLICKS.replace("name: clicks", f"name: {long}")))
    assert converted(tmp_path, *texts).name == f"{'a' * 37}-session"


@pytest.mark.parametrize(
    ("texts", "faults"),
    [
        ((CLUSTER, CLUSTER, CLICKS), [("SPEC-021", "1.yaml:3")]),
        ((CLICKS, ERROR_LOGS), [("SPEC-021", "0.yaml:2")]),
        ((CLUSTER, CLICKS, CLICKS), [("SPEC-021", "2.yaml:3")]),
        ((CLUSTER, CLICKS.replace("deploymentName: small-jobs", "deploymentName: other")), [("SPEC-021", "1.yaml:5")]),
        ((f"{CLUSTER}  job: {{parallelism: 1}}\n", CLICKS), [("SPEC-021", "0.yaml:3")]),
        ((CLUSTER, CLICKS.replace("FlinkSessionJob", "SparkApplication")), [("SPEC-020", "1.yaml:2")]),
        ((CLUSTER, CLICKS.replace("deploymentName", "deploymentname")), [("SPEC-004", "1.yaml:5")]),
        ((CLUSTER, CLICKS.replace("parallelism: 2, ", "")), [("SPEC-005", "1.yaml:6")]),
        # Of the cluster, and said once.
        ((CLUSTER.replace('"4"', '"four"'), CLICKS, ERROR_LOGS), [("SIZ-055", "0.yaml:9")]),
        ((CLUSTER.replace("cpu: 2", "cpu: 0"), CLICKS, ERROR_LOGS), [("SPEC-006", "0.yaml:15")]),
        ((CLUSTER, ERROR_LOGS.replace("5 s", "soon")), [("SIZ-055", "1.yaml:9")]),
        ((CLUSTER, f"{CLICKS}---\n{CLICKS}"), [("SPEC-021", "1.yaml:10")]),
    ],
)
def test_what_is_no_session_cluster_with_its_jobs_is_refused_with_its_place(
    texts: tuple[str, ...], faults: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert refused(tmp_path, *texts) == faults
