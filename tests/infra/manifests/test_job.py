from __future__ import annotations

import json
import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from penstock.infra.manifests.client_mode_conf import CLASS_DATA_OPTIONS, client_mode_conf, owned_conf
from penstock.infra.manifests.config_map import fingerprint
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import READY_FILE
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.infra.manifests.job import job_manifests
from penstock.infra.manifests.pod_security import LOCAL_DIRS, TEMPORARY
from penstock.infra.parts.nodes import PodPlace
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.configuration.runtime import (
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
    READY_FILE_VARIABLE,
    TERMINATION_FILE_VARIABLE,
    RuntimeConfiguration,
)
from penstock.jobs.spec import load
from penstock.sizing.executor_spread import ExecutorSpread
from tests.infra.manifests.jobs_in_cluster import deployed, hold, of_kind

JOBS: dict[str, dict[str, Any]] = {
    "user-credit": {},
    "flights": {"shipped": "flights"},
    "bounded": {"trigger_s": None},
    "bare": {"role_arn": None, "driver": PodPlace(), "executor": PodPlace()},
    "longest-name": {"name": "a" * 45},
}
# Source: Kubernetes, "Pod Security Standards", restricted.
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest) -> DeployedJob:
    return deployed(**JOBS[request.param])


def driver_template(job: DeployedJob) -> dict[str, Any]:
    template: dict[str, Any] = job_manifests(job)[-1]["spec"]["template"]
    return template


def container(job: DeployedJob) -> dict[str, Any]:
    (only,) = driver_template(job)["spec"]["containers"]
    only_container: dict[str, Any] = only
    return only_container


def test_every_object_of_a_job_is_one_by_kubernetes_own_schemas(job: DeployedJob) -> None:
    for manifest in [*job_manifests(job), executor_pod_template(job)]:
        hold({"metadata": {}, **manifest})


def test_the_guard_refuses_a_field_that_kubernetes_does_not_have() -> None:
    manifest = job_manifests(deployed())[-1]
    manifest["spec"]["podManagmentPolicy"] = "Parallel"
    with pytest.raises(kubernetes_validate.ValidationError, match="podManagmentPolicy"):
        hold(manifest)


def test_the_namespace_comes_first_and_everything_else_lies_in_it(job: DeployedJob) -> None:
    first, *rest = job_manifests(job)
    assert (first["kind"], first["metadata"]["name"]) == ("Namespace", f"job-{job.name}")
    assert {manifest["metadata"]["namespace"] for manifest in rest} == {f"job-{job.name}"}
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in rest]
    assert len(set(names)) == len(names)


def test_every_name_and_label_has_a_length_that_kubernetes_takes(job: DeployedJob) -> None:
    labels = [value for manifest in job_manifests(job) for value in manifest["metadata"]["labels"].values()]
    # A StatefulSet labels its pods with its name and a hash of up to 10 characters.
    names = [f"{job.driver_name}-{'0' * 7}", job.driver_host_name, job.driver_name, job.namespace, *labels]
    assert all(len(name) <= 63 and re.fullmatch(r"[a-z0-9A-Z]([a-z0-9A-Z._-]*[a-z0-9A-Z])?", name) for name in names)


