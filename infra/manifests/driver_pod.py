"""The pod of a driver: one container with Python and the JVM of Spark that it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.infra.manifests.client_mode_conf import CONFIGURATION_FOLDER
from penstock.infra.manifests.config_map import RUNTIME, fingerprint, outside_values
from penstock.infra.manifests.deployed_job import UI_PORT, DeployedJob, DeployedWorkload
from penstock.infra.manifests.pod import placed, storage_resources
from penstock.infra.manifests.pod_security import TEMPORARY, container_security_context, pod_security_context
from penstock.infra.manifests.pod_volumes import pod_volumes
from penstock.infra.manifests.service import PORTS
from penstock.jobs.configuration.runtime import (
    IMAGE_VARIABLE,
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
    READY_FILE_VARIABLE,
    TERMINATION_FILE_VARIABLE,
)
from penstock.sizing.planned import PlannedPod

CONTAINER = "driver"
PYTHON = "/opt/venv/bin/python"
# The runtime creates this file when its query reads, and deletes it when the query ends.
READY_FILE = f"{TEMPORARY}/reading"
# Source: Kubernetes, the default of terminationMessagePath. kubelet mounts the file over the read-only root file system.
TERMINATION_FILE = "/dev/termination-log"
# In addition to two triggers: the current micro-batch is completed, and stopping Spark takes seconds.
STOP_S = 120
# A bounded run has no trigger from which the length of its micro-batches could be derived.
BOUNDED_STOP_S = 600
# Time to reach brokers and bucket and to start a JVM; the image of a gigabyte is pulled before this time starts.
STARTUP_S = 300
_PERIOD_S = 5


@dataclass(frozen=True, kw_only=True)
class DriverProgram:
    """What the container of a driver runs.

    Args:
        module: of Python.
        configuration: its file in the ConfigMap.
        fingerprint: of what the driver reads once, when it starts.
        outside: name -> value of what it reads once and only Terraform knows.
        stop_s: time that it gets to stop, in seconds.
        optional: name of a ConfigMap that need not exist -> where it is mounted.
    """

    module: str
    configuration: str
    fingerprint: str
    outside: Mapping[str, str]
    stop_s: int
    optional: Mapping[str, str] = field(default_factory=dict)


def program_of(job: DeployedJob) -> DriverProgram:
    """The program of a job's own driver."""
    # MSK returns three of its brokers, not always the same ones: that does not justify a restart.
    outside = {name: value for name, value in outside_values(job).items() if name != "brokers"}
    return DriverProgram(
        module="penstock.jobs.driver.runtime",
        configuration=RUNTIME,
        fingerprint=fingerprint(job),
        outside=outside,
        stop_s=stop_s(job),
    )


def driver_pod(job: DeployedWorkload, program: DriverProgram, restart_policy: str) -> dict[str, Any]:
    """The pod's template.

    Args:
        job: the job, or the session.
        program: that it runs.
        restart_policy: ``Always`` in a StatefulSet, ``Never`` in a Job.
    """
    volumes, mounts = pod_volumes(job, "driver", scratch=True)
    configuration, mount = configuration_volume(job)
    optional = [_optional_volume(number, *one) for number, one in enumerate(program.optional.items(), 1)]
    spec: dict[str, Any] = {
        "serviceAccountName": job.service_account("driver"),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "hostname": job.driver_host_name,
        "subdomain": job.driver_name,
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": program.stop_s,
        "securityContext": pod_security_context(),
        "containers": [_container(job, program, [*mounts, mount, *(mounted for _, mounted in optional)])],
        "volumes": [*volumes, configuration, *(volume for volume, _ in optional)],
        **placed(job.driver),
    }
    return {
        "metadata": {"labels": {**job.labels("driver"), "spark-role": "driver"}, "annotations": driver_annotations(program)},
        "spec": spec,
    }


def stop_s(job: DeployedJob) -> int:
    """Time that a driver gets to stop, in seconds."""
    return stop_within_s(job.trigger_s)


