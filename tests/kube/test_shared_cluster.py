"""What a cluster that is there already has of Karpenter and of names, and a destroy in it; against an API server of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from rich.console import Console

from penstock.infra.environment import Environment
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import shared_cluster
from penstock.scripts.provisioning.draining import Own, drain
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read
from tests.infra.existing import OURS, THEIRS, in_existing
from tests.kube.fixtures import serving
from tests.kube.objects import Object, Objects

LIMIT_S = 60


def crd(group: str, kind: str) -> Object:
    """Karpenter's own says much of its fields, of which nothing here depends."""
    plural = f"{kind.lower()}s" if not kind.endswith("Class") else f"{kind.lower()}es"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture(scope="module")
def own_kube(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """An API server that no other test uses."""
    yield from serving(tmp_path_factory.mktemp("shared"), tell)


@pytest.fixture(scope="module")
def api(own_kube: ApiServer) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(config_file=str(own_kube.kubeconfig)) as made:
        yield made


def in_cluster(folder: Path, cluster: dict[str, Any]) -> Environment:
    return read(folder, lambda spec: in_existing(spec, cluster))


def codes(faults: list[PenstockError]) -> list[tuple[str, str]]:
    return [(fault.code, fault.given) for fault in faults]


def test_karpenter_is_there_as_the_environment_says(api: client.ApiClient, tmp_path: Path) -> None:
    theirs, ours = in_cluster(tmp_path, THEIRS), in_cluster(tmp_path, OURS)
    (missing,) = shared_cluster.faults(api, theirs, [])
    assert (missing.code, missing.path) == ("DEP-055", "spec.eks.existing.karpenter")
    assert missing.given == "no API karpenter.sh/v1, karpenter.k8s.aws/v1"
    assert missing.at is not None and missing.at.line is not None
    assert list(shared_cluster.faults(api, ours, [])) == []
    kinds = (("karpenter.sh", "NodePool"), ("karpenter.sh", "NodeClaim"), ("karpenter.k8s.aws", "EC2NodeClass"))
    Objects(api).serve([crd(group, kind) for group, kind in kinds], LIMIT_S)
    assert list(shared_cluster.faults(api, theirs, [])) == []
    assert codes(list(shared_cluster.faults(api, ours, []))) == [("DEP-055", "its API has karpenter.sh")]
    assert list(shared_cluster.faults(api, ours, [], own_controller=True)) == []


def test_a_namespace_of_others_is_named_and_one_of_a_release_of_the_stacks_is_not(api: client.ApiClient, tmp_path: Path) -> None:
    environment, objects = in_cluster(tmp_path, THEIRS), Objects(api)
    ours = {"meta.helm.sh/release-name": "penstock-production-prometheus"}
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "observability", "annotations": ours}})
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "job-clicks"}})
    assert codes(list(shared_cluster.faults(api, environment, ["clicks", "orders"]))) == [("INF-064", "job-clicks")]
    logging = {"meta.helm.sh/release-name": "fluent-bit"}
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "logging", "annotations": logging}})
    assert codes(list(shared_cluster.faults(api, environment, []))) == [("INF-064", "logging, of the release fluent-bit")]


def test_a_cluster_of_another_environment_is_refused_with_its_name(api: client.ApiClient, tmp_path: Path) -> None:
    """Its jobs' namespaces and releases have the names that this environment's would have."""
    environment, objects = in_cluster(tmp_path, THEIRS), Objects(api)
    for name, release in (("logging", "penstock-staging-fluent-bit"), ("job-orders", "job-orders")):
        annotations = {"meta.helm.sh/release-name": release}
        objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
    (fault,) = shared_cluster.faults(api, environment, ["orders"])
    assert (fault.code, fault.given) == ("INF-064", "logging, of environment staging")
    assert "one environment" in fault.need
    assert fault.at is not None and fault.at.line is not None


def _node_pool(name: str, release: str | None) -> Object:
    annotations = {} if release is None else {"meta.helm.sh/release-name": release}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "annotations": annotations}}


def _driver(objects: Objects, job: str) -> None:
    labels = {"app.kubernetes.io/part-of": "penstock", "penstock.dev/job": job}
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"job-{job}"}})
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "driver", "image": "none"}]}}
    metadata = {"name": f"{job}-driver", "namespace": f"job-{job}", "labels": labels}
    spec = {"replicas": 1, "serviceName": "driver", "selector": {"matchLabels": labels}, "template": pod}
    objects.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})


def test_a_destroy_stops_its_own_jobs_and_node_pools_and_leaves_those_of_others(api: client.ApiClient) -> None:
    objects = Objects(api)
    for job in ("clicks", "orders"):
        _driver(objects, job)
    release = "penstock-production-node-pools"
    for name, of in (("drivers", release), ("platform", None), ("other", "penstock-other-node-pools")):
        objects.apply(_node_pool(name, of))
    # A node of theirs, for which nobody waits.
    labels = {"karpenter.sh/nodepool": "platform"}
    objects.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "platform-x", "labels": labels}})
    drained = drain(api, Steps(Console(quiet=True)), Own(["clicks"], release), nodes_limit_s=LIMIT_S, pod_margin_s=LIMIT_S)
    assert (drained.jobs, drained.node_pools, drained.node_claims) == (("clicks",), ("drivers",), 0)
    pools = client.CustomObjectsApi(api).list_cluster_custom_object("karpenter.sh", "v1", "nodepools")["items"]
    assert {pool["metadata"]["name"] for pool in pools} == {"platform", "other"}
    apps = client.AppsV1Api(api)
    replicas = {job: apps.read_namespaced_stateful_set(f"{job}-driver", f"job-{job}").spec.replicas for job in ("clicks", "orders")}
    assert replicas == {"clicks": 0, "orders": 1}
