"""The files that the driver of a session reads: its configuration, which it follows, and the template of its executors' pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from penstock.infra.manifests.client_mode_conf import EXECUTOR_TEMPLATE, MASTER, client_mode_conf
from penstock.infra.manifests.config_map import runtime_configuration
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.deployed_session import DeployedSession
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.jobs.configuration.session import SESSION, SPEC, SessionConfiguration, SessionJob
from penstock.sizing.plan.session.settings import EXECUTORS


def session_config_map(session: DeployedSession) -> dict[str, Any]:
    """The ConfigMap, mounted at `penstock.infra.manifests.client_mode_conf.CONFIGURATION_FOLDER`."""
    configuration = session_configuration(session).model_dump_json(by_alias=True, indent=2)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": session.driver_name, "namespace": session.namespace, "labels": session.labels("driver")},
        "data": {SESSION: configuration, EXECUTOR_TEMPLATE: _template(session)},
    }


def session_configuration(session: DeployedSession) -> SessionConfiguration:
    """The configuration of `python -m penstock.jobs.session.runtime`."""
    conf = client_mode_conf(session)
    return SessionConfiguration(
        name=session.name,
        master=MASTER,
        executors=session.plan.pods.executor.count,
        # Of a driver that runs, which asks for more: it is not one of the settings that restart it.
        spark_conf={key: value for key, value in conf.items() if key != EXECUTORS},
        jobs={job.name: _session_job(session, job) for job in session.jobs},
    )


def _session_job(session: DeployedSession, job: DeployedJob) -> SessionJob:
    own = {"spec": SPEC, "spark_conf": dict(session.plan.job_conf[job.name])}
    return SessionJob(
        configuration=runtime_configuration(job).model_copy(update=own),
        files={**job.schemas, SPEC: job.spec_text},
        app=session.archives.get(job.name),
    )


def session_fingerprint(session: DeployedSession) -> str:
    """A hash of what the driver reads once, when it starts: without its jobs, and the number of executors, which it follows.

    Returns:
        16 hexadecimal digits.
    """
    whole = session_configuration(session)
    read_once = {"sparkConf": whole.spark_conf, "master": whole.master, "executor": _template(session)}
    text = json.dumps(read_once, sort_keys=True).replace(session.image, "")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _template(session: DeployedSession) -> str:
    # JSON is valid YAML, and its writer does not alter values.
    return json.dumps(executor_pod_template(session), indent=2)
