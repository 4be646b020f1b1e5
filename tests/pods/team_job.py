"""A shipped job, scaled to the machine of the tests, in an environment of theirs: planned, synthesized and released as a deploy does."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environment_file import load
from penstock.jobs.configuration.runtime import JOB_LABEL
from penstock.jobs.spec.app_module import sql_beside
from penstock.scripts import layout
from penstock.scripts.provisioning.stacks import Stack, synthesized
from tests.kube.charts import Release, attempted, ran, releases

# With the buckets that `penstock up` has.
CHECKPOINTS, OUTPUT = "penstock-local-checkpoints", "penstock-local-output"
# More than the check's own deadline.
CHECK_LIMIT_S = 540
# The file of the environment that a release is of, in the release's folder.
ENVIRONMENT = "environment.yaml"
_SPECS = layout.ROOT / "jobs" / "specs"
# The driver and two executors share two cores with everything else.
SMALL = {"parallelism": 4, "executor": {"slots": 2, "cores": "250m", "memory": "2g"}, "driver": {"cores": "250m", "memory": "2g"}}


def small_spec(name: str, folder: Path, *, batches: int = 1, **changes: Any) -> Path:
    """A shipped spec with small pods.

    Args:
        name: of its file, without the ending.
        folder: where it is written.
        batches: how many times as many micro-batches read the input.
        changes: further fields of the spec.
    """
    document = yaml.safe_load((_SPECS / f"{name}.yaml").read_text("utf-8"))
    document["spec"] |= {**SMALL, **changes}
    for source in document["spec"]["sources"].values():
        source["kafka"].pop("partitions", None)
        if "maxOffsetsPerTrigger" in source["kafka"]:
            source["kafka"]["maxOffsetsPerTrigger"] //= batches
    folder.mkdir(parents=True, exist_ok=True)
    for app, text in sql_beside(document["spec"]["app"], _SPECS).items():
        (folder / app).write_text(text, encoding="utf-8")
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file


@dataclass(frozen=True)
class Surroundings:
    """What the pods talk to on this machine.

    Args:
        aws: URL of the emulated AWS.
        variables: of the environment, for its clients.
        brokers: ``host:port``.
        image: name and tag of the jobs' image.
        api_ports: of the API, that the network policies of a job don't allow: those of EKS do.
    """

    aws: str
    variables: Mapping[str, str]
    brokers: str
    image: str
    api_ports: frozenset[int] = frozenset()


def release(spec: Path, around: Surroundings, folder: Path, connections: Mapping[str, str] | None = None) -> Release:
    """The job's release as the stack of the jobs' charts has it.

    EKS's Pod Identity adds variables to the pods that it gives credentials to; here they get those of the emulated AWS.

    Args:
        spec: its spec.
        around: what it talks to.
        folder: for the environment, as `ENVIRONMENT`, and its stacks.
        connections: name -> URL.
    """
    return _released(environment_of([spec], around, connections or {}), around, folder)[0]


def session_release(name: str, specs: Sequence[Path], around: Surroundings, folder: Path) -> tuple[Release, dict[str, bytes]]:
    """The release of a session as the stack of the jobs' charts has it, as `release`, and its apps: key in the bucket of the checkpoints ->
    ZIP file, which Terraform puts there before the release.

    Args:
        name: of the session.
        specs: of its jobs.
        around: what they talk to.
        folder: as of `release`.
    """
    environment = environment_of(specs, around, {})
    environment["spec"]["sessions"] = [{"name": name, "jobs": [spec.stem for spec in specs]}]
    own, stacks = _released(environment, around, folder)
    objects = [one for stack in stacks for address, one in stack.resources() if address.startswith("aws_s3_object.app-")]
    return own, {one["key"]: base64.b64decode(one["content_base64"]) for one in objects}


def _released(environment: dict[str, Any], around: Surroundings, folder: Path) -> tuple[Release, list[Stack]]:
    """The one release of an environment's jobs, and the stacks that it is of."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ENVIRONMENT
    file.write_text(yaml.safe_dump(environment, sort_keys=False), encoding="utf-8")
    stacks = synthesized(load(str(file)), folder / "stacks", only=("jobs-charts",), base=os.environ)
    outputs = {"checkpointsbucket": CHECKPOINTS, "outputbucket": OUTPUT, "repository_url": around.image.rpartition(":")[0]}
    # Beside it is that of the stack on which this one depends, whose objects only Karpenter acts on.
    own = next(one for one in releases(stacks, outputs) if one.name.startswith("job-"))
    return with_api(with_variables(own, around.variables), around.api_ports), stacks


