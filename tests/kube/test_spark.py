"""Spark itself, in client mode, against a real API: the driver runs on this machine with what its pod would be started with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from penstock.infra.manifests.client_mode_conf import EXECUTOR_CONTAINER
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.pod_security import LOCAL_DIRS
from penstock.infra.manifests.resource_quota import EXECUTORS_AT_A_RESTART
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.errors import QueryFailed
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.sizing.units import cpu_millicores
from tests.kube.deployed import Deployment, user_credit
from tests.kube.objects import Object, Objects, Refused

EXECUTORS = "spark-role=executor"
# No test waits this long where all is well.
LIMIT_S = 180


@dataclass(frozen=True)
class Surroundings:
    """What the driver talks to beside the Kubernetes API."""

    aws: EmulatedAws
    kafka: KafkaBroker


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    folder = tmp_path_factory.mktemp("surroundings")
    with EmulatedAws(log=folder / "aws.log") as aws, KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as kafka:
        written = {f"user-credit-{name}": 1 for name in ("errors", "late", "alerts")}
        kafka_topics.create(kafka.address, {"events-a": 10, "events-b": 10, **written})
        own = aws.environment()
        s3 = boto3.client(
            "s3",
            endpoint_url=aws.endpoint,
            region_name=own["AWS_REGION"],
            aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
        )
        for bucket in ("test-checkpoints", "test-output"):
            s3.create_bucket(Bucket=bucket)
        s3.close()
        yield Surroundings(aws, kafka)


def driver(deployment: Deployment, pod: Object, around: Surroundings, folder: Path) -> LocalDriver:
    """The driver's process with the settings of its ConfigMap; only where things are on this machine is told otherwise."""
    runtime = deployment.files(folder)
    token = deployment.token(pod, folder / "token")
    runtime["master"] = f"k8s://{deployment.kube.url}"
    runtime["sparkConf"] |= {
        # In a pod both lie where Spark's client looks for them by itself.
        "spark.kubernetes.authenticate.oauthTokenFile": str(token),
        "spark.kubernetes.authenticate.caCertFile": str(deployment.kube.ca),
        **_on_this_machine(around.aws, folder),
    }
    configuration = RuntimeConfiguration.model_validate(runtime, strict=False)
    # No kubeconfig of the user's, and no trace of a pod that this machine itself may be.
    environment = {"KUBECONFIG": os.devnull, "PENSTOCK_POD_NAME": pod["metadata"]["name"], "SPARK_LOCAL_DIRS": str(folder / "local")}
    return LocalDriver(configuration, folder=folder, log=folder / "driver.log", environment=around.aws.environment() | environment)


def _on_this_machine(aws: EmulatedAws, folder: Path) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.ui.port": "0",
        "spark.hadoop.hadoop.tmp.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # In the image they are Spark's own jars.
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.hadoop.fs.s3a.endpoint": aws.endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


@dataclass(frozen=True)
class Run:
    """What a driver asked of the API from its start to its end.

    Args:
        deployment: the job.
        driver: its driver's pod.
        executors: their pods, while it ran.
        used: of the quota, while it ran.
        left: the executors' pods that were there after it had stopped.
        told: the names of the events that it told, in their order.
    """

    deployment: Deployment
    driver: Object
    executors: Sequence[Object]
    used: Mapping[str, str]
    left: Sequence[Object]
    told: Sequence[str]


