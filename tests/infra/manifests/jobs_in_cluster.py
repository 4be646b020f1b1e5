"""Jobs of the shipped production environment as they are deployed, with small changes, and Kubernetes' own schemas."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import kubernetes_validate

from penstock.infra.environment_file import load
from penstock.infra.job_connections import connections_of, ports, secrets, urls
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.plans import plans

# The shipped environments' version of EKS.
KUBERNETES = "1.35"


@cache
def _shipped(name: str) -> DeployedJob:
    environment = load("production")
    (planned,) = [job for job in plans(environment).jobs if job.name == name]
    nodes = environment.spec.nodes
    assert nodes is not None
    connections = connections_of(planned.spec, environment)
    trigger_ms = planned.spec.job.spec.trigger
    assert isinstance(trigger_ms, int)
    return DeployedJob(
        name=name,
        spec_text=planned.spec.path.read_text("utf-8"),
        plan=planned.plan,
        image="registry.example/penstock-production/jobs:1.0.0",
        brokers="b-1.example:9098,b-2.example:9098",
        kafka_security="iam",
        broker_ports=(9098,),
        job_folder=f"s3a://the-checkpoints/{name}",
        output_bucket="the-output",
        region="us-east-1",
        trigger_s=trigger_ms / 1000,
        driver=nodes.pods.driver,
        executor=nodes.pods.executor,
        connections=urls(connections),
        secrets=secrets(connections),
        connection_ports=ports(connections),
        role_arn=f"arn:aws:iam::111122223333:role/penstock-production-job-{name}",
    )


def deployed(shipped: str = "user-credit", **changes: Any) -> DeployedJob:
    """A shipped job, with other values for some fields of `DeployedJob`."""
    return replace(_shipped(shipped), **changes)


def of_kind(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The objects of one kind."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def hold(manifest: dict[str, Any]) -> None:
    """Validates a manifest against Kubernetes' own schema, which has all fields.

    Raises:
        kubernetes_validate.ValidationError: an invalid manifest.
    """
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
