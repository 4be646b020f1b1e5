"""A job as a SparkApplication of the Apache Spark Kubernetes Operator: the same plan, in Spark's cluster mode.

The operator creates the driver's pod and its service, so the job has no StatefulSet and no Service; everything else is the same. The
plan's
memory overheads are absolute, so that both ways give the same pods.

Source: the CRD spark.apache.org_sparkapplications of the operator's chart 1.8.0, version v1.
"""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.client_mode_conf import CONFIGURATION_FOLDER, DEFAULTS, deployment_conf
from penstock.infra.manifests.config_map import RUNTIME, SPEC, config_map, runtime_configuration
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import (
    TERMINATION_FILE,
    configuration_volume,
    driver_annotations,
    driver_environment,
    program_of,
    stop_s,
)
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.infra.manifests.job import foundation
from penstock.infra.manifests.pod import placed, storage_resources
from penstock.infra.manifests.pod_security import container_security_context, pod_security_context
from penstock.infra.manifests.pod_volumes import pod_volumes, scratch_conf
from penstock.infra.manifests.rbac import role, role_binding
from penstock.infra.manifests.upgrade_check import requested

API_VERSION = "spark.apache.org/v1"
PROGRAM = "local:///opt/penstock/run.py"
SPARK_VERSION = "4.3.0"
# Source: Spark, deploy/k8s/Constants.scala.
_DRIVER_CONTAINER = "spark-kubernetes-driver"
# Failures of the infrastructure are retried without a limit; the job's own errors need people.
_RESTARTS = {"restartPolicy": "OnInfrastructureFailure", "maxRestartAttempts": 3, "restartBackoffMillis": 30_000}
# After an hour of running, a driver's restart counter is reset.
_RESET_AFTER_MS = 3_600_000


def operated_manifests(job: DeployedJob) -> list[dict[str, Any]]:
    """The objects of a job that the operator runs, in an order in which they can be applied one by one.

    Args:
        job: as for `penstock.infra.manifests.job.job_manifests`.
    """
    return [*foundation(job, requested(job)), role(job), role_binding(job), _config_map(job), spark_application(job)]


def spark_application(job: DeployedJob) -> dict[str, Any]:
    """The SparkApplication."""
    return {
        "apiVersion": API_VERSION,
        "kind": "SparkApplication",
        "metadata": {"name": job.name, "namespace": job.namespace, "labels": job.labels()},
        "spec": {
            "pyFiles": PROGRAM,
            "driverArgs": [f"{CONFIGURATION_FOLDER}/{RUNTIME}"],
            "deploymentMode": "ClusterMode",
            "runtimeVersions": {"sparkVersion": SPARK_VERSION},
            "sparkConf": _conf(job),
            "driverSpec": {"podTemplateSpec": _driver_template(job)},
            "executorSpec": {"podTemplateSpec": _executor_template(job)},
            "applicationTolerations": _tolerations(job),
        },
    }


def _conf(job: DeployedJob) -> dict[str, str]:
    """All Spark settings; the operator does not read a file of the driver's."""
    planned = {key: value for key, value in job.plan.spark_conf.items() if key != "spark.submit.deployMode"}
    account = {"spark.kubernetes.authenticate.driver.serviceAccountName": job.service_account("driver")}
    return {**DEFAULTS, **planned, **deployment_conf(job), **scratch_conf(job, "driver"), **account}


def _config_map(job: DeployedJob) -> dict[str, Any]:
    """As without the operator, without Spark's settings and the template, which are in the SparkApplication."""
    runtime = runtime_configuration(job).model_copy(update={"spark_conf": {}})
    data = {**job.schemas, SPEC: job.spec_text, RUNTIME: runtime.model_dump_json(by_alias=True, indent=2)}
    return {**config_map(job), "data": data}


def _driver_template(job: DeployedJob) -> dict[str, Any]:
    volumes, mounts = pod_volumes(job, "driver", scratch=False)
    volume, mount = configuration_volume(job)
    container = {
        "name": _DRIVER_CONTAINER,
        "resources": storage_resources(job.plan.pods.driver),
        "env": driver_environment(job),
        "securityContext": container_security_context(),
        "volumeMounts": [*mounts, mount],
        "terminationMessagePath": TERMINATION_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {
        "securityContext": pod_security_context(),
        "terminationGracePeriodSeconds": stop_s(job),
        "containers": [container],
        "volumes": [*volumes, volume],
        **placed(job.driver),
    }
    return {"metadata": {"labels": job.labels("driver"), "annotations": driver_annotations(program_of(job))}, "spec": spec}


def _executor_template(job: DeployedJob) -> dict[str, Any]:
    template = executor_pod_template(job)
    return {"metadata": template["metadata"], "spec": template["spec"]}


def _tolerations(job: DeployedJob) -> dict[str, Any]:
    restart = {"restartPolicy": "Never"} if job.bounded else {**_RESTARTS, "restartCounterResetMillis": _RESET_AFTER_MS}
    return {
        "restartConfig": restart,
        "applicationTimeoutConfig": {"forceTerminationGracePeriodMillis": 1000 * stop_s(job)},
        "resourceRetainPolicy": "OnFailure",
    }
