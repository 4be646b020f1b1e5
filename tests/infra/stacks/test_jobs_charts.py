from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.errors import SettingOfDeployment
from penstock.infra.image_tag import VARIABLE
from penstock.infra.plans import plans
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.sizing.errors import PenstockError
from tests.infra.authorities import authority
from tests.infra.environments import Change, read
from tests.infra.manifests.jobs_in_cluster import hold, of_kind
from tests.infra.stacks.synthesized import CLUSTER, Content, content

SPECS = Path(__file__).resolve().parents[3] / "jobs/specs"
CHECKPOINTS = SimpleNamespace(checkpoints_bucket="the-checkpoints", output_bucket="the-output")
KAFKA = SimpleNamespace(bootstrap_brokers="b-1.example:9098,b-2.example:9098", security="iam")
REGISTRY = SimpleNamespace(repository_url="registry.example/penstock-production/jobs")
ROLES = "arn:aws:iam::111122223333:role/"


@pytest.fixture(autouse=True)
def _no_image_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def synthesized(folder: Path, environment: Environment, kafka: Any = KAFKA) -> Content:
    from penstock.infra.stacks.jobs_charts import JobsChartsStack

    environment_plans = plans(environment)
    roles = SimpleNamespace(role_arns={job.name: f"{ROLES}{job.name}" for job in environment_plans.jobs})

    def add(app: Any) -> object:
        return JobsChartsStack(app, environment, environment_plans, CLUSTER, CHECKPOINTS, kafka, REGISTRY, roles)

    return content(folder, "jobs-charts", add)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The stack of the production environment."""
    return synthesized(tmp_path_factory.mktemp("jobs-charts"), load("production"))


@pytest.fixture
def with_job(tmp_path: Path) -> Callable[..., Content]:
    """The stack of a production environment with one job, whose spec differs from the shipped one."""

    def made(changes: dict[str, Any], change: Change | None = None, kafka: Any = KAFKA) -> Content:
        document = yaml.safe_load((SPECS / "user_credit.yaml").read_text("utf-8"))
        document["spec"].update(changes)
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(document), "utf-8")

        def one_job(spec: dict[str, Any]) -> None:
            spec["jobs"] = ["job.yaml"]
            if change is not None:
                change(spec)

        return synthesized(tmp_path, read(tmp_path, one_job), kafka)

    return made


def given(stack: Content, job: str = "user-credit") -> list[dict[str, Any]]:
    """All that a job's release is given."""
    (text,) = stack["resource"]["helm_release"][f"job-{job}"]["values"]
    parsed: list[dict[str, Any]] = json.loads(text)["manifests"]
    return parsed


def manifests(stack: Content, job: str = "user-credit") -> list[dict[str, Any]]:
    """A job's objects, without the hooks of its release."""
    return [one for one in given(stack, job) if "helm.sh/hook" not in one["metadata"].get("annotations", {})]


def hooks(stack: Content, job: str = "user-credit") -> list[dict[str, Any]]:
    """The hooks of a job's release."""
    return [one for one in given(stack, job) if "helm.sh/hook" in one["metadata"].get("annotations", {})]