def stop_within_s(trigger_s: float | None) -> int:
    """Time that a driver gets to stop, wherever it runs, in seconds.

    Args:
        trigger_s: see `DeployedJob`.
    """
    return BOUNDED_STOP_S if trigger_s is None else STOP_S + math.ceil(2 * trigger_s)


def resources(pod: PlannedPod) -> dict[str, dict[str, str]]:
    """Requests and limits of a planned pod: memory is both, CPU and ephemeral storage have a limit only if the plan has one."""
    memory, storage = f"{pod.memory_mib}Mi", storage_resources(pod)
    limits = {"memory": memory, **storage["limits"]}
    if pod.limit_cpu_millicores is not None:
        limits["cpu"] = f"{pod.limit_cpu_millicores}m"
    return {"requests": {"cpu": f"{pod.request_cpu_millicores}m", "memory": memory, **storage["requests"]}, "limits": limits}


def driver_annotations(program: DriverProgram) -> dict[str, str]:
    """A change of any of these restarts the driver."""
    outside = {f"penstock.dev/{name}": value for name, value in program.outside.items()}
    return {"karpenter.sh/do-not-disrupt": "true", "penstock.dev/configuration": program.fingerprint, **outside}


def _container(job: DeployedWorkload, program: DriverProgram, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": job.image,
        "imagePullPolicy": "IfNotPresent",
        # tini forwards signals and reaps orphaned processes of the JVM.
        "command": ["/usr/bin/tini", "--", PYTHON, "-m", program.module, f"{CONFIGURATION_FOLDER}/{program.configuration}"],
        "env": [*_pod(), *driver_environment(job)],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        "resources": resources(job.plan.pods.driver),
        "securityContext": container_security_context(),
        "volumeMounts": mounts,
        "terminationMessagePath": TERMINATION_FILE,
        # A container that is killed, as for its memory, leaves no message: then the end of its log is it.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_probes(program.stop_s),
    }


def driver_environment(job: DeployedWorkload) -> list[dict[str, Any]]:
    """Environment variables of the driver's container."""
    values = {
        "AWS_REGION": job.region,
        "AWS_DEFAULT_REGION": job.region,
        "HOME": TEMPORARY,
        READY_FILE_VARIABLE: READY_FILE,
        TERMINATION_FILE_VARIABLE: TERMINATION_FILE,
        IMAGE_VARIABLE: job.image,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def configuration_volume(job: DeployedWorkload) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job's ConfigMap as a volume, and where a container mounts it."""
    volume = {"name": "configuration", "configMap": {"name": job.driver_name, "defaultMode": 0o444}}
    return volume, {"name": "configuration", "mountPath": CONFIGURATION_FOLDER, "readOnly": True}


def _optional_volume(number: int, name: str, folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A ConfigMap that something else writes while the driver runs, as a volume, and where it is mounted."""
    volume = {"name": f"optional-{number}", "configMap": {"name": name, "defaultMode": 0o444, "optional": True}}
    return volume, {"name": f"optional-{number}", "mountPath": folder, "readOnly": True}


def _pod() -> list[dict[str, Any]]:
    """The pod of this name owns the executors' pods, which are deleted with it; by its uid a restarted container knows its own lease."""
    fields = {POD_NAME_VARIABLE: "metadata.name", POD_UID_VARIABLE: "metadata.uid"}
    return [{"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}} for name, path in fields.items()]


def _probes(stop_s: int) -> dict[str, Any]:
    # A driver waits for the job's lease before it starts Spark, as long as the one before it takes to stop.
    startup_s = STARTUP_S + stop_s
    answers = {"httpGet": {"path": "/api/v1/version", "port": UI_PORT}, "timeoutSeconds": 5}
    return {
        "startupProbe": {**answers, "periodSeconds": _PERIOD_S, "failureThreshold": math.ceil(startup_s / _PERIOD_S)},
        # Two minutes without a response of the JVM: a long garbage collection is tolerated, a deadlock is not.
        "livenessProbe": {**answers, "periodSeconds": 20, "failureThreshold": 6},
        # A release is complete when its query reads.
        "readinessProbe": {"exec": {"command": ["test", "-e", READY_FILE]}, "periodSeconds": _PERIOD_S, "failureThreshold": 1},
    }
