"""The check before an upgrade of a job, as hooks of its Helm release: no object of the release changes before it has passed.

Source: Helm, "Chart Hooks": hooks of ``pre-upgrade`` run after the templates are rendered and before any resource is updated, in the order
of their weights; one that fails fails the upgrade. A first release has none.
"""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.client_mode_conf import CONFIGURATION_FOLDER, client_mode_conf
from penstock.infra.manifests.config_map import RUNTIME, SPEC, runtime_configuration
from penstock.infra.manifests.deployed_job import COMPONENT_LABEL, DeployedJob
from penstock.infra.manifests.driver_pod import PYTHON, TERMINATION_FILE, driver_environment
from penstock.infra.manifests.pod import placed
from penstock.infra.manifests.pod_security import (
    LOCAL_DIRS,
    TEMPORARY,
    WORK,
    container_security_context,
    pod_security_context,
)
from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE
from penstock.jobs.configuration.session import AppArchive
from penstock.sizing.placement.resources import EPHEMERAL_STORAGE

COMPONENT = "upgrade-check"
# The archive of an app that the image does not have.
APP = "app.json"
# A node that has to boot, an image that is pulled, and the analysis; less than a release waits for a hook.
DEADLINE_S = 480
# Of pods that are killed, or that do not reach S3. A refusal is not tried again.
RETRIES = 2
# A day to read why a check has failed.
_KEPT_S = 86_400
# Source: penstock.jobs.driver.upgrade_check.
_REFUSED = 1
# Measured on the shipped jobs with 512 MiB of heap, Spark's least being 450: 550 MiB resident in the JVM and 153 in Python, and up to 920
# with a full heap (2026-11-26).
_HEAP_MIB, _LEAST_MIB = 512, 1024
_CPU_MILLICORES = 500
_VOLUMES = {"tmp": TEMPORARY, "work": WORK, "scratch": LOCAL_DIRS}
_VOLUME_MIB, _LOGS_MIB = 128, 128
# What the analysis of an app depends on. All else, such as an event log on S3, is the driver's.
_SETTINGS = (
    "spark.sql.",
    "spark.jars",
    "spark.hadoop.",
    "spark.penstock.",
    "spark.driver.extraClassPath",
    "spark.driver.defaultJavaOptions",
)


def upgrade_check(job: DeployedJob, app: AppArchive | None = None) -> list[dict[str, Any]]:
    """A ConfigMap with what the new driver would read, and the Job that checks it.

    Args:
        job: the job, with a driver of its own or in a session.
        app: its app in place of the one in the image; None: the image has it.
    """
    files = {**_files(job), **({} if app is None else {APP: app.model_dump_json(by_alias=True)})}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(job, weight=-1), "data": files}
    return [config_map, {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(job, weight=0), "spec": _job(job, app)}]


def requested(job: DeployedJob) -> dict[str, int]:
    """Requests of the check's pod: ``cpu_millicores``, ``memory_mib`` and ``storage_mib``."""
    driver = job.plan.pods.driver
    # The app's imports need what they need in the driver, beside a heap of another size.
    memory_mib = max(_LEAST_MIB, driver.memory_mib - driver.heap_mib + _HEAP_MIB)
    # No container of the namespace may be larger than the largest one that is planned.
    largest_mib = max(driver.memory_mib, job.plan.pods.executor.memory_mib)
    storage_mib = len(_VOLUMES) * _VOLUME_MIB + _LOGS_MIB
    return {"cpu_millicores": _CPU_MILLICORES, "memory_mib": min(memory_mib, largest_mib), "storage_mib": storage_mib}


def _metadata(job: DeployedJob, *, weight: int) -> dict[str, Any]:
    annotations = {
        "helm.sh/hook": "pre-upgrade",
        "helm.sh/hook-weight": str(weight),
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    return {"name": _name(job), "namespace": job.namespace, "labels": _labels(job), "annotations": annotations}


def _name(job: DeployedJob) -> str:
    return f"{job.name}-{COMPONENT}"


def _labels(job: DeployedJob) -> dict[str, str]:
    return {**job.labels(), COMPONENT_LABEL: COMPONENT}


def _files(job: DeployedJob) -> dict[str, str]:
    conf = {key: value for key, value in client_mode_conf(job).items() if key.startswith(_SETTINGS)}
    own = {
        "spark.driver.memory": f"{_HEAP_MIB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": LOCAL_DIRS,
        "spark.ui.enabled": "false",
    }
    runtime = runtime_configuration(job).model_copy(update={"master": "local[1]", "spark_conf": {**conf, **own}})
    return {**job.schemas, SPEC: job.spec_text, RUNTIME: runtime.model_dump_json(by_alias=True, indent=2)}


def _job(job: DeployedJob, app: AppArchive | None) -> dict[str, Any]:
    refused = {"action": "FailJob", "onExitCodes": {"containerName": COMPONENT, "operator": "In", "values": [_REFUSED]}}
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": RETRIES,
        "activeDeadlineSeconds": DEADLINE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "podFailurePolicy": {"rules": [refused, disrupted]},
        "template": {"metadata": {"labels": _labels(job)}, "spec": _pod(job, app)},
    }


def _pod(job: DeployedJob, app: AppArchive | None) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": name, "emptyDir": {"sizeLimit": f"{_VOLUME_MIB}Mi"}} for name in _VOLUMES]
    configuration = {"name": "configuration", "configMap": {"name": _name(job), "defaultMode": 0o444}}
    return {
        "serviceAccountName": job.service_account("driver"),
        # It asks nothing of the Kubernetes API; the job's role is had by pod identity, whose agent mounts a token of its own.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": pod_security_context(),
        "containers": [_container(job, app)],
        "volumes": [*volumes, configuration],
        **placed(job.driver),
    }


def _arguments(app: AppArchive | None) -> list[str]:
    given = [] if app is None else ["--app", f"{CONFIGURATION_FOLDER}/{APP}"]
    return [f"{CONFIGURATION_FOLDER}/{RUNTIME}", *given]


def _container(job: DeployedJob, app: AppArchive | None) -> dict[str, Any]:
    size = requested(job)
    memory, storage = f"{size['memory_mib']}Mi", {EPHEMERAL_STORAGE: f"{size['storage_mib']}Mi"}
    mounts: list[dict[str, Any]] = [{"name": name, "mountPath": path} for name, path in _VOLUMES.items()]
    return {
        "name": COMPONENT,
        "image": job.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/tini", "--", PYTHON, "-m", "penstock.jobs.driver.upgrade_check", *_arguments(app)],
        "env": [one for one in driver_environment(job) if one["name"] != READY_FILE_VARIABLE],
        "resources": {
            "requests": {"cpu": f"{size['cpu_millicores']}m", "memory": memory, **storage},
            "limits": {"memory": memory, **storage},
        },
        "securityContext": container_security_context(),
        "volumeMounts": [*mounts, {"name": "configuration", "mountPath": CONFIGURATION_FOLDER, "readOnly": True}],
        "terminationMessagePath": TERMINATION_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
