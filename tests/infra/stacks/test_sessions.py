"""The stacks of an environment with a session."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.image_tag import VARIABLE
from penstock.infra.job_alarms import METRICS
from penstock.infra.plans import plans
from penstock.jobs.configuration.session import SessionConfiguration
from penstock.sizing.errors import PenstockError
from tests.infra.manifests.jobs_in_cluster import hold, of_kind
from tests.infra.sessions_of_jobs import APP, environment_with
from tests.infra.stacks import test_jobs, test_jobs_charts
from tests.infra.stacks.observed import synthesized as observed
from tests.infra.stacks.synthesized import CLUSTER, Content, content

SESSION = {"name": "shared", "jobs": ["a", "b"], "driver": {"cores": 4, "memory": "8g"}}
ROOMY = {"executor": {"slots": 4, "memory": "16g", "ephemeralStorage": "20g"}}
JOBS: dict[str, dict[str, Any]] = {"a": ROOMY, "b": ROOMY, "c": ROOMY}


@pytest.fixture(autouse=True)
def _no_image_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def charts(folder: Path, environment: Environment) -> Content:
    from penstock.infra.stacks.jobs_charts import JobsChartsStack

    planned = plans(environment)
    roles = SimpleNamespace(role_arns={name: f"{test_jobs_charts.ROLES}{name}" for name in planned.workloads})
    given = (CLUSTER, test_jobs_charts.CHECKPOINTS, test_jobs_charts.KAFKA, test_jobs_charts.REGISTRY, roles)
    return content(folder, "jobs-charts", lambda app: JobsChartsStack(app, environment, planned, *given))


def released(folder: Path, sessions: list[dict[str, Any]], jobs: dict[str, dict[str, Any]] | None = None) -> Content:
    return charts(folder, environment_with(folder, sessions, jobs or JOBS))


def configuration(stack: Content) -> SessionConfiguration:
    files = of_kind(test_jobs_charts.manifests(stack, "shared"), "ConfigMap")[0]["data"]
    return SessionConfiguration.model_validate_json(files["session.json"])


def template(stack: Content) -> dict[str, Any]:
    (driver,) = of_kind(test_jobs_charts.manifests(stack, "shared"), "StatefulSet")
    pod: dict[str, Any] = driver["spec"]["template"]
    return pod


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    return released(tmp_path_factory.mktemp("sessions"), [SESSION])


def test_a_session_is_a_release_in_place_of_its_jobs(stack: Content) -> None:
    assert set(stack["resource"]["helm_release"]) == {"job-c", "job-shared"}
    for manifest in test_jobs_charts.given(stack, "shared"):
        hold(manifest)
        labels = manifest["metadata"]["labels"]
        assert (labels["penstock.dev/job"], labels["penstock.dev/session"]) == ("shared", "shared")
        assert manifest["metadata"].get("namespace", "job-shared") == "job-shared"


def test_its_configuration_has_each_job_with_its_own_settings(stack: Content) -> None:
    made = configuration(stack)
    assert set(made.jobs) == {"a", "b"}
    assert "spark.executor.instances" not in made.spark_conf and made.spark_conf["spark.scheduler.mode"] == "FAIR"
    assert made.executors == 2
    for name, job in made.jobs.items():
        assert job.configuration.job_folder == f"s3a://the-checkpoints/{name}"
        assert all(key.startswith(("spark.sql.", "spark.penstock.")) for key in job.configuration.spark_conf)
        assert f"name: {name}" in job.files[job.configuration.spec]


def test_an_app_is_an_object_that_is_there_before_the_release_that_names_it(stack: Content) -> None:
    objects = stack["resource"]["aws_s3_object"]
    assert set(objects) == {"app-a", "app-b"}
    for name, job in configuration(stack).jobs.items():
        assert job.app is not None
        archived = objects[f"app-{name}"]
        assert archived["key"] == f"{name}/apps/{job.app.sha256}.zip" and job.app.uri == f"s3a://the-checkpoints/{archived['key']}"
        assert archived["lifecycle"] == {"create_before_destroy": True}
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(archived["content_base64"]))) as modules:
            assert {path: modules.read(path).decode() for path in modules.namelist()} == {f"{name}_app.py": APP}
    assert set(stack["resource"]["helm_release"]["job-shared"]["depends_on"]) == {"aws_s3_object.app-a", "aws_s3_object.app-b"}


def test_the_driver_runs_the_program_of_sessions_and_may_be_told_what_is_stopped(stack: Content) -> None:
    spec = template(stack)["spec"]
    (container,) = spec["containers"]
    assert container["command"][-3:] == ["-m", "penstock.jobs.session.runtime", "/etc/penstock/session.json"]
    optional = [volume for volume in spec["volumes"] if volume.get("configMap", {}).get("optional")]
    assert [volume["configMap"]["name"] for volume in optional] == ["shared-requests"]
    assert {"name": optional[0]["name"], "mountPath": "/etc/penstock-requests", "readOnly": True} in container["volumeMounts"]


def test_each_job_is_checked_before_an_upgrade_with_its_own_app(stack: Content) -> None:
    hooks = test_jobs_charts.hooks(stack, "shared")
    checks = of_kind(hooks, "Job")
    assert [check["metadata"]["name"] for check in checks] == ["a-upgrade-check", "b-upgrade-check"]
    for check in checks:
        command = check["spec"]["template"]["spec"]["containers"][0]["command"]
        assert command[-2:] == ["--app", "/etc/penstock/app.json"]
    files = {one["metadata"]["name"]: one["data"] for one in of_kind(hooks, "ConfigMap")}
    assert "/a/apps/" in json.loads(files["a-upgrade-check"]["app.json"])["uri"]


@pytest.mark.parametrize(
    ("session", "changed", "restarts"),
    [
        ({**SESSION, "jobs": ["a", "b", "c"]}, JOBS, False),
        ({**SESSION, "jobs": ["a"]}, JOBS, False),
        (SESSION, {**JOBS, "b": {**ROOMY, "parallelism": 8}}, False),
        (SESSION, {**JOBS, "b": {**ROOMY, "sparkConf": {"spark.sql.shuffle.partitions": "3"}}}, False),
        ({**SESSION, "driver": {"cores": 5, "memory": "8g"}}, JOBS, True),
        (SESSION, {name: {**ROOMY, "sparkConf": {"spark.hadoop.a": "1"}} for name in JOBS}, True),
        (SESSION, {name: {"executor": {**ROOMY["executor"], "memory": "17g"}} for name in JOBS}, True),
    ],
)
def test_only_what_all_jobs_share_restarts_the_driver(
    stack: Content, session: dict[str, Any], changed: dict[str, dict[str, Any]], restarts: bool, tmp_path: Path
) -> None:
    after = released(tmp_path, [session], changed)
    assert (template(after) != template(stack)) is restarts
    assert configuration(after) != configuration(stack)


def test_jobs_of_different_images_are_refused(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, [SESSION], JOBS, registry={"imageTag": "1", "imageTags": {"b": "2"}})
    with pytest.raises(PenstockError) as raised:
        charts(tmp_path, environment)
    assert [error.code for error in raised.value.errors] == ["INF-085"]
    assert raised.value.errors[0].given == "a 1, b 2"


def test_an_app_that_is_too_large_is_refused(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, [SESSION], JOBS)
    (tmp_path / "data_of_a.py").write_text(f"X = '{'x' * 6_000_000}'\n", "utf-8")
    (tmp_path / "a_app.py").write_text(f"import data_of_a\n{APP}", "utf-8")
    with pytest.raises(PenstockError) as raised:
        charts(tmp_path, environment)
    (error,) = raised.value.errors
    assert error.code == "INF-087" and "data_of_a.py" in error.need


def test_a_session_has_one_role_with_the_rights_of_its_jobs(tmp_path: Path) -> None:
    stack = test_jobs.synthesized(tmp_path, environment_with(tmp_path, [SESSION], JOBS))
    assert set(stack["resource"]["aws_iam_role"]) == {"job-c", "job-shared"}
    assert {name for name in stack["resource"]["aws_eks_pod_identity_association"] if "shared" in name} == {
        "job-shared-driver",
        "job-shared-executor",
    }
    rights = test_jobs.policy(test_jobs.replaced(stack["resource"]["aws_iam_role_policy"]["job-shared"]["policy"]))
    ids = [statement["Sid"] for statement in rights]
    assert len(ids) == len(set(ids))
    objects = {resource for one in rights if one["Sid"].startswith("UseOwnCheckpoints") for resource in one["Resource"]}
    assert objects == {"arn:aws:s3:::the-checkpoints/a/*", "arn:aws:s3:::the-checkpoints/b/*"}
    assert sum(one["Sid"].startswith("ConnectToBrokers") for one in rights) == 1


def test_logs_and_metrics_of_a_session_are_by_job(tmp_path: Path) -> None:
    stacks = observed(tmp_path, environment_with(tmp_path, [SESSION], JOBS))
    alarms = stacks["observability"]["resource"]["aws_cloudwatch_metric_alarm"]
    assert alarms["a-lag"]["dimensions"] == {"Job": "a"} and alarms["b-lag"]["dimensions"] == {"Job": "b"}
    # One group with one filter of each metric, whose dimension is what each event says itself.
    filters = stacks["observability"]["resource"]["aws_cloudwatch_log_metric_filter"]
    assert {name for name in filters if name.startswith(("a-", "b-", "shared-"))} == {f"shared-{metric.name}" for metric in METRICS}
    assert all(filters[f"shared-{metric.name}"]["metric_transformation"]["dimensions"] == {"Job": "$.job"} for metric in METRICS)
    # A job keeps its alarms, and what it has written, when it moves into a session; it writes to the session's group.
    apart = observed(tmp_path / "apart", environment_with(tmp_path, [], JOBS))
    for kind, added in (("aws_cloudwatch_metric_alarm", set()), ("aws_cloudwatch_log_group", {"shared"})):
        before, after = (one["observability"]["resource"][kind] for one in (apart, stacks))
        assert after.keys() - before.keys() == added
        assert {name: {**before[name], "//": None} for name in before} == {name: {**after[name], "//": None} for name in before}
    text = json.dumps(stacks["observability-charts"])
    assert "*_job-shared_*.log" in text and "*_job-a_*.log" not in text
    assert "shared-driver-0.shared-driver.job-shared.svc:4040" in text and "DAGScheduler_penstock_job_a_" in text
