"""A job in the cluster as the jobs-charts stack deploys it; what a cluster's controllers would do is done here by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.infra.environment_file import load
from penstock.infra.job_connections import connections_of, ports, secrets, urls
from penstock.infra.manifests.client_mode_conf import EXECUTOR_TEMPLATE
from penstock.infra.manifests.config_map import RUNTIME, SPEC
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.job import job_manifests
from penstock.infra.plans import plans
from penstock.scripts.kube.api_server import ApiServer
from tests.kube.objects import Object, Objects

# What the API server gives its pods a day of is enough for a test.
_TOKEN_S = 3600


def user_credit(brokers: str, *, name: str = "user-credit") -> DeployedJob:
    """The shipped job with the shipped production environment's plan.

    Args:
        brokers: that it is told of.
        name: of the job, and so of its namespace; a test that changes things takes one of its own.
    """
    environment = load("production")
    planned = next(job for job in plans(environment).jobs if job.name == "user-credit")
    nodes = environment.spec.nodes
    assert nodes is not None
    connections = connections_of(planned.spec, environment)
    text = Path(planned.spec.path).read_text("utf-8")
    trigger_ms = planned.spec.job.spec.trigger
    assert isinstance(trigger_ms, int)
    return DeployedJob(
        name=name,
        spec_text=text.replace("name: user-credit", f"name: {name}", 1),
        plan=planned.plan,
        image="111122223333.dkr.ecr.us-east-1.amazonaws.com/penstock-production/jobs:1.0.0",
        brokers=brokers,
        kafka_security="plaintext",
        broker_ports=(int(brokers.rpartition(":")[2]),),
        job_folder=f"s3a://test-checkpoints/{name}",
        output_bucket="test-output",
        region="us-east-1",
        trigger_s=trigger_ms / 1000,
        driver=nodes.pods.driver,
        executor=nodes.pods.executor,
        connections=urls(connections),
        secrets=secrets(connections),
        connection_ports=ports(connections),
        role_arn=f"arn:aws:iam::111122223333:role/penstock-production-{name}",
    )


@dataclass(frozen=True)
class Deployment:
    """A job's objects in an API without controllers.

    Args:
        job: the job.
        kube: the API.
        objects: it, for a user who may do everything.
    """

    job: DeployedJob
    kube: ApiServer
    objects: Objects

    def apply(self, *, without: tuple[str, ...] = ()) -> None:
        """Applies the job's manifests but for some kinds, and has its quota counted."""
        for manifest in job_manifests(self.job):
            if manifest["kind"] not in without:
                self.objects.apply(manifest)
                if manifest["kind"] == "ResourceQuota":
                    count(self.objects, manifest)

    def manifest(self, kind: str) -> dict[str, Any]:
        """The job's one manifest of a kind."""
        (result,) = (manifest for manifest in job_manifests(self.job) if manifest["kind"] == kind)
        return result

    def driver_pod(self) -> Object:
        """The pod that the StatefulSet's controller would make of its template."""
        template = self.manifest("StatefulSet")["spec"]["template"]
        metadata = {**template["metadata"], "name": self.job.driver_host_name, "namespace": self.job.namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    def token(self, driver: Object, file: Path) -> Path:
        """A token of the driver's service account for its pod, as the kubelet asks for it."""
        pod = {"apiVersion": "v1", "kind": "Pod", "name": driver["metadata"]["name"], "uid": driver["metadata"]["uid"]}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": self.job.namespace}}
        path = f"{self.objects.path(account, named=False)}/{self.job.service_account('driver')}/token"
        spec = {"expirationSeconds": _TOKEN_S, "boundObjectRef": pod}
        answer = self.objects.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        file.write_text(answer["status"]["token"], encoding="utf-8")
        return file

    def files(self, folder: Path) -> dict[str, Any]:
        """The files of the driver's ConfigMap as its volume shows them, written into a folder.

        Returns:
            The runtime's configuration as JSON, with the paths of this machine's files.
        """
        data = self.objects.get(self.manifest("ConfigMap"))["data"]
        for name, text in data.items():
            (folder / name).write_text(text, encoding="utf-8")
        runtime: dict[str, Any] = json.loads(data[RUNTIME])
        runtime["spec"] = str(folder / SPEC)
        runtime["sparkConf"]["spark.kubernetes.executor.podTemplateFile"] = str(folder / EXECUTOR_TEMPLATE)
        return runtime


def count(objects: Objects, quota: Mapping[str, Any]) -> None:
    """Has a quota counted from here on: its controller would begin with what is there, which is nothing."""
    hard = quota["spec"]["hard"]
    objects.set_status(quota, {"hard": hard, "used": dict.fromkeys(hard, "0")})
