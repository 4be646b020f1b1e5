"""Spark's own classes, of the version that the jobs run on, create the plan's pods from the plan's settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.java_gateway import launch_gateway

from penstock.sizing.plan import plan
from penstock.sizing.spark_pods import driver_memory, executor_memory
from penstock.sizing.spark_settings import read_settings
from penstock.sizing.targets import Targets
from tests.sizing.mixed_targets import PYTHON_MEMORY, mixed_targets

pytestmark = pytest.mark.spark
# Hypothesis cannot reset the JVM between examples; no example changes its state.
LENIENT = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Resources = dict[str, str | None]


class SparkPods:
    """The steps that build a pod in Spark's Kubernetes scheduler."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._spark = gateway.jvm.org.apache.spark
        self._none = gateway.jvm.scala.Option.empty()

    def conf(self, values: dict[str, str]) -> Any:
        conf = self._spark.SparkConf(False)
        needed = {
            "spark.app.name": "app",
            "spark.master": "k8s://x",
            "spark.kubernetes.container.image": "image",
            "spark.kubernetes.executor.podNamePrefix": "app",
            "spark.driver.host": "host",
            "spark.driver.port": "7078",
        }
        for key, value in {**needed, **values}.items():
            conf.set(key, value)
        return conf

    def executor(self, values: dict[str, str]) -> tuple[Resources, Resources, int]:
        """Requests, limits and task slots of an executor."""
        conf = self.conf(values)
        profiles = _object(self._spark.resource, "ResourceProfile")
        profiles.clearDefaultProfile()
        profile = profiles.getOrCreateDefaultProfile(conf)
        secret_file = _object(self._spark.internal.config, "package").AUTH_SECRET_FILE()
        security = self._spark.SecurityManager(conf, self._none, secret_file)
        pods = self._spark.deploy.k8s
        executor_conf = _object(pods, "KubernetesConf").createExecutorConf(conf, "1", "app", self._none, 0)
        step = pods.features.BasicExecutorFeatureStep(executor_conf, security, profile)
        requests, limits = self._resources(step)
        return requests, limits, profile.maxTasksPerExecutor(conf)

    def driver(self, values: dict[str, str]) -> tuple[Resources, Resources, dict[str, str]]:
        """Requests and limits of a driver in cluster mode, and the settings that its executors inherit."""
        pods = self._spark.deploy.k8s
        main = pods.submit.PythonMainAppResource("app.py")
        arguments = self._gateway.new_array(self._gateway.jvm.java.lang.String, 0)
        clock = self._spark.util.SystemClock()
        conf = pods.KubernetesDriverConf(self.conf(values), "app", main, "Main", arguments, self._none, clock)
        step = pods.features.BasicDriverFeatureStep(conf)
        requests, limits = self._resources(step)
        factor = step.getAdditionalPodSystemProperties().get("spark.kubernetes.memoryOverheadFactor").get()
        # DriverCommandFeatureStep writes the second one for a Python app.
        return requests, limits, {"spark.kubernetes.memoryOverheadFactor": factor, "spark.kubernetes.resource.type": "python"}

    def from_template(self, values: dict[str, str], storage: str) -> tuple[Any, dict[str, tuple[str, str | None]]]:
        """An executor of a template with ephemeral storage: its resources, and its emptyDir volumes with paths and limits."""
        conf = self.conf(values)
        pods, none = self._spark.deploy.k8s, self._none
        profiles = _object(self._spark.resource, "ResourceProfile")
        profiles.clearDefaultProfile()
        secret_file = _object(self._spark.internal.config, "package").AUTH_SECRET_FILE()
        security = self._spark.SecurityManager(conf, none, secret_file)
        executor_conf = _object(pods, "KubernetesConf").createExecutorConf(conf, "1", "app", none, 0)
        quantity = self._gateway.jvm.io.fabric8.kubernetes.api.model.Quantity(storage)
        empty = _object(pods, "SparkPod").initialPod()
        builder = self._gateway.jvm.io.fabric8.kubernetes.api.model.ContainerBuilder(empty.container()).withNewResources()
        container = builder.addToRequests("ephemeral-storage", quantity).addToLimits("ephemeral-storage", quantity).endResources().build()
        pod = pods.SparkPod(empty.pod(), container)
        for step in (
            pods.features.BasicExecutorFeatureStep(executor_conf, security, profiles.getOrCreateDefaultProfile(conf)),
            pods.features.MountVolumesFeatureStep(executor_conf),
            pods.features.LocalDirsFeatureStep(executor_conf, "/default"),
        ):
            pod = step.configurePod(pod)
        paths = {mount.getName(): mount.getMountPath() for mount in pod.container().getVolumeMounts()}
        own = [volume for volume in pod.pod().getSpec().getVolumes() if volume.getEmptyDir() is not None]
        volumes = {volume.getName(): volume.getEmptyDir().getSizeLimit() for volume in own}
        limits = {name: (paths[name], None if limit is None else str(limit)) for name, limit in volumes.items()}
        return pod.container().getResources(), limits

    def _resources(self, step: Any) -> tuple[Resources, Resources]:
        pod = step.configurePod(_object(self._spark.deploy.k8s, "SparkPod").initialPod())
        resources = pod.container().getResources()
        return _quantities(resources.getRequests()), _quantities(resources.getLimits())


