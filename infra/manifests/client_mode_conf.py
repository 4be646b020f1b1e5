"""Spark settings of client mode in a pod, which the deployment adds to a plan's.

Source: Spark's documentation, "Running Spark on Kubernetes", client mode, and deploy/k8s/Config.scala of 4.3.0's jar.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.infra.manifests.deployed_job import BLOCK_MANAGER_PORT, DRIVER_PORT, UI_PORT, DeployedWorkload
from penstock.infra.manifests.pod_security import LOCAL_DIRS, TEMPORARY
from penstock.infra.manifests.pod_volumes import scratch_conf

MASTER = "k8s://https://kubernetes.default.svc"
# Mount path of the job's ConfigMap in the driver's pod.
CONFIGURATION_FOLDER = "/etc/penstock"
EXECUTOR_TEMPLATE = "executor.yaml"
EXECUTOR_CONTAINER = "spark-kubernetes-executor"
# In the image: what the JVMs map of Spark's classes (decision 0030). One that it does not fit, and one of an image without it, does without
# and says nothing.
CLASS_DATA = "/opt/spark/class-data.jsa"
# At the address for which it was made its pages stay those of the file, which JVMs share and the kernel can take back; at a random one, JDK
# 17's default, each JVM writes to most of them: 110 MiB of memory.
CLASS_DATA_OPTIONS = (
    f"-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 -XX:SharedArchiveFile={CLASS_DATA} -Xlog:cds=off -Xlog:cds+dynamic=off"
)
_VOLUME_CLAIMS = "spark.kubernetes.executor.volumes.persistentVolumeClaim."

# Defaults that replace Spark's own unless the spec sets them.
DEFAULTS = {
    # An executor whose node is about to be removed finishes its tasks and migrates its blocks instead of just stopping.
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    # Spark ends the driver after twice as many failed executors as the job has, at least three. Without an interval it counts for as long
    # as the driver runs, so that a job on spot nodes would be ended by its losses of months. Source: spark.executor.maxNumFailures.
    "spark.executor.failuresValidityInterval": "1h",
    # A JVM out of memory is restarted rather than left in an unknown state.
    "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    "spark.executor.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    # Apart from the extra options, so that a spec that sets those keeps them.
    "spark.driver.defaultJavaOptions": CLASS_DATA_OPTIONS,
    "spark.executor.defaultJavaOptions": CLASS_DATA_OPTIONS,
    # By default threads share eight malloc heaps a core, and each keeps what RocksDB has freed in it. Measured with two cores: 1,896 MiB
    # resident, and 1,754 MiB with two heaps. Sources: mallopt(3), M_ARENA_MAX; benchmarks.pod_memory, keyed_function, 2026-11-25.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}


def client_mode_conf(job: DeployedWorkload) -> dict[str, str]:
    """All settings that the driver is started with: the plan's, overridden by the deployment's."""
    return {**DEFAULTS, **job.plan.spark_conf, **owned_conf(job)}


def owned_conf(job: DeployedWorkload) -> dict[str, str]:
    """The settings reserved to the deployment: other values in a spec would run the job elsewhere than it was planned for."""
    return {**deployment_conf(job), **_client_mode(job)}


def deployment_conf(job: DeployedWorkload) -> dict[str, str]:
    """Those that apply to Spark's cluster mode as well."""
    return {**_kubernetes(job), **_network(), **_storage(job), **_unneeded_rights(job), **job.jars}


def claims_volumes(conf: Mapping[str, str]) -> bool:
    """Whether executors use persistent volumes, whose claims the driver creates."""
    return any(key.startswith(_VOLUME_CLAIMS) for key in conf)


def _kubernetes(job: DeployedWorkload) -> dict[str, str]:
    return {
        "spark.kubernetes.namespace": job.namespace,
        "spark.kubernetes.container.image": job.image,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.authenticate.executor.serviceAccountName": job.service_account("executor"),
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
    }


def _client_mode(job: DeployedWorkload) -> dict[str, str]:
    """Settings that Spark or its submitter sets in cluster mode."""
    return {
        "spark.submit.deployMode": "client",
        "spark.driver.host": job.driver_address,
        "spark.driver.bindAddress": "0.0.0.0",
        # Otherwise executors would get the address that the driver binds to. Source: spark-kubernetes 4.3.0, whose default is true.
        "spark.kubernetes.executor.useDriverPodIP": "false",
        "spark.kubernetes.executor.podTemplateFile": f"{CONFIGURATION_FOLDER}/{EXECUTOR_TEMPLATE}",
    }


def _network() -> dict[str, str]:
    return {
        "spark.driver.port": str(DRIVER_PORT),
        # Of the driver and the executors.
        "spark.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.ui.port": str(UI_PORT),
        # The network policy allows only these ports: Spark would bind the next free port, but it could not be reached.
        "spark.port.maxRetries": "0",
        "spark.ui.killEnabled": "false",
    }


def _storage(job: DeployedWorkload) -> dict[str, str]:
    return {
        "spark.local.dir": LOCAL_DIRS,
        "spark.hadoop.hadoop.tmp.dir": TEMPORARY,
        "spark.sql.warehouse.dir": f"{TEMPORARY}/warehouse",
        "spark.hadoop.fs.s3a.endpoint.region": job.region,
        "spark.executorEnv.AWS_REGION": job.region,
        "spark.executorEnv.AWS_DEFAULT_REGION": job.region,
        **scratch_conf(job, "executor"),
    }


def _unneeded_rights(job: DeployedWorkload) -> dict[str, str]:
    """Resources that Spark would create through the API but does not need: the driver passes settings to the executors, and the chart has
    the
    service.
    """
    spared = {
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
    }
    if not claims_volumes(job.plan.spark_conf):
        spared["spark.kubernetes.driver.ownPersistentVolumeClaim"] = "false"
        spared["spark.kubernetes.driver.reusePersistentVolumeClaim"] = "false"
    return spared