def runtime(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (config_map,) = of_kind(objects, "ConfigMap")
    configuration: dict[str, Any] = json.loads(config_map["data"]["runtime.json"])
    return configuration


def test_each_job_is_a_release_of_its_own(stack: Content) -> None:
    releases = stack["resource"]["helm_release"]
    assert set(releases) == {"job-user-credit", "job-flights"}
    assert {release["namespace"] for release in releases.values()} == {"kube-system"}
    # Source: Helm: a release's name has at most 53 characters. A job's name has at most 45.
    assert max(len(name) for name in releases) <= 53


def test_a_release_has_time_for_the_driver_that_stops_and_the_one_that_starts(stack: Content) -> None:
    for job in ("user-credit", "flights"):
        (driver,) = of_kind(manifests(stack, job), "StatefulSet")
        grace_s = driver["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert stack["resource"]["helm_release"][f"job-{job}"]["timeout"] == 600 + 300 + grace_s


@pytest.mark.parametrize("job", ["user-credit", "flights"])
def test_every_manifest_is_one_by_kubernetes_own_schemas(stack: Content, job: str) -> None:
    for manifest in given(stack, job):
        hold(manifest)


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize("trigger", ["10s", "availableNow"])
def test_every_upgrade_is_checked_in_the_new_image_with_the_new_configuration(
    with_job: Callable[..., Content], *, operator: bool, trigger: str
) -> None:
    sources = {name: {"kafka": {"topic": f"events-{name}", "partitions": 10, "startingOffsets": "earliest"}} for name in ("a", "b")}
    stack = with_job({"trigger": trigger, "sources": sources}, lambda spec: spec["eks"].update(sparkOperator=operator))
    files, check = hooks(stack)
    assert (files["kind"], check["kind"]) == ("ConfigMap", "Job")
    assert int(files["metadata"]["annotations"]["helm.sh/hook-weight"]) < int(check["metadata"]["annotations"]["helm.sh/hook-weight"])
    (own,) = of_kind(manifests(stack), "ConfigMap")
    assert files["data"]["job.yaml"] == own["data"]["job.yaml"]
    checked, run = (json.loads(one["data"]["runtime.json"]) for one in (files, own))
    assert {name for name in run if run[name] != checked[name]} == {"master", "sparkConf"}
    pod = check["spec"]["template"]["spec"]
    volume = {"name": "configuration", "configMap": {"name": files["metadata"]["name"], "defaultMode": 0o444}}
    assert volume in pod["volumes"]
    assert pod["serviceAccountName"] == "user-credit-driver"
    assert check["spec"]["activeDeadlineSeconds"] < stack["resource"]["helm_release"]["job-user-credit"]["timeout"]


def test_a_job_gets_the_outputs_of_the_other_stacks(stack: Content) -> None:
    objects = manifests(stack)
    configuration = runtime(objects)
    assert configuration["brokers"] == KAFKA.bootstrap_brokers
    assert configuration["kafkaSecurity"] == "iam"
    assert configuration["jobFolder"] == "s3a://the-checkpoints/user-credit"
    assert configuration["outputBucket"] == "the-output"
    assert configuration["sparkConf"]["spark.kubernetes.container.image"] == "registry.example/penstock-production/jobs:0.1.0"
    accounts = of_kind(objects, "ServiceAccount")
    assert {account["metadata"]["annotations"]["penstock.dev/role-arn"] for account in accounts} == {f"{ROLES}user-credit"}


def test_the_spec_goes_along_as_it_was_written(stack: Content) -> None:
    (config_map,) = of_kind(manifests(stack), "ConfigMap")
    assert config_map["data"]["job.yaml"] == (SPECS / "user_credit.yaml").read_text("utf-8")


def test_a_changed_parallelism_changes_executors_and_quota(with_job: Callable[..., Content], stack: Content) -> None:
    def instances(objects: list[dict[str, Any]]) -> tuple[str, str]:
        (quota,) = of_kind(objects, "ResourceQuota")
        return runtime(objects)["sparkConf"]["spark.executor.instances"], quota["spec"]["hard"]["pods"]

    assert instances(manifests(stack)) == ("2", "6")
    kafka = {name: {"kafka": {"topic": f"events-{name}", "partitions": 20}} for name in ("a", "b")}
    assert instances(manifests(with_job({"parallelism": 20, "sources": kafka}))) == ("4", "10")


def test_a_bounded_run_is_a_job(with_job: Callable[..., Content]) -> None:
    sources = {name: {"kafka": {"topic": f"events-{name}", "partitions": 10, "startingOffsets": "earliest"}} for name in ("a", "b")}
    objects = manifests(with_job({"trigger": "availableNow", "sources": sources}))
    assert of_kind(objects, "Job") and not of_kind(objects, "StatefulSet")


def test_with_the_operator_a_job_is_a_spark_application(with_job: Callable[..., Content]) -> None:
    objects = manifests(with_job({}, lambda spec: spec["eks"].update(sparkOperator=True)))
    assert of_kind(objects, "SparkApplication") and not of_kind(objects, "StatefulSet")


def test_brokers_of_others_are_reached_at_their_own_ports(with_job: Callable[..., Content]) -> None:
    servers = "b-1.example:9092,b-2.example:19092"

    def external(spec: dict[str, Any]) -> None:
        spec["kafka"] = {"kind": "external", "bootstrapServers": servers, "security": "tls"}

    objects = manifests(with_job({}, external, SimpleNamespace(bootstrap_brokers=servers, security="tls")))
    (outside,) = [policy for policy in of_kind(objects, "NetworkPolicy") if policy["metadata"]["name"] == "outside"]
    ports = {port["port"] for rule in outside["spec"]["egress"] for port in rule["ports"]}
    assert ports == {53, 80, 443, 9092, 19092}


def test_a_driver_is_told_of_the_secret_and_not_of_the_password(with_job: Callable[..., Content]) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"

    def external(spec: dict[str, Any]) -> None:
        spec["kafka"] = {"kind": "external", "bootstrapServers": "b:9096", "security": "sasl-plain", "secret": secret}

    objects = manifests(with_job({}, external, SimpleNamespace(bootstrap_brokers="b:9096", security="sasl-plain")))
    files = next(one["data"] for one in of_kind(objects, "ConfigMap") if "runtime.json" in one["data"])
    runtime = json.loads(files["runtime.json"])
    assert (runtime["kafkaSecurity"], runtime["kafkaSecret"]) == ("sasl-plain", secret)


def test_a_driver_has_the_private_ca_of_the_brokers_and_only_the_name_of_its_certificate(
    with_job: Callable[..., Content], tmp_path: Path
) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"
    (tmp_path / "ca.pem").write_text(authority())

    def external(spec: dict[str, Any]) -> None:
        ca_file = str(tmp_path / "ca.pem")
        spec["kafka"] = {"kind": "external", "bootstrapServers": "b:9094", "security": "mtls", "secret": secret, "caFile": ca_file}

    objects = manifests(with_job({}, external, SimpleNamespace(bootstrap_brokers="b:9094", security="mtls")))
    files = next(one["data"] for one in of_kind(objects, "ConfigMap") if "runtime.json" in one["data"])
    runtime = RuntimeConfiguration.model_validate_json(files["runtime.json"])
    assert (runtime.kafka.security, runtime.kafka.secret, runtime.kafka.ca) == ("mtls", secret, (tmp_path / "ca.pem").read_text())
    assert runtime.kafka.credentials is None


def test_a_setting_that_the_deployment_gives_is_refused_with_its_line(with_job: Callable[..., Content]) -> None:
    conf = {"spark.kubernetes.namespace": "kube-system", "spark.driver.port": "7078"}
    with pytest.raises(PenstockError) as raised:
        with_job({"sparkConf": conf})
    (fault,) = raised.value.errors
    assert isinstance(fault, SettingOfDeployment)
    assert fault.given == "kube-system"
    assert "spark.kubernetes.namespace" in fault.path
    assert fault.at is not None and fault.at.line


def test_a_pipelines_image_is_the_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1.4.2")
    for job in ("user-credit", "flights"):
        (driver,) = of_kind(manifests(synthesized(tmp_path / job, load("production")), job), "StatefulSet")
        (only,) = driver["spec"]["template"]["spec"]["containers"]
        assert only["image"] == "registry.example/penstock-production/jobs:1.4.2"


def test_a_job_with_a_tag_of_its_own_is_released_without_the_others(stack: Content, tmp_path: Path) -> None:
    changed = synthesized(tmp_path, read(tmp_path, lambda spec: spec.update(registry={"imageTags": {"flights": "1.4.2"}})))
    before, after = stack["resource"]["helm_release"], changed["resource"]["helm_release"]
    assert after["job-user-credit"] == before["job-user-credit"]
    # Of the job itself, the image of its driver and of its executors changes, and nothing else.
    same = json.dumps(given(changed, "flights")).replace("/jobs:1.4.2", "/jobs:0.1.0")
    assert json.loads(same) == given(stack, "flights")
    different = [new for old, new in zip(manifests(stack, "flights"), manifests(changed, "flights"), strict=True) if old != new]
    assert [one["kind"] for one in different] == ["ConfigMap", "StatefulSet"]
    (driver,) = of_kind(different, "StatefulSet")
    assert driver["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/penstock-production/jobs:1.4.2"


def test_two_synths_are_the_same_to_the_byte(stack: Content, tmp_path: Path) -> None:
    again = synthesized(tmp_path, load("production"))
    assert again["resource"]["helm_release"] == stack["resource"]["helm_release"]
