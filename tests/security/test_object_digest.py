from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from penstock.scripts.security.object_digest import of_manifest, of_resource

NAMES = {"production": "ENVIRONMENT", "flights": "JOB"}
WORKLOAD: dict[str, Any] = {
    "kind": "StatefulSet",
    "metadata": {"name": "flights-driver", "annotations": {"penstock.dev/configuration": "5d8a"}},
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "driver",
                        "image": "registry.example.com:5000/jobs:0.1.0",
                        "env": [{"name": "REGION", "value": "us-east-1"}],
                        "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}},
                        "securityContext": {"runAsUser": 185},
                    }
                ]
            }
        },
    },
}


def _container(manifest: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = manifest["spec"]["template"]["spec"]["containers"][0]
    return container


def _changed(change: Callable[[dict[str, Any]], Any]) -> str:
    manifest = copy.deepcopy(WORKLOAD)
    change(manifest)
    return of_manifest(manifest, NAMES)


SIZES: list[Callable[[dict[str, Any]], Any]] = [
    lambda manifest: _container(manifest)["resources"]["limits"].update(memory="2Gi"),
    lambda manifest: _container(manifest).update(image="registry.example.com:5000/jobs:0.2.0@sha256:ab12"),
    lambda manifest: manifest["spec"].update(replicas=2),
    lambda manifest: _container(manifest)["env"][0].update(value="eu-west-1"),
    lambda manifest: manifest["metadata"]["annotations"].update({"penstock.dev/configuration": "77aa"}),
]
RIGHTS: list[Callable[[dict[str, Any]], Any]] = [
    lambda manifest: _container(manifest)["resources"]["limits"].update(cpu="1"),
    lambda manifest: _container(manifest).update(image="other.example.com:5000/jobs:0.1.0"),
    lambda manifest: _container(manifest)["securityContext"].update(runAsUser=0),
    lambda manifest: _container(manifest)["env"].append({"name": "TOKEN", "value": "x"}),
    lambda manifest: manifest["spec"]["template"]["spec"].update(hostNetwork=True),
    lambda manifest: manifest["spec"]["template"]["spec"].update(volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
    lambda manifest: manifest["metadata"]["annotations"].update({"container.apparmor.security.beta.kubernetes.io/driver": "unconfined"}),
]


@pytest.mark.parametrize("change", SIZES)
def test_sizes_and_releases_keep_a_digest(change: Callable[[dict[str, Any]], Any]) -> None:
    assert _changed(change) == of_manifest(WORKLOAD, NAMES)


@pytest.mark.parametrize("change", RIGHTS)
def test_what_an_object_may_do_changes_its_digest(change: Callable[[dict[str, Any]], Any]) -> None:
    assert _changed(change) != of_manifest(WORKLOAD, NAMES)


def test_the_next_job_and_another_environment_have_the_same_digest() -> None:
    bucket = {"bucket": "penstock-production-output", "tags": {"kubernetes.production": "1"}}
    other = {"bucket": "penstock-staging-output", "tags": {"kubernetes.production": "1"}}
    assert of_resource(bucket, {"production": "ENVIRONMENT"}) == of_resource(other, {"staging": "ENVIRONMENT"})
    renamed = copy.deepcopy(WORKLOAD)
    renamed["metadata"]["name"] = "user-credit-driver"
    assert of_manifest(renamed, {"user-credit": "JOB"}) == of_manifest(WORKLOAD, NAMES)


def test_every_argument_of_a_resource_counts() -> None:
    bucket = {"bucket": "output", "force_destroy": False}
    assert of_resource({**bucket, "//": {"path": "x"}, "depends_on": ["y"]}, {}) == of_resource(bucket, {})
    assert of_resource({**bucket, "force_destroy": True}, {}) != of_resource(bucket, {})
