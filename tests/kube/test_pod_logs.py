"""``penstock logs`` against a real API server, which has no kubelet to ask: what it says of a pod's log is a coded error."""

from __future__ import annotations

import uuid

import pytest
from kubernetes import client

from penstock.scripts.operations.pod_logs import pods_of, write_logs
from penstock.scripts.provisioning.errors import JobNotDeployed, LogNotRead
from tests.kube.objects import Object, Objects


@pytest.fixture
def job(objects: Objects) -> str:
    """A job with a driver and two executors, which no node runs."""
    name = f"l{uuid.uuid4().hex[:6]}"
    namespace = f"job-{name}"
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    objects.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
    for pod, role, container in (
        (f"{name}-driver-0", "driver", "driver"),
        (f"{name}-exec-2", "executor", "spark-kubernetes-executor"),
        (f"{name}-exec-1", "executor", "spark-kubernetes-executor"),
    ):
        labels = {"app.kubernetes.io/part-of": "penstock", "penstock.dev/job": name, "spark-role": role}
        meta = {"name": pod, "namespace": namespace, "labels": labels}
        spec = {"containers": [{"name": container, "image": "none"}]}
        document: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        objects.apply(document)
    return name


def test_pods_are_found_by_their_job_and_role(api: client.ApiClient, job: str) -> None:
    assert [pod.metadata.name for pod in pods_of(api, job, "driver")] == [f"{job}-driver-0"]
    assert [pod.metadata.name for pod in pods_of(api, job, "executor")] == [f"{job}-exec-1", f"{job}-exec-2"]


def test_a_job_without_pods_is_named(api: client.ApiClient) -> None:
    with pytest.raises(JobNotDeployed) as raised:
        pods_of(api, "nobody", "driver")
    assert (raised.value.code, raised.value.given) == ("DEP-017", "no pod with the role driver")


@pytest.mark.parametrize(("follow", "previous"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_a_pod_without_a_node_has_no_log(api: client.ApiClient, job: str, role: str, follow: bool, previous: bool) -> None:
    lines: list[str] = []
    with pytest.raises(LogNotRead) as raised:
        write_logs(api, pods_of(api, job, role), lines.append, follow=follow, previous=previous)
    assert (raised.value.code, raised.value.given, lines) == ("DEP-022", "it has no node", [])


@pytest.mark.parametrize("follow", [False, True])
def test_a_node_that_does_not_answer_is_said(api: client.ApiClient, job: str, follow: bool) -> None:
    pods = pods_of(api, job, "executor")
    for pod in pods:
        target = client.V1ObjectReference(api_version="v1", kind="Node", name="gone")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.metadata.name), target=target)
        client.CoreV1Api(api).create_namespaced_pod_binding(pod.metadata.name, pod.metadata.namespace, binding, _preload_content=False)
    with pytest.raises(LogNotRead) as raised:
        write_logs(api, pods_of(api, job, "executor"), print, follow=follow, previous=False)
    assert raised.value.code == "DEP-022"
    assert "gone" in (raised.value.given or "")
