"""Jobs whose parallelism an environment sets: one number, whatever is made of the spec."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.job_specs import spec_in
from penstock.infra.parts.jobs import EnvironmentJob
from penstock.infra.plans import plans
from penstock.infra.synth_request import read as read_request
from penstock.infra.synth_request import request
from penstock.jobs import spec as specs
from penstock.jobs.driver.fingerprint import spec_hash
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read, written
from tests.infra.manifests.jobs_in_cluster import of_kind
from tests.infra.stacks.synthesized import CLUSTER, content

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 100 # as in production
  executor: {slots: 2, memory: 4g}
  sources: {a: {kafka: {topic: clicks}, time: {field: at, outOfOrderness: 10s}}}
  sinks: {out: {files: {path: out}}}
"""


def environment(folder: Path, entry: object, *, spec: str = SPEC, app: str = "") -> Environment:
    (folder / "app.py").write_text(app, "utf-8")
    (folder / "clicks.yaml").write_text(spec, "utf-8")
    return read(folder, lambda document: document.update(jobs=[entry]))


def in_two_slots(folder: Path, **more: Any) -> Environment:
    return environment(folder, {"spec": "clicks.yaml", "parallelism": 2}, **more)


def line(folder: Path, text: str) -> int:
    """The line of the environment's file that has a text."""
    (number,) = [number for number, one in enumerate((folder / "environment.yaml").read_text("utf-8").splitlines(), 1) if text in one]
    return number


def faults(folder: Path, entry: object) -> list[tuple[str, str, int | None]]:
    with pytest.raises(PenstockError) as caught:
        plans(environment(folder, entry))
    return [(fault.code, fault.path, fault.at.line if fault.at else None) for fault in caught.value.errors]


def test_the_plan_has_the_environments_number_and_says_whose_it_takes_the_place_of(tmp_path: Path) -> None:
    (job,) = plans(in_two_slots(tmp_path)).jobs
    assert (job.plan.parallelism.value, job.plan.parallelism.source) == (2, "environment")
    assert (job.plan.totals.executors, job.plan.kafka.topics) == (1, {"clicks": 2})
    here = f"{tmp_path / 'environment.yaml'}:{line(tmp_path, 'parallelism: 2')}"
    assert any(note.startswith(f"parallelism: 2 in {here}") and "overrides parallelism: 100 in " in note for note in job.plan.notes)
    assert job.targets.origins["parallelism"].path == "spec.jobs[0].parallelism"


def test_a_path_alone_leaves_the_spec_as_it_is(tmp_path: Path) -> None:
    for entry in ("clicks.yaml", {"spec": "clicks.yaml"}):
        (job,) = plans(environment(tmp_path, entry)).jobs
        assert (job.plan.parallelism.value, job.spec.override, job.spec.document.text) == (100, None, SPEC)


def test_the_code_still_wins_and_the_note_names_the_environments_number(tmp_path: Path) -> None:
    (job,) = plans(in_two_slots(tmp_path, app="PARALLELISM = 7\n")).jobs
    assert (job.plan.parallelism.value, job.plan.parallelism.source) == (7, "code")
    (note,) = [note for note in job.plan.notes if note.startswith("PARALLELISM")]
    assert note.startswith("PARALLELISM = 7 in ")
    assert f"overrides parallelism: 2 in {tmp_path / 'environment.yaml'}:" in note


def test_a_load_is_replaced_where_the_spec_has_the_executors_memory(tmp_path: Path) -> None:
    load_ = "load: {eventsPerSecond: 100000, eventBytes: 200, eventsPerSlot: 1000}"
    text = SPEC.replace("parallelism: 100 # as in production", load_)
    (job,) = plans(in_two_slots(tmp_path, spec=text)).jobs
    assert (job.plan.parallelism.value, job.plan.throughput) == (2, None)
    (note,) = [note for note in job.plan.notes if note.startswith("parallelism: 2")]
    assert "overrides load in " in note
    with pytest.raises(PenstockError) as caught:
        plans(in_two_slots(tmp_path, spec=text.replace(", memory: 4g", "")))
    (fault,) = caught.value.errors
    assert (fault.code, fault.path, fault.given) == ("SPEC-014", "spec.jobs[0].parallelism", "2")
    assert fault.at is not None
    assert (Path(fault.at.file), fault.at.line) == (tmp_path / "environment.yaml", line(tmp_path, "parallelism: 2"))


def test_an_infeasible_number_is_reported_where_it_stands(tmp_path: Path) -> None:
    text = SPEC.replace("topic: clicks", "topic: clicks, partitions: 4")
    with pytest.raises(PenstockError) as caught:
        plans(environment(tmp_path, {"spec": "clicks.yaml", "parallelism": 5}, spec=text))
    (fault,) = [fault for fault in caught.value.errors if fault.code == "SIZ-015"]
    assert (fault.path, fault.at and fault.at.line) == ("spec.jobs[0].parallelism", line(tmp_path, "parallelism: 5"))