@pytest.fixture(scope="module")
def run(kube: ApiServer, objects: Objects, surroundings: Surroundings, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("driver")
    deployment = Deployment(user_credit(surroundings.kafka.address, name="in-client-mode"), kube, objects)
    deployment.apply()
    pod = objects.create(deployment.driver_pod())
    planned = deployment.job.plan.totals.executors
    result: list[str] = []
    with driver(deployment, pod, surroundings, folder) as process:
        executors = objects.wait_for(pod, EXECUTORS, lambda pods: len(pods) == planned, LIMIT_S)
        used = objects.get(deployment.manifest("ResourceQuota"))["status"]["used"]
        while result[-1:] != ["reading"] and (event := process.next_event(LIMIT_S)):
            result.append(str(event["event"]))
    left = objects.list("v1", "Pod", deployment.job.namespace, EXECUTORS)
    return Run(deployment, pod, executors, used, left, result)


def spark_container(pod: Object) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    assert container["name"] == EXECUTOR_CONTAINER
    result: dict[str, Any] = container
    return result


def mib(quantity: str) -> int:
    """A quantity as the API writes it: in the largest unit that is whole."""
    number, unit = quantity[:-2], quantity[-2:]
    return int(number) * {"Mi": 1, "Gi": 1024, "Ti": 1024**2}[unit]


def test_spark_asks_for_as_many_executors_as_are_planned(run: Run) -> None:
    assert len(run.executors) == run.deployment.job.plan.totals.executors == 2


def test_an_executors_requests_and_limits_are_the_plans_to_the_mib_and_the_millicore(run: Run) -> None:
    planned = run.deployment.job.plan.pods.executor
    for pod in run.executors:
        resources = spark_container(pod)["resources"]
        assert mib(resources["requests"]["memory"]) == mib(resources["limits"]["memory"]) == planned.memory_mib
        assert cpu_millicores(resources["requests"]["cpu"]) == planned.request_cpu_millicores
        assert mib(resources["requests"]["ephemeral-storage"]) == planned.request_ephemeral_storage_mib
        limit = resources["limits"].get("cpu")
        assert (cpu_millicores(limit) if limit else None) == planned.limit_cpu_millicores


def test_an_executor_goes_where_the_environment_sends_it(run: Run) -> None:
    place = run.deployment.job.executor
    asked = [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in place.tolerations]
    assert asked
    for pod in run.executors:
        assert pod["spec"]["nodeSelector"] == dict(place.node_selector)
        assert all(toleration in pod["spec"]["tolerations"] for toleration in asked)


def test_an_executor_belongs_to_its_driver_so_that_it_goes_with_it(run: Run) -> None:
    metadata = run.driver["metadata"]
    for pod in run.executors:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", metadata["name"], metadata["uid"], True)


def test_an_executor_runs_the_jobs_image_under_its_own_account_without_a_token(run: Run) -> None:
    job = run.deployment.job
    for pod in run.executors:
        assert spark_container(pod)["image"] == job.image
        assert pod["spec"]["serviceAccountName"] == job.service_account("executor")
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert not [volume for volume in pod["spec"]["volumes"] if "projected" in volume]


def test_an_executor_has_no_more_rights_on_its_node_than_the_template_gives(run: Run) -> None:
    for pod in run.executors:
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        context = spark_container(pod)["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False


def test_an_executor_writes_its_blocks_into_a_volume_of_its_own(run: Run) -> None:
    for pod in run.executors:
        mounts = {mount["name"]: mount["mountPath"] for mount in spark_container(pod)["volumeMounts"]}
        empty = {volume["name"] for volume in pod["spec"]["volumes"] if "emptyDir" in volume}
        assert "spark-local-dir-1" in mounts.keys() & empty
        assert set(mounts) <= empty


def test_an_executor_finds_its_driver_by_the_name_of_its_service(run: Run) -> None:
    job = run.deployment.job
    for pod in run.executors:
        values = {variable["name"]: variable.get("value", "") for variable in spark_container(pod)["env"]}
        assert values["SPARK_DRIVER_URL"].partition("@")[2].partition(":")[0] == job.driver_address


def test_the_labels_are_those_that_the_network_policies_and_the_quota_go_by(run: Run) -> None:
    for pod in run.executors:
        assert run.deployment.job.selector("executor").items() <= pod["metadata"]["labels"].items()


def test_the_quota_counts_what_the_plan_says(run: Run) -> None:
    plan = run.deployment.job.plan
    memory_mib = plan.pods.driver.memory_mib + plan.totals.executor_memory_mib
    assert run.used["pods"] == str(plan.totals.pods)
    assert mib(run.used["requests.memory"]) == mib(run.used["limits.memory"]) == memory_mib
    storage_mib = plan.pods.driver.request_ephemeral_storage_mib + plan.totals.executors * plan.pods.executor.request_ephemeral_storage_mib
    assert mib(run.used["requests.ephemeral-storage"]) == storage_mib
    assert cpu_millicores(run.used["requests.cpu"]) == plan.pods.driver.request_cpu_millicores + plan.totals.executor_cpu_millicores


def test_a_driver_reads_and_deletes_its_executors_when_it_stops(run: Run) -> None:
    assert run.told == ["starting", "generation", "reading"]
    assert not run.left


def test_the_quota_has_room_for_the_executors_of_a_restart_and_for_no_more(run: Run) -> None:
    objects, job = run.deployment.objects, run.deployment.job
    deployment = Deployment(replace(job, name="full"), run.deployment.kube, objects)
    deployment.apply()
    objects.create(deployment.driver_pod())
    planned = EXECUTORS_AT_A_RESTART * job.plan.totals.executors
    executors = [_copy(run.executors[0], f"executor-{number}", deployment.job) for number in range(planned + 1)]
    for pod in executors[:-1]:
        objects.create(pod)
    with pytest.raises(Refused, match="exceeded quota") as caught:
        objects.create(executors[-1])
    assert caught.value.status == 403


def _copy(pod: Object, name: str, job: DeployedJob) -> Object:
    """An executor as Spark asked for it, in another job's namespace."""
    metadata = {"name": name, "namespace": job.namespace, "labels": pod["metadata"]["labels"]}
    spec = {**pod["spec"], "serviceAccountName": job.service_account("executor")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_without_its_role_a_driver_starts_no_executor_and_says_why(
    kube: ApiServer, objects: Objects, surroundings: Surroundings, tmp_path: Path
) -> None:
    deployment = Deployment(user_credit(surroundings.kafka.address, name="no-rights"), kube, objects)
    deployment.apply(without=("RoleBinding",))
    pod = objects.create(deployment.driver_pod())
    with driver(deployment, pod, surroundings, tmp_path) as started, pytest.raises(QueryFailed):
        while started.next_event(LIMIT_S):
            pass
    log = (tmp_path / "driver.log").read_text("utf-8")
    account = f"system:serviceaccount:{deployment.job.namespace}:{deployment.job.service_account('driver')}"
    assert f'User "{account}" cannot' in log.replace("\\", "")
    assert not objects.list("v1", "Pod", deployment.job.namespace, EXECUTORS)


def test_the_spark_local_dirs_of_the_pod_are_a_volume_of_the_driver_too(run: Run) -> None:
    (container,) = run.driver["spec"]["containers"]
    assert LOCAL_DIRS in {mount["mountPath"] for mount in container["volumeMounts"]}