def _object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _quantities(result: Any) -> Resources:
    return {name: None if result.get(name) is None else str(result.get(name)) for name in ("memory", "cpu")}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkPods]:
    gateway = launch_gateway(popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})  # type: ignore[no-untyped-call]
    process = gateway.proc
    try:
        # A session of another test module, in this process, has an error of any JVM described by its own JVM, which
        # does not know it.
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
            yield SparkPods(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=60)


@LENIENT
@given(targets=mixed_targets(python_memory=True))
def test_spark_makes_the_plans_pods(spark: SparkPods, targets: Targets) -> None:
    planned = plan(targets)
    executor, driver = planned.pods.executor, planned.pods.driver
    driver_requests, _, inherited = spark.driver(planned.spark_conf)
    in_cluster = {**planned.spark_conf, **inherited}
    cluster = targets.spark_conf["spark.submit.deployMode"] == "cluster"
    requests, limits, slots = spark.executor(in_cluster if cluster else planned.spark_conf)
    assert requests["memory"] == limits["memory"] == f"{executor.memory_mib}Mi"
    assert driver_requests["memory"] == f"{driver.memory_mib}Mi"
    assert slots == executor.slots
    assert requests["cpu"] == planned.spark_conf["spark.kubernetes.executor.request.cores"]
    assert limits["cpu"] is None
    if PYTHON_MEMORY not in targets.spark_conf:
        assert spark.executor(in_cluster)[0] == spark.executor(planned.spark_conf)[0]


@LENIENT
@given(targets=mixed_targets(python_memory=True))
def test_spark_makes_of_a_users_settings_what_the_rules_say(spark: SparkPods, targets: Targets) -> None:
    conf = {**targets.spark_conf, "spark.executor.memory": "7777m", "spark.driver.memory": "3333m"}
    read, faults = read_settings(conf)
    assert not faults
    driver_requests, _, inherited = spark.driver(conf)
    in_mode = {**inherited, **conf} if read.deploy_mode == "cluster" else conf
    assert spark.executor({**in_mode, "spark.executor.cores": "4"})[0]["memory"] == f"{executor_memory(read, 7777).total_mib}Mi"
    # Spark creates a driver's pod in cluster mode only.
    cluster = read.model_copy(update={"deploy_mode": "cluster"})
    assert driver_requests["memory"] == f"{driver_memory(cluster, 3333).total_mib}Mi"


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.executor.memory": "1.5g"},
        {"spark.executor.memory": "-4g"},
        {"spark.executor.memory": "2 g"},
        {"spark.executor.memoryOverhead": "-1"},
        {"spark.executor.memoryOverheadFactor": "0"},
        {"spark.executor.memoryOverheadFactor": "x"},
        {"spark.memory.offHeap.enabled": "yes"},
        {"spark.memory.offHeap.enabled": "true"},
        {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "100"},
        {"spark.task.cpus": "0"},
        {"spark.task.cpus": "0.0000000015"},
    ],
)
def test_what_the_reader_refuses_spark_refuses_too(spark: SparkPods, conf: dict[str, str]) -> None:
    _, faults = read_settings(conf)
    assert faults
    with pytest.raises(Exception, match=r"(?i)illegal|number ?format"):
        spark.executor(conf)


@pytest.mark.parametrize("text", ["2048", " 2G ", "2GB", "2gib", "1900000k", "2147483648b", "0"])
def test_spark_reads_a_memory_string_as_the_reader_does(spark: SparkPods, text: str) -> None:
    read, _ = read_settings({"spark.executor.memory": text})
    assert read.executor.heap_mib is not None
    requests, _, _ = spark.executor({"spark.executor.memory": text})
    assert requests["memory"] == f"{executor_memory(read, read.executor.heap_mib).total_mib}Mi"


def test_spark_refuses_a_limit_below_the_request(spark: SparkPods) -> None:
    with pytest.raises(Exception, match="less than or equal to cpu limit"):
        spark.executor({"spark.executor.cores": "4", "spark.kubernetes.executor.limit.cores": "2"})


def test_spark_keeps_the_ephemeral_storage_of_a_template_and_limits_the_local_directory_as_it_is_told(spark: SparkPods) -> None:
    at = "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1"
    told = {f"{at}.mount.path": "/var/data/spark", f"{at}.options.sizeLimit": "700Mi", "spark.local.dir": "/var/data/spark"}
    resources, volumes = spark.from_template({"spark.executor.memory": "1g", **told}, "2Gi")
    assert str(resources.getRequests().get("ephemeral-storage")) == str(resources.getLimits().get("ephemeral-storage")) == "2Gi"
    assert str(resources.getRequests().get("memory")) == "1408Mi"
    assert volumes == {"spark-local-dir-1": ("/var/data/spark", "700Mi")}
    _, unlimited = spark.from_template({"spark.executor.memory": "1g", "spark.local.dir": "/var/data/spark"}, "2Gi")
    assert unlimited == {"spark-local-dir-1": ("/var/data/spark", None)}