def with_variables(own: Release, variables: Mapping[str, str]) -> Release:
    """The release with variables for all containers of the job, those of the executors' template and of its hooks included."""
    manifests = own.given
    asked = [{"name": name, "value": value} for name, value in variables.items()]
    for manifest in manifests:
        if manifest["kind"] in ("StatefulSet", "Job"):
            manifest["spec"]["template"]["spec"]["containers"][0]["env"] += asked
        elif "executor.yaml" in manifest.get("data", {}):
            template = json.loads(manifest["data"]["executor.yaml"])
            template["spec"]["containers"][0]["env"] = asked
            manifest["data"]["executor.yaml"] = json.dumps(template)
    return replace(own, values=json.dumps({"manifests": manifests}))


def with_api(own: Release, ports: frozenset[int]) -> Release:
    """The release with a network policy that allows ports, if there are any."""
    if not ports:
        return own
    (namespace,) = (one["metadata"]["name"] for one in own.manifests if one["kind"] == "Namespace")
    allowed = [{"ports": [{"protocol": "TCP", "port": port} for port in sorted(ports)]}]
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "api", "namespace": namespace},
        "spec": {
            "podSelector": {"matchExpressions": [{"key": JOB_LABEL, "operator": "Exists"}]},
            "policyTypes": ["Egress"],
            "egress": allowed,
        },
    }
    return replace(own, values=json.dumps({"manifests": [*own.given, policy]}))


def installed(helm: Path, own: Release, kubeconfig: Path, folder: Path) -> None:
    """Releases it, or its next version, unchecked: images that can't be pulled are tried, too."""
    options = ("--no-hooks", "--namespace", own.namespace, "--values", own.values_file(folder), "--kubeconfig", kubeconfig)
    ran(helm, "upgrade", "--install", own.name, own.chart, *options)


def checked(helm: Path, own: Release, kubeconfig: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Upgrades a release as a deploy does, with the check before it."""
    return _upgraded(helm, own, kubeconfig, folder, CHECK_LIMIT_S)


def tried(helm: Path, own: Release, kubeconfig: Path, folder: Path, ready_s: int) -> subprocess.CompletedProcess[str]:
    """Upgrades a release as a deploy does, with the check before it and a rollback if the driver does not become ready.

    Args:
        helm: the command.
        own: the release.
        kubeconfig: of the cluster.
        folder: for the release's values.
        ready_s: what the check, the changed driver and that of the rollback get, each.
    """
    return _upgraded(helm, own, kubeconfig, folder, ready_s, "--atomic")


def _upgraded(helm: Path, own: Release, kubeconfig: Path, folder: Path, timeout_s: int, *further: str) -> subprocess.CompletedProcess[str]:
    place: tuple[str | Path, ...] = ("--namespace", own.namespace, "--values", own.values_file(folder), "--kubeconfig", kubeconfig)
    options = (*place, "--timeout", f"{timeout_s}s", *further)
    # Helm waits that long for the hooks, for the pods, and for those of a rollback.
    return attempted(helm, "upgrade", own.name, own.chart, *options, limit_s=3 * timeout_s + 60)


def uninstalled(helm: Path, own: Release, kubeconfig: Path) -> None:
    """Removes it."""
    ran(helm, "uninstall", own.name, "--namespace", own.namespace, "--kubeconfig", kubeconfig, "--wait")


def environment_of(specs: Sequence[Path], around: Surroundings, connections: Mapping[str, str]) -> dict[str, Any]:
    """The environment of the tests, as a document, with these jobs."""
    repository, _, tag = around.image.rpartition(":")
    assert repository
    requirements = {"karpenter.sh/capacity-type": "on-demand", "karpenter.k8s.aws/instance-category": "m"}
    pool = {
        "name": "all",
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in requirements.items()],
        "disruption": {"budgets": [{"nodes": "1", "reasons": ["Empty"]}, {"nodes": "0", "reasons": ["Underutilized", "Drifted"]}]},
        "expireAfter": "Never",
    }
    return {
        "apiVersion": "penstock/v1",
        "kind": "Environment",
        "metadata": {"name": "pods"},
        "spec": {
            "account": "000000000000",
            "region": "us-east-1",
            "protect": False,
            "buckets": {"checkpoints": CHECKPOINTS, "output": OUTPUT},
            "network": {"zones": ["us-east-1a", "us-east-1b"], "natGateways": 1},
            "eks": {"version": "1.35", "admins": ["arn:aws:iam::000000000000:role/admin"]},
            "nodes": {"pools": [pool]},
            "kafka": {"kind": "external", "bootstrapServers": around.brokers, "security": "plaintext"},
            "registry": {"imageTag": tag},
            "connections": {name: {"kind": "http", "url": url, "plaintext": True} for name, url in connections.items()},
            "jobs": [str(spec) for spec in specs],
        },
    }
