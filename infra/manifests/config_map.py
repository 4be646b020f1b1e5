"""The files that a driver reads when it starts: the spec, its configuration and the template of its executors' pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from penstock.infra.manifests.client_mode_conf import CONFIGURATION_FOLDER, EXECUTOR_TEMPLATE, MASTER, client_mode_conf
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.configuration.runtime import RuntimeConfiguration

SPEC = "job.yaml"
RUNTIME = "runtime.json"
# The folder of a team's apps in its own image.
APPS = "/opt/penstock/app"


def config_map(job: DeployedJob) -> dict[str, Any]:
    """The ConfigMap, mounted at `CONFIGURATION_FOLDER`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": job.driver_name, "namespace": job.namespace, "labels": job.labels("driver")},
        "data": _files(job),
    }


def runtime_configuration(job: DeployedJob) -> RuntimeConfiguration:
    """The configuration of `python -m penstock.jobs.driver.runtime`."""
    return RuntimeConfiguration(
        spec=f"{CONFIGURATION_FOLDER}/{SPEC}",
        app_path=(APPS,),
        package_path=job.packages.path,
        master=MASTER,
        brokers=job.brokers,
        kafka_security=job.kafka_security,
        kafka_secret=job.kafka_secret,
        kafka_ca=job.kafka_ca,
        region=job.region,
        job_folder=job.job_folder,
        plan=plan_hash(job.plan),
        output_bucket=job.output_bucket,
        connections=dict(job.connections),
        progress_timeout_s=job.progress_timeout_s,
        secrets=dict(job.secrets),
        max_offsets_per_trigger=job.plan.max_offsets_per_trigger,
        spark_conf=client_mode_conf(job),
    )


def fingerprint(job: DeployedJob) -> str:
    """A hash of what the driver reads, without values that only Terraform knows.

    Returns:
        16 hexadecimal digits.
    """
    text = json.dumps(_files(job), sort_keys=True)
    for outside in sorted((job.image, *outside_values(job).values()), key=len, reverse=True):
        text = text.replace(outside, "")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def outside_values(job: DeployedJob) -> dict[str, str]:
    """Name -> value of the configuration that comes from other stacks."""
    return {"brokers": job.brokers, "job-folder": job.job_folder, "output-bucket": job.output_bucket}


def _files(job: DeployedJob) -> dict[str, str]:
    # JSON is valid YAML, and its writer does not alter values.
    template = json.dumps(executor_pod_template(job), indent=2)
    runtime = runtime_configuration(job).model_dump_json(by_alias=True, indent=2)
    return {**job.schemas, SPEC: job.spec_text, RUNTIME: runtime, EXECUTOR_TEMPLATE: template}