@pytest.mark.parametrize(
    ("entry", "code", "path", "text"),
    [
        ({"spec": "clicks.yaml", "parallelism": 0}, "SPEC-006", "spec.jobs[0].parallelism", "parallelism: 0"),
        ({"spec": "clicks.yaml", "parallelism": 32769}, "SPEC-006", "spec.jobs[0].parallelism", "parallelism: 32769"),
        ({"spec": "clicks.yaml", "parallelism": "4"}, "SPEC-006", "spec.jobs[0].parallelism", "parallelism: '4'"),
        ({"spec": "clicks.yaml", "parallelism": 2.5}, "SPEC-006", "spec.jobs[0].parallelism", "parallelism: 2.5"),
        ({"spec": "clicks.yaml", "paralelism": 4}, "SPEC-004", "spec.jobs[0].paralelism", "paralelism: 4"),
        ({"parallelism": 4}, "SPEC-005", "spec.jobs[0].spec", "- parallelism: 4"),
        ({"spec": "none.yaml", "parallelism": 4}, "SPEC-001", "spec.jobs[0]", "- spec: none.yaml"),
        (4, "SPEC-006", "spec.jobs[0]", "- 4"),
    ],
)
def test_a_bad_entry_is_an_error_with_its_line_and_path(tmp_path: Path, entry: object, code: str, path: str, text: str) -> None:
    assert faults(tmp_path, entry) == [(code, path, line(tmp_path, text))]


def test_a_spec_is_listed_once_whether_with_a_parallelism_or_not(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"each spec once; duplicate: a\.yaml"):
        read(tmp_path, lambda document: document.update(jobs=["a.yaml", {"spec": "a.yaml", "parallelism": 4}]))


def test_a_spec_that_the_environment_does_not_list_is_read_as_it_is(tmp_path: Path) -> None:
    own = in_two_slots(tmp_path)
    other = tmp_path / "other.yaml"
    other.write_text(SPEC, "utf-8")
    assert spec_in(own, other) == specs.load(other)
    assert spec_in(own, tmp_path / "." / "clicks.yaml").job.spec.parallelism == 2
    # A command that adds a job, or leaves some out, does not move the place.
    added = own.with_spec(jobs=[EnvironmentJob(spec=str(other)), *own.spec.jobs])
    assert spec_in(added, tmp_path / "clicks.yaml") == spec_in(own, tmp_path / "clicks.yaml")


def test_an_environment_of_a_program_has_no_place(tmp_path: Path) -> None:
    read_back = in_two_slots(tmp_path).of_document(None)
    spec = spec_in(read_back, tmp_path / "clicks.yaml")
    assert spec.override is not None
    assert (spec.override.value, spec.override.at) == (2, None)


def test_an_environment_with_it_is_written_and_read_back(tmp_path: Path) -> None:
    own = read(tmp_path, lambda document: document.update(jobs=["a.yaml", {"spec": "b.yaml", "parallelism": 4}]))
    file = tmp_path / "again.yaml"
    file.write_text(own.text(), "utf-8")
    assert load(file) == own
    assert yaml.safe_load(own.text())["spec"]["jobs"] == [str(tmp_path / "a.yaml"), {"spec": str(tmp_path / "b.yaml"), "parallelism": 4}]


def test_what_is_deployed_is_the_spec_with_this_number(tmp_path: Path) -> None:
    from penstock.infra.stacks.jobs_charts import JobsChartsStack

    own = in_two_slots(tmp_path)
    file = tmp_path / "request.json"
    request(own, plans(own)).write(file)
    # As in the process that synthesizes.
    sent = read_request(file)
    roles = SimpleNamespace(role_arns={"clicks": "arn:aws:iam::111122223333:role/clicks"})
    buckets = SimpleNamespace(checkpoints_bucket="the-checkpoints", output_bucket="the-output")
    kafka = SimpleNamespace(bootstrap_brokers="b-1.example:9098", security="iam")
    registry = SimpleNamespace(repository_url="registry.example/jobs")
    stack = content(
        tmp_path, "jobs-charts", lambda app: JobsChartsStack(app, sent.environment, sent.plans, CLUSTER, buckets, kafka, registry, roles)
    )
    (values,) = stack["resource"]["helm_release"]["job-clicks"]["values"]
    config = of_kind(json.loads(values)["manifests"], "ConfigMap")[0]["data"]
    assert config["job.yaml"] == SPEC.replace("parallelism: 100", "parallelism: 2")
    runtime = json.loads(config["runtime.json"])
    assert runtime["sparkConf"]["spark.executor.instances"] == "1"
    # An image of an earlier release reads the file too.
    assert "parallelism" not in runtime
    (tmp_path / "job.yaml").write_text(config["job.yaml"], "utf-8")
    assert spec_hash(specs.load(tmp_path / "job.yaml")) == spec_hash(sent.plans.jobs[0].spec)


def test_the_shipped_environments_have_paths_alone() -> None:
    for name in ("dev", "local", "production"):
        assert all(job.parallelism is None for job in load(name).spec.jobs)


def test_a_file_with_an_entry_of_each_kind_is_an_environment(tmp_path: Path) -> None:
    path = written(tmp_path, lambda document: document["jobs"].append({"spec": "clicks.yaml", "parallelism": 3}))
    assert [job.parallelism for job in load(path).spec.jobs] == [None, None, 3]
