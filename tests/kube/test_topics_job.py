"""Topics by a Job, against a real API server; what controllers, the scheduler and the kubelet would do, the tests do."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from penstock.infra.environment_file import load
from penstock.infra.manifests.topics_job import CONTAINER, NAMESPACE, REQUEST
from penstock.infra.parts.nodes import PodPlace
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.topics.difference import ExistingTopic, WantedTopic, changes
from penstock.scripts.topics.errors import PodFailed, PodNotStarted
from penstock.scripts.topics.in_cluster import ClusterTopics
from penstock.scripts.topics.in_pod import Answer, Request
from penstock.sizing.errors import PenstockError
from tests.infra.environments import written

TOPIC = WantedTopic("clicks", 4)
REQUESTED = Request(address="b-1.example:9098,b-2.example:9098", security="iam", region="us-east-1", wanted=(TOPIC,))
LIMIT_S = 60.0

Respond = Callable[[Request], dict[str, Any]]


class Kubelet:
    """Runs the pods of the Jobs that come: their status is what is given."""

    def __init__(self, api: client.ApiClient, respond: Respond) -> None:
        self._core, self._batch = client.CoreV1Api(api), client.BatchV1Api(api)
        self._respond = respond
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.requests: list[Request] = []
        self.jobs: list[Any] = []

    def __enter__(self) -> Kubelet:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(LIMIT_S)

    def _run(self) -> None:
        seen: set[str] = set()
        while not self._ending.wait(0.05):
            for job in self._batch.list_namespaced_job(NAMESPACE).items:
                if job.metadata.name not in seen:
                    seen.add(job.metadata.name)
                    self._start(job)

    def _start(self, job: Any) -> None:
        name = job.metadata.name
        request = Request.model_validate_json(self._core.read_namespaced_config_map(name, NAMESPACE).data[REQUEST])
        self.jobs.append(job)
        self.requests.append(request)
        template = job.spec.template
        template.metadata.labels["batch.kubernetes.io/job-name"] = name
        pod = client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels=template.metadata.labels), spec=template.spec)
        self._core.create_namespaced_pod(NAMESPACE, pod)
        self._core.patch_namespaced_pod_status(name, NAMESPACE, {"status": self._respond(request)})


def _terminated(message: str, code: int = 0) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": message}}
    container = {"name": CONTAINER, "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}
    return {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [container]}


def _waiting(reason: str) -> dict[str, Any]:
    container = {
        "name": CONTAINER,
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
    }
    return {"phase": "Pending", "containerStatuses": [container]}


@contextmanager
def running(api: client.ApiClient, respond: Respond) -> Iterator[Kubelet]:
    with Kubelet(api, respond) as kubelet:
        yield kubelet
    assert _left(api) == ([], [])


def _left(api: client.ApiClient) -> tuple[list[str], list[str]]:
    """Jobs and requests that are still there; without a garbage collector, a Job that waits for its pods counts as deleted."""
    jobs = [one.metadata.name for one in client.BatchV1Api(api).list_namespaced_job(NAMESPACE).items if not one.metadata.deletion_timestamp]
    maps = client.CoreV1Api(api).list_namespaced_config_map(NAMESPACE).items
    return jobs, [one.metadata.name for one in maps if one.metadata.name.startswith("topics-")]


@pytest.fixture
def topics(api: client.ApiClient) -> ClusterTopics:
    return ClusterTopics(api, "registry.example/jobs:1", REQUESTED, PodPlace(), start_limit_s=LIMIT_S, poll_s=0.05)


def test_a_plan_and_its_apply_are_two_runs_of_which_nothing_is_left(api: client.ApiClient, topics: ClusterTopics) -> None:
    existing = {"clicks": ExistingTopic(2, 3, {"cleanup.policy": "delete"})}
    with running(api, lambda _: _terminated(Answer(existing=existing).model_dump_json())) as kubelet:
        assert topics.existing(["clicks"]) == existing
        planned = changes([TOPIC], existing)
        assert topics.refusals(planned) == []
        topics.do(planned[0], "grow")
        topics.settle()
    assert [request.planned for request in kubelet.requests] == [None, planned]
    pod = kubelet.jobs[0].spec.template.spec
    assert (pod.service_account_name, pod.automount_service_account_token) == ("topics", False)
    assert pod.containers[0].image == "registry.example/jobs:1"
    outside = client.NetworkingV1Api(api).read_namespaced_network_policy("outside", NAMESPACE)
    assert {port.port for rule in outside.spec.egress for port in rule.ports} == {53, 80, 443, 9098}


def test_errors_of_the_pod_are_those_of_the_command(api: client.ApiClient, topics: ClusterTopics) -> None:
    error = {"code": "TOP-002", "title": "Kafka brokers unreachable", "path": "brokers", "given": "g", "need": "n", "fix": "f"}
    with running(api, lambda _: _terminated(Answer(errors=(error,)).model_dump_json())), pytest.raises(PenstockError) as raised:
        topics.existing(["clicks"])
    assert raised.value.render().startswith("error[TOP-002]: Kafka brokers unreachable\n  at   brokers = g")
    with running(api, lambda _: _terminated(Answer(refusals=({**error, "code": "TOP-003"},)).model_dump_json())):
        topics.existing(["clicks"])
    assert [fault.code for fault in topics.refusals([])] == ["TOP-003"]


def test_a_pod_that_dies_without_an_answer_is_reported_with_its_end(api: client.ApiClient, topics: ClusterTopics) -> None:
    with running(api, lambda _: _terminated("ModuleNotFoundError: No module named 'penstock'", 1)), pytest.raises(PodFailed) as raised:
        topics.existing(["clicks"])
    assert raised.value.given == "Error, exit code 1: ModuleNotFoundError: No module named 'penstock'"


def test_a_pod_that_does_not_start_is_reported_with_what_it_waits_for(api: client.ApiClient) -> None:
    impatient = ClusterTopics(api, "registry.example/jobs:none", REQUESTED, PodPlace(), start_limit_s=3.0, poll_s=0.05)
    with running(api, lambda _: _waiting("ImagePullBackOff")), pytest.raises(PodNotStarted) as raised:
        impatient.existing(["clicks"])
    assert raised.value.given == "ImagePullBackOff"
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    with running(api, lambda _: {"phase": "Pending", "conditions": [unschedulable]}), pytest.raises(PodNotStarted) as raised:
        impatient.existing(["clicks"])
    assert raised.value.given == "Unschedulable: 0/2 nodes are available"


def test_an_interrupted_run_is_deleted(api: client.ApiClient, topics: ClusterTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        topics.existing(["clicks"])
    assert _left(api) == ([], [])


def test_the_command_shows_what_the_pods_say(api: client.ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command: only the address of the cluster, which EKS would know, is given to it."""
    (tmp_path / "app.py").write_text("")
    document = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "clicks"},
        "spec": {
            "app": "app",
            "parallelism": 1,
            "executor": {"slots": 1, "memory": "2g"},
            "sources": {"a": {"kafka": {"topic": "clicks", "partitions": 4}}},
            "sinks": {"out": {"files": {"path": "out"}}},
        },
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document))
    with EmulatedAws(log=tmp_path / "aws.log", account="111122223333") as aws:
        kafka = {"kind": "external", "bootstrapServers": "b-1.example:9092", "security": "plaintext", "replication": 1}
        file = written(tmp_path, lambda spec: spec.update(jobs=["job.yaml"], kafka=kafka, endpoints={"aws": aws.endpoint}))
        environment = load(file)
        AwsAccess(environment).client("ecr").create_repository(repositoryName=f"{environment.prefix}/jobs")
        monkeypatch.setattr("penstock.scripts.topics.in_cluster.cluster_api", lambda *_: nullcontext(api))
        out = io.StringIO()
        with running(api, lambda _: _terminated(Answer().model_dump_json())) as kubelet, redirect_stdout(out):
            assert main(["topics", "apply", str(file), "--through", "cluster", "--yes"]) == 0
    assert out.getvalue().startswith("topics of production on b-1.example:9092, in the cluster\n")
    first, second = kubelet.requests
    assert first.planned is None and second.planned is not None
    assert [(change.name, change.actions) for change in second.planned] == [("clicks", ("create",))]
    image = kubelet.jobs[0].spec.template.spec.containers[0].image
    assert image.startswith("111122223333.dkr.ecr.us-east-1.amazonaws.com/penstock-production/jobs:")