def test_the_namespace_holds_its_pods_to_the_restricted_standard() -> None:
    (namespace,) = of_kind(job_manifests(deployed()), "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_driver_and_executors_ask_for_no_right_on_their_node(job: DeployedJob) -> None:
    for spec in (driver_template(job)["spec"], executor_pod_template(job)["spec"]):
        for each in spec["containers"]:
            assert RESTRICTED.items() <= each["securityContext"].items()
            assert each["securityContext"]["readOnlyRootFilesystem"] is True
            assert each["securityContext"]["runAsUser"] == spec["securityContext"]["runAsUser"] == 185
            assert TEMPORARY in {mount["mountPath"] for mount in each["volumeMounts"]}
        assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(spec)
        assert not [volume for volume in spec["volumes"] if "hostPath" in volume]


def test_the_drivers_pod_requests_what_was_planned_to_the_mib(job: DeployedJob) -> None:
    planned = job.plan.pods.driver
    resources = container(job)["resources"]
    both = {"memory": f"{planned.memory_mib}Mi", "ephemeral-storage": f"{planned.request_ephemeral_storage_mib}Mi"}
    assert resources["requests"] == {"cpu": f"{planned.request_cpu_millicores}m", **both}
    assert resources["limits"] == both


def test_a_planned_cpu_limit_is_the_drivers() -> None:
    job = deployed()
    pods = job.plan.pods.model_copy(update={"driver": job.plan.pods.driver.model_copy(update={"limit_cpu_millicores": 3000})})
    limited = deployed(plan=job.plan.model_copy(update={"pods": pods}))
    assert container(limited)["resources"]["limits"] == {"memory": "2048Mi", "cpu": "3000m", "ephemeral-storage": "1636Mi"}


def test_a_streaming_job_is_a_stateful_set_of_one_and_a_bounded_one_a_job() -> None:
    assert job_manifests(deployed())[-1]["kind"] == "StatefulSet"
    assert job_manifests(deployed())[-1]["spec"]["replicas"] == 1
    bounded = job_manifests(deployed(trigger_s=None))[-1]
    assert bounded["kind"] == "Job"
    assert bounded["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    # Kubernetes starts the next pod when the previous one has ended, not while it is terminating.
    assert bounded["spec"]["podReplacementPolicy"] == "Failed"


def test_a_changed_bounded_run_is_another_job_for_a_template_of_one_cannot_change() -> None:
    before = job_manifests(deployed(trigger_s=None))[-1]
    after = job_manifests(deployed(trigger_s=None, spec_text="changed"))[-1]
    assert before["metadata"]["name"] != after["metadata"]["name"]


def test_the_drivers_node_is_not_taken_away_under_it() -> None:
    assert driver_template(deployed())["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"


def test_a_driver_has_time_for_the_current_micro_batch_when_it_is_stopped() -> None:
    def grace_s(trigger_s: float | None) -> int:
        seconds: int = driver_template(deployed(trigger_s=trigger_s))["spec"]["terminationGracePeriodSeconds"]
        return seconds

    assert grace_s(10) == 140
    assert grace_s(0.5) == 121
    assert grace_s(3600) == 7320
    assert grace_s(None) == 600


def test_drivers_and_executors_go_where_the_environment_sends_them() -> None:
    job = deployed()
    for spec, role in ((driver_template(job)["spec"], "driver"), (executor_pod_template(job)["spec"], "executor")):
        assert spec["nodeSelector"] == {"penstock.dev/role": role}
        assert spec["tolerations"] == [{"key": "penstock.dev/role", "operator": "Equal", "value": role, "effect": "NoSchedule"}]


def test_executors_find_the_driver_by_the_name_of_its_headless_service() -> None:
    job = deployed()
    manifests = job_manifests(job)
    (service,) = of_kind(manifests, "Service")
    (stateful_set,) = of_kind(manifests, "StatefulSet")
    spec, template = service["spec"], driver_template(job)
    assert spec["clusterIP"] == "None"
    # The driver becomes ready only with its executors.
    assert spec["publishNotReadyAddresses"] is True
    assert spec["selector"].items() <= template["metadata"]["labels"].items()
    assert stateful_set["spec"]["serviceName"] == service["metadata"]["name"] == "user-credit-driver"
    assert client_mode_conf(job)["spark.driver.host"] == "user-credit-driver-0.user-credit-driver.job-user-credit.svc"
    # This gives a Job's pod what a StatefulSet's pod has by default.
    bounded = driver_template(deployed(trigger_s=None))["spec"]
    assert (bounded["hostname"], bounded["subdomain"]) == ("user-credit-driver-0", "user-credit-driver")


def test_ports_are_the_same_in_settings_container_service_and_policy() -> None:
    job = deployed()
    conf = client_mode_conf(job)
    (service,) = of_kind(job_manifests(job), "Service")
    ports = {int(conf[key]) for key in ("spark.driver.port", "spark.driver.blockManager.port", "spark.ui.port")}
    assert ports == {port["port"] for port in service["spec"]["ports"]} == {port["containerPort"] for port in container(job)["ports"]}
    assert conf["spark.blockManager.port"] == conf["spark.driver.blockManager.port"]
    assert conf["spark.port.maxRetries"] == "0"


def test_executors_belong_to_the_pod_that_the_driver_gets_by_name() -> None:
    (pod_name,) = [one for one in container(deployed())["env"] if one["name"] == POD_NAME_VARIABLE]
    assert pod_name["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_a_restarted_container_knows_its_pod_by_the_uid() -> None:
    (uid,) = [one for one in container(deployed())["env"] if one["name"] == POD_UID_VARIABLE]
    assert uid["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"


def test_a_release_is_done_when_the_query_reads() -> None:
    only = container(deployed())
    assert {"name": READY_FILE_VARIABLE, "value": READY_FILE} in only["env"]
    assert only["readinessProbe"]["exec"]["command"] == ["test", "-e", READY_FILE]
    for probe in ("startupProbe", "livenessProbe"):
        assert only[probe]["httpGet"]["port"] == 4040


def test_the_driver_leaves_its_last_failure_where_kubelet_reads_it() -> None:
    only = container(deployed())
    assert {"name": TERMINATION_FILE_VARIABLE, "value": only["terminationMessagePath"]} in only["env"]
    assert only["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_driver_reads_back_what_is_written_for_it(tmp_path: Any) -> None:
    job = deployed()
    (config_map,) = of_kind(job_manifests(job), "ConfigMap")
    for name, text in config_map["data"].items():
        (tmp_path / name).write_text(text, "utf-8")
    runtime = RuntimeConfiguration.read(tmp_path / "runtime.json")
    assert load(tmp_path / "job.yaml").job.metadata.name == "user-credit"
    assert runtime.spec == "/etc/penstock/job.yaml"
    assert container(job)["command"][-1] == "/etc/penstock/runtime.json"
    assert runtime.spark_conf == client_mode_conf(job)
    assert runtime.master == "k8s://https://kubernetes.default.svc"
    assert (runtime.kafka_security, runtime.region) == ("iam", "us-east-1")
    assert yaml.safe_load((tmp_path / "executor.yaml").read_text("utf-8")) == executor_pod_template(job)
    assert runtime.spark_conf["spark.kubernetes.executor.podTemplateFile"] == "/etc/penstock/executor.yaml"


def test_spark_gets_every_setting_of_the_plan(job: DeployedJob) -> None:
    assert job.plan.spark_conf.items() <= client_mode_conf(job).items()


def test_what_the_deployment_gives_no_plan_takes_away() -> None:
    plan = deployed().plan
    elsewhere = plan.model_copy(update={"spark_conf": {**plan.spark_conf, "spark.kubernetes.namespace": "kube-system"}})
    job = deployed(plan=elsewhere)
    assert client_mode_conf(job)["spark.kubernetes.namespace"] == "job-user-credit"
    assert owned_conf(job).items() <= client_mode_conf(job).items()


def test_only_the_executors_lost_within_an_hour_end_a_driver_unless_a_spec_says_otherwise() -> None:
    key, plan = "spark.executor.failuresValidityInterval", deployed().plan
    assert client_mode_conf(deployed())[key] == "1h"
    own = plan.model_copy(update={"spark_conf": {**plan.spark_conf, key: "10m"}})
    assert client_mode_conf(deployed(plan=own))[key] == "10m"


def test_executors_have_two_heaps_of_glibc_unless_a_spec_says_otherwise() -> None:
    key, plan = "spark.executorEnv.MALLOC_ARENA_MAX", deployed().plan
    assert client_mode_conf(deployed())[key] == "2"
    own = plan.model_copy(update={"spark_conf": {**plan.spark_conf, key: "8"}})
    assert client_mode_conf(deployed(plan=own))[key] == "8"


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_jvms_map_the_images_archive_of_classes_beside_the_options_of_a_spec(role: str) -> None:
    key, plan = f"spark.{role}.defaultJavaOptions", deployed().plan
    own = plan.model_copy(update={"spark_conf": {**plan.spark_conf, f"spark.{role}.extraJavaOptions": "-XX:+UseZGC"}})
    assert client_mode_conf(deployed(plan=own))[key] == CLASS_DATA_OPTIONS
    without = plan.model_copy(update={"spark_conf": {**plan.spark_conf, key: ""}})
    assert client_mode_conf(deployed(plan=without))[key] == ""


def test_executors_are_decommissioned_unless_a_spec_says_otherwise() -> None:
    plan = deployed().plan
    kept = {key: value for key, value in plan.spark_conf.items() if "decommission" not in key}
    assert client_mode_conf(deployed(plan=plan.model_copy(update={"spark_conf": kept})))["spark.decommission.enabled"] == "true"
    off = plan.model_copy(update={"spark_conf": {**kept, "spark.decommission.enabled": "false"}})
    assert client_mode_conf(deployed(plan=off))["spark.decommission.enabled"] == "false"


def test_spark_keeps_its_scratch_files_where_a_volume_is() -> None:
    mounts = {mount["mountPath"] for mount in container(deployed())["volumeMounts"]}
    assert client_mode_conf(deployed())["spark.local.dir"] == LOCAL_DIRS
    assert LOCAL_DIRS in mounts


def size_limits(spec: dict[str, Any]) -> dict[str, str | None]:
    return {volume["name"]: volume["emptyDir"].get("sizeLimit") for volume in spec["volumes"] if "emptyDir" in volume}


def test_the_volumes_of_a_driver_and_its_logs_add_up_to_its_limit() -> None:
    job = deployed()
    limits = size_limits(driver_template(job)["spec"])
    assert limits == {"tmp": "512Mi", "work": "512Mi", "spark-local-dir-1": "512Mi"}
    assert job.plan.pods.driver.limit_ephemeral_storage_mib == 3 * 512 + job.plan.driver_storage.logs_mib


def test_executors_are_spread_among_their_own_as_the_plan_has_them() -> None:
    assert "topologySpreadConstraints" not in executor_pod_template(deployed())["spec"]
    plan = deployed().plan
    pods = plan.pods.model_copy(update={"executor_spread": ExecutorSpread(nodes="required", zones="preferred")})
    job = deployed(plan=plan.model_copy(update={"pods": pods}), zones=3)
    template = executor_pod_template(job)
    hold({**template, "metadata": {**template["metadata"], "name": "executor"}})
    nodes, zones = template["spec"]["topologySpreadConstraints"]
    for constraint in (nodes, zones):
        selected = constraint["labelSelector"]["matchLabels"]
        assert selected.items() <= template["metadata"]["labels"].items()
        assert not selected.items() <= driver_template(job)["metadata"]["labels"].items()
    assert (nodes["topologyKey"], nodes["minDomains"]) == ("kubernetes.io/hostname", plan.pods.executor.count)
    assert (zones["topologyKey"], zones["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")
    # Executors of the generation that runs are where they are: the next one's are placed by the new constraints.
    assert plan_hash(job.plan) != plan_hash(plan)


SCRATCH = "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1"


def test_an_executor_whose_state_is_not_known_requests_storage_and_may_use_more() -> None:
    job = deployed()
    (executor,) = executor_pod_template(job)["spec"]["containers"]
    requested = job.plan.pods.executor.request_ephemeral_storage_mib
    assert executor["resources"] == {"requests": {"ephemeral-storage": f"{requested}Mi"}, "limits": {}}
    assert size_limits(executor_pod_template(job)["spec"]) == {"tmp": None, "work": "512Mi"}
    assert not [key for key in client_mode_conf(job) if key.startswith(SCRATCH)]


def with_storage(mib: int, conf: dict[str, str] | None = None) -> DeployedJob:
    plan = deployed().plan
    executor = plan.pods.executor.model_copy(update={"request_ephemeral_storage_mib": mib, "limit_ephemeral_storage_mib": mib})
    pods = plan.pods.model_copy(update={"executor": executor})
    return deployed(plan=plan.model_copy(update={"pods": pods, "spark_conf": {**plan.spark_conf, **(conf or {})}}))


def test_a_limit_of_an_executor_is_that_of_its_container_and_the_rest_that_of_its_local_directory() -> None:
    job = with_storage(10_240)
    (executor,) = executor_pod_template(job)["spec"]["containers"]
    assert executor["resources"]["limits"] == executor["resources"]["requests"] == {"ephemeral-storage": "10240Mi"}
    assert size_limits(executor_pod_template(job)["spec"]) == {"tmp": "512Mi", "work": "512Mi"}
    conf = client_mode_conf(job)
    assert conf[f"{SCRATCH}.mount.path"] == LOCAL_DIRS
    assert conf[f"{SCRATCH}.options.sizeLimit"] == f"{10_240 - 2 * 512 - job.plan.executor_storage.logs_mib}Mi"


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.kubernetes.executor.volumes.hostPath.spark-local-dir-1.options.path": "/mnt/nvme"},
        {"spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.options.medium": "Memory"},
        {"spark.kubernetes.local.dirs.tmpfs": "true"},
    ],
)
def test_a_local_directory_that_the_spec_places_is_left_to_it(conf: dict[str, str]) -> None:
    assert not [key for key in client_mode_conf(with_storage(10_240, conf)) if key.startswith(SCRATCH) and key not in conf]


def test_the_quota_has_the_ephemeral_storage_of_the_driver_twice_the_executors_and_the_check_of_an_upgrade() -> None:
    job = with_storage(10_240)
    (quota,) = of_kind(job_manifests(job), "ResourceQuota")
    storage_mib = job.plan.pods.driver.request_ephemeral_storage_mib + 2 * job.plan.pods.executor.count * 10_240 + 512
    assert quota["spec"]["hard"]["requests.ephemeral-storage"] == f"{storage_mib}Mi"


def test_a_driver_may_ask_of_kubernetes_for_pods_and_nothing_else() -> None:
    manifests = job_manifests(deployed())
    (role,), (binding,) = of_kind(manifests, "Role"), of_kind(manifests, "RoleBinding")
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == ([""], ["pods"])
    assert rule["verbs"] == ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == ["user-credit-driver"]
    assert not of_kind(manifests, "ClusterRole") + of_kind(manifests, "ClusterRoleBinding")


def test_with_that_little_spark_gets_a_setting_not_to_ask_for_more() -> None:
    conf = client_mode_conf(deployed())
    assert conf["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert conf["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert conf["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"


def test_a_job_whose_executors_claim_volumes_may_claim_them() -> None:
    plan = deployed().plan
    claim = {"spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1.options.claimName": "OnDemand"}
    job = deployed(plan=plan.model_copy(update={"spark_conf": {**plan.spark_conf, **claim}}))
    manifests = job_manifests(job)
    (role,), (quota,) = of_kind(manifests, "Role"), of_kind(manifests, "ResourceQuota")
    assert [rule["resources"] for rule in role["rules"]] == [["pods"], ["persistentvolumeclaims"]]
    assert "persistentvolumeclaims" not in quota["spec"]["hard"]
    assert "spark.kubernetes.driver.ownPersistentVolumeClaim" not in client_mode_conf(job)


def test_executors_have_an_account_of_their_own_without_a_token() -> None:
    job = deployed()
    accounts = {one["metadata"]["name"]: one for one in of_kind(job_manifests(job), "ServiceAccount")}
    assert set(accounts) == {"user-credit-driver", "user-credit-executor"}
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
    assert client_mode_conf(job)["spark.kubernetes.authenticate.executor.serviceAccountName"] == "user-credit-executor"
    assert executor_pod_template(job)["spec"]["automountServiceAccountToken"] is False
    assert driver_template(job)["spec"]["automountServiceAccountToken"] is True


def test_a_namespace_takes_what_was_planned_the_executors_of_a_restart_and_the_check_of_an_upgrade() -> None:
    job = deployed()
    (quota,) = of_kind(job_manifests(job), "ResourceQuota")
    hard = quota["spec"]["hard"]
    assert hard["pods"] == "6"
    assert hard["requests.memory"] == hard["limits.memory"] == f"{2048 + 4 * 16384 + 1280}Mi"
    assert hard["requests.cpu"] == "18500m"
    assert hard["services.loadbalancers"] == hard["services.nodeports"] == hard["persistentvolumeclaims"] == "0"


def test_no_container_may_be_larger_than_the_largest_that_was_planned() -> None:
    (limits,) = of_kind(job_manifests(deployed()), "LimitRange")
    (limit,) = limits["spec"]["limits"]
    assert limit["max"] == {"memory": "16384Mi"}
    # A default CPU limit would also apply to the driver, which has none.
    assert "cpu" not in limit["default"]


def test_the_same_job_gives_the_same_bytes() -> None:
    assert json.dumps(job_manifests(deployed())) == json.dumps(job_manifests(deployed()))


def test_a_driver_restarts_when_its_files_change() -> None:
    def annotations(**changes: Any) -> dict[str, str]:
        pod_annotations: dict[str, str] = driver_template(deployed(**changes))["metadata"]["annotations"]
        return pod_annotations

    for changes in ({"spec_text": "changed"}, {"job_folder": "s3a://c/user-credit-2"}, {"region": "eu-west-1"}):
        assert annotations(**changes) != annotations()
    # MSK returns three of its brokers, not always the same ones.
    assert annotations(brokers="b-3:9098") == annotations()


def test_the_fingerprint_does_not_hang_on_values_that_only_terraform_knows() -> None:
    """Their tokens are renumbered in each synth, which would restart all drivers each time."""

    def with_tokens(number: int) -> DeployedJob:
        token = f"${{TfToken[TOKEN.{number}]}}"
        return deployed(brokers=token, image=f"{token}9:1.0.0", job_folder=f"s3a://{token}8/user-credit", output_bucket=f"{token}7")

    assert fingerprint(with_tokens(1)) == fingerprint(with_tokens(25))
