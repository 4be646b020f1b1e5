"""What doctor says of a job's pods, against an API server: their states are those that a scheduler and a kubelet report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config

from penstock.infra.environment_file import load
from penstock.infra.plans import JobPlan, plans
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.provisioning import job_pods
from penstock.scripts.provisioning.finding import MISSING, OK, Finding
from tests.kube.objects import Object, Objects

NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "job-pods-of-doctor"}}


@pytest.fixture(scope="module")
def job() -> JobPlan:
    return plans(load("production")).jobs[0]


@pytest.fixture
def said(kube: ApiServer, objects: Objects, job: JobPlan) -> Iterator[Callable[..., Finding]]:
    """What is said of the job once it has these pods: role and status of each."""
    objects.apply(NAMESPACE)
    namespace = NAMESPACE["metadata"]["name"]
    objects.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
    made: list[Object] = []

    def look(*pods: tuple[str, dict[str, Any]]) -> Finding:
        for number, (role, status) in enumerate(pods):
            labels = {"app.kubernetes.io/part-of": "penstock", "penstock.dev/job": job.name, "spark-role": role}
            metadata = {"name": f"{role}-{number}", "namespace": namespace, "labels": labels}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": role, "image": "jobs:1"}]}}
            made.append(objects.create(pod))
            objects.set_status(pod, status)
        with config.new_client_from_config(config_file=str(kube.kubeconfig)) as api:
            (finding,) = job_pods.look(api, {job.name: job.plan})
        return finding

    yield look
    for pod in made:
        objects.delete({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})


def container(**state: Any) -> dict[str, Any]:
    status = {"name": "driver", "image": "jobs:1", "imageID": "", "restartCount": 0, "ready": False, **state}
    return {"phase": "Running", "containerStatuses": [status]}


READY = container(ready=True, state={"running": {}})
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient memory.",
}


def test_a_job_without_pods_has_none(said: Callable[..., Finding], job: JobPlan) -> None:
    assert said() == Finding(f"job {job.name}", OK, "no pods: not deployed, stopped, or completed", "its driver and its executors run")


def test_pods_that_run_are_counted(said: Callable[..., Finding]) -> None:
    restarted = container(ready=True, restartCount=2, state={"running": {}})
    finding = said(("driver", restarted), ("executor", READY), ("executor", {"phase": "Succeeded"}))
    assert (finding.state, finding.said) == (OK, "the driver and 1 executor, 2 restarts")


def test_an_image_that_cannot_be_pulled_is_named(said: Callable[..., Finding]) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "jobs:1"'}
    finding = said(("driver", container(state={"waiting": waiting})))
    assert (finding.state, finding.said) == (MISSING, 'driver-0: ImagePullBackOff: Back-off pulling image "jobs:1"')
    assert "registry.imageTag" in finding.fix


def test_executors_without_a_node_are_told_with_what_the_plan_has_for_them(said: Callable[..., Finding], job: JobPlan) -> None:
    finding = said(("driver", READY), ("executor", {"phase": "Pending", "conditions": [NO_NODE]}))
    planned = job.plan.pods.executor
    assert finding.state == MISSING
    assert finding.said.startswith(
        f"1 of {planned.count} executors without a node: 0/3 nodes are available: 3 Insufficient memory.; by the plan"
    )
    assert f"{planned.memory_mib:,} MiB memory" in finding.said
    assert "which fits " in finding.said
    assert " of pool " in finding.said


def test_what_a_container_ended_with_is_told(said: Callable[..., Finding]) -> None:
    ended = {"reason": "OOMKilled", "exitCode": 137}
    waiting = {"reason": "CrashLoopBackOff"}
    finding = said(("driver", container(restartCount=4, state={"waiting": waiting}, lastState={"terminated": ended})))
    assert (finding.state, finding.said) == (MISSING, "driver-0: restarted 4 times, last ended with OOMKilled, exit code 137")
    assert "kubectl logs --previous --namespace job-pods-of-doctor driver-0" in finding.fix


def test_a_message_of_the_driver_is_told(said: Callable[..., Finding]) -> None:
    ended = {"reason": "Error", "exitCode": 5, "message": "JOB-009: the bucket is not reached\n  fix ..."}
    finding = said(("driver", container(restartCount=1, state={"terminated": ended})))
    assert finding.said == "driver-0: restarted 1 time, last ended with Error, exit code 5: JOB-009: the bucket is not reached fix ..."


def test_pods_of_other_jobs_are_not_counted(kube: ApiServer, said: Callable[..., Finding], job: JobPlan) -> None:
    said(("driver", container(state={"waiting": {"reason": "ErrImagePull"}})))
    with config.new_client_from_config(config_file=str(kube.kubeconfig)) as api:
        pods = client.CoreV1Api(api).list_namespaced_pod(NAMESPACE["metadata"]["name"]).items
        other = plans(load("production")).jobs[1]
        assert other.name != job.name
        (finding,) = job_pods.look(api, {other.name: other.plan})
    assert pods
    assert finding.state == OK


OF_A_NODE = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 64Mi. Container driver was using 24Ki, "
    "request is 1Gi, has larger consumption of ephemeral-storage. "
)


@pytest.mark.parametrize(
    ("role", "message", "fix"),
    [
        ("executor", 'Usage of EmptyDir volume "spark-local-dir-1" exceeds the limit "2Gi". ', "raise executor.ephemeralStorage in the"),
        ("driver", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ", "raise driver.ephemeralStorage in the"),
        ("executor", OF_A_NODE, "raise the environment's rootVolume, or find"),
    ],
)
def test_a_pod_that_was_evicted_for_its_disk_is_told_with_the_plans_figure(
    said: Callable[..., Finding], evicted: Callable[[str, str], None], job: JobPlan, role: str, message: str, fix: str
) -> None:
    pod = f"{job.name}-driver-0" if role == "driver" else f"{job.name}-0-exec-1"
    planned = job.plan.pods.driver if role == "driver" else job.plan.pods.executor
    evicted(pod, message)
    finding = said(("driver", READY), ("executor", READY))
    assert finding.state == MISSING
    assert finding.said == (
        f"1 pod evicted within an hour, the last one {pod}: {message.strip()}; by the plan each {role} requests "
        f"{planned.request_ephemeral_storage_mib:,} MiB ephemeral storage"
    )
    assert finding.fix.startswith(fix)
    assert f"{role}.ephemeralStorage" in finding.fix


def test_an_eviction_for_another_reason_names_no_disk(
    said: Callable[..., Finding], evicted: Callable[[str, str], None], job: JobPlan
) -> None:
    evicted(f"{job.name}-0-exec-1", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. ")
    finding = said(("driver", READY))
    assert "low on resource: memory" in finding.said
    assert "Storage" not in finding.said + finding.fix


@pytest.fixture
def evicted(objects: Objects, job: JobPlan) -> Iterator[Callable[[str, str], None]]:
    """Has a pod of the job evicted, as the event of a kubelet says it: pod and message."""
    namespace = f"job-{job.name}"
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    made: list[Object] = []

    def evict(pod: str, message: str) -> None:
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod}.evicted", "namespace": namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": namespace},
            "reason": "Evicted",
            "message": message,
            "type": "Warning",
        }
        made.append(objects.create(event))

    yield evict
    for event in made:
        objects.delete({"apiVersion": "v1", "kind": "Event", "metadata": event["metadata"]})
