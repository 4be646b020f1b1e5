"""Topics by a Job in the environment's cluster, for brokers that only the cluster reaches. What it made is deleted, however it ends."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from pydantic import ValidationError

from penstock.infra.environment_file import argument_of
from penstock.infra.manifests.topics_job import CONTAINER, DEADLINE_S, NAMESPACE, place, run
from penstock.infra.parts.nodes import PodPlace
from penstock.scripts.provisioning import eks_cluster
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked, connected, eks_token
from penstock.scripts.topics.difference import Action, ExistingTopic, TopicChange
from penstock.scripts.topics.errors import NotInCluster, PodFailed, PodNotStarted
from penstock.scripts.topics.in_pod import Answer, Request
from penstock.sizing.errors import PenstockError, RunFailed, raise_all

# A node of the system is there; it may have to pull the image.
START_LIMIT_S = 300.0
_POLL_S = 1.0
_CONFLICT, _NOT_FOUND = 409, 404


@contextlib.contextmanager
def cluster_api(aws: AwsAccess) -> Iterator[client.ApiClient]:
    """A client of the API of an environment's cluster.

    Args:
        aws: AWS of the environment.

    Raises:
        NotInCluster: TOP-014, there is no cluster yet.
        ApiServerNotReached: DEP-007.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    address = eks_cluster.reached(aws)
    if isinstance(address, str):
        deploy = f"penstock deploy {argument_of(aws.environment)} registry kafka jobs"
        fix = f"deploy it: {deploy}; or --through here, where the brokers are reached"
        raise NotInCluster(path=f"environment {aws.environment.name}", given=address, need="a cluster that reaches the brokers", fix=fix)
    with connected(address, lambda: eks_token(aws, address.name)) as api:
        yield api


class ClusterTopics:
    """The topics of brokers that the cluster reaches.

    Args:
        api: client of the cluster's API.
        image: of the jobs.
        request: the brokers and the wanted topics, without planned changes.
        where: the nodes that its pods may run on.
        start_limit_s: how long a pod may take to start, in seconds.
        poll_s: how often the API is asked, in seconds.
    """

    said = "left to the cluster"

    def __init__(
        self,
        api: client.ApiClient,
        image: str,
        request: Request,
        where: PodPlace,
        start_limit_s: float = START_LIMIT_S,
        poll_s: float = _POLL_S,
    ) -> None:
        self._core, self._batch, self._network = client.CoreV1Api(api), client.BatchV1Api(api), client.NetworkingV1Api(api)
        self._image = image
        self._request = request
        self._where = where
        self._start_limit_s = start_limit_s
        self._poll_s = poll_s
        self._refused: list[PenstockError] = []
        self._planned: tuple[TopicChange, ...] = ()
        self._agreed = False

    def existing(self, names: Iterable[str]) -> Mapping[str, ExistingTopic]:
        """Those of the wanted topics that exist.

        Raises:
            PodNotStarted: TOP-011.
            PodFailed: TOP-012.
            PenstockError: DEP-007 or DEP-010 from the cluster's API; what the brokers' errors are in the pod.
        """
        wanted = set(names)
        assert wanted == {topic.name for topic in self._request.wanted}, "the request has the wanted topics"
        answer = self._answer(self._request)
        self._refused = [_reported(error) for error in answer.refusals]
        return answer.existing

    def refusals(self, changes: Sequence[TopicChange]) -> list[PenstockError]:
        """What the brokers said of the changes in the pod."""
        self._planned = tuple(changes)
        return self._refused

    def do(self, change: TopicChange, action: Action) -> None:
        """Nothing yet: all changes are made together."""
        self._agreed = True

    def settle(self) -> None:
        """Apply all changes in a pod, and wait for it.

        Raises:
            PlanOutdated: TOP-013.
            PenstockError: as `existing`, and TOP-003 or TOP-006 of a change.
        """
        if self._agreed:
            self._answer(self._request.model_copy(update={"planned": self._planned}))

    def _answer(self, request: Request) -> Answer:
        name = f"topics-{uuid.uuid4().hex[:8]}"
        with self._running(name, request):
            answer = self._waited(name)
        raise_all(_reported(error) for error in answer.errors)
        return answer

    @contextlib.contextmanager
    def _running(self, name: str, request: Request) -> Iterator[None]:
        ports = [int(server.rpartition(":")[2]) for server in request.address.split(",")]
        try:
            with asked(f"the Job {name} in the cluster"):
                self._create(place(sorted(set(ports))))
                self._create(run(name, self._image, request.model_dump_json(), self._where))
            yield
        finally:
            # Also after an interruption.
            self._delete(name)

    def _create(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        makers = {
            "Namespace": (self._core.create_namespace, None),
            "ServiceAccount": (self._core.create_namespaced_service_account, None),
            "NetworkPolicy": (self._network.create_namespaced_network_policy, self._network.replace_namespaced_network_policy),
            "ConfigMap": (self._core.create_namespaced_config_map, None),
            "Job": (self._batch.create_namespaced_job, None),
        }
        for manifest in manifests:
            create, replace = makers[manifest["kind"]]
            at = {} if manifest["kind"] == "Namespace" else {"namespace": NAMESPACE}
            try:
                create(body=manifest, _request_timeout=REQUEST_LIMIT_S, **at)
            except ApiException as error:
                if error.status != _CONFLICT:
                    raise
                if replace is not None:
                    replace(name=manifest["metadata"]["name"], body=manifest, _request_timeout=REQUEST_LIMIT_S, **at)

    def _delete(self, name: str) -> None:
        at: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "_request_timeout": REQUEST_LIMIT_S}
        deletions = (
            lambda: self._batch.delete_namespaced_job(propagation_policy="Background", **at),
            lambda: self._core.delete_namespaced_config_map(**at),
        )
        for delete in deletions:
            try:
                with asked(f"the deletion of {name} in {NAMESPACE}"):
                    _unless_missing(delete)
            except PenstockError:
                # What has ended the run is reported; Kubernetes deletes the Job itself within an hour.
                continue

    def _waited(self, name: str) -> Answer:
        began_s = time.monotonic()
        while True:
            with asked(f"the Job {name} in the cluster"):
                pods = self._core.list_namespaced_pod(
                    NAMESPACE, label_selector=f"batch.kubernetes.io/job-name={name}", _request_timeout=REQUEST_LIMIT_S
                ).items
                job = self._batch.read_namespaced_job_status(name, NAMESPACE, _request_timeout=REQUEST_LIMIT_S)
            if pods and (ended := _terminated(pods[0])) is not None:
                return self._read(pods[0], ended)
            waited_s = time.monotonic() - began_s
            self._check(name, pods, job, waited_s)
            time.sleep(self._poll_s)

    def _check(self, name: str, pods: Sequence[Any], job: Any, waited_s: float) -> None:
        failed = [one for one in job.status.conditions or [] if one.type == "Failed" and one.status == "True"]
        if failed:
            given = f"{failed[0].reason}: {failed[0].message}"
            raise _pod_failed(name, given)
        if waited_s > self._start_limit_s and not any(_has_started(pod) for pod in pods):
            need = f"a pod that starts within {self._start_limit_s:g} s"
            fix = "check the system's nodes, the image and its tag (PENSTOCK_IMAGE_TAG), and run it again"
            raise PodNotStarted(path=f"Job {name} in {NAMESPACE}", given=_why(pods), need=need, fix=fix)
        if waited_s > DEADLINE_S + self._start_limit_s:
            raise _pod_failed(name, "it has not ended")

    def _read(self, pod: Any, ended: Any) -> Answer:
        for text in (ended.message or "", self._last_line(pod)):
            with contextlib.suppress(ValidationError):
                return Answer.model_validate_json(text)
        said = " ".join((ended.message or "").split())[-500:]
        raise _pod_failed(pod.metadata.name, f"{ended.reason}, exit code {ended.exit_code}: {said or 'without a message'}")

    def _last_line(self, pod: Any) -> str:
        try:
            log = self._core.read_namespaced_pod_log(
                pod.metadata.name, NAMESPACE, container=CONTAINER, _request_timeout=REQUEST_LIMIT_S, _preload_content=False
            )
        except ApiException:
            return ""
        lines: list[str] = log.data.decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else ""


def _reported(error: Mapping[str, Any]) -> PenstockError:
    """An error of the pod, with its own code."""
    kind = type("ErrorInPod", (RunFailed,), {"code": error["code"], "title": error["title"]})
    reported: PenstockError = kind(path=error["path"], given=error["given"], need=error["need"], fix=error["fix"])
    return reported


def _pod_failed(name: str, given: str) -> PodFailed:
    fix = f"check its pod's events and log: kubectl -n {NAMESPACE} get events; then run it again"
    return PodFailed(path=f"{name} in {NAMESPACE}", given=given, need="a pod that answers", fix=fix)


def _terminated(pod: Any) -> Any:
    states = [one.state for one in pod.status.container_statuses or [] if one.name == CONTAINER]
    return states[0].terminated if states and states[0] else None


def _has_started(pod: Any) -> bool:
    states = [one.state for one in pod.status.container_statuses or [] if one.name == CONTAINER]
    return any(state is not None and (state.running is not None or state.terminated is not None) for state in states)


def _why(pods: Sequence[Any]) -> str:
    """Why a pod has not started: what its container waits for, or what the scheduler says."""
    for pod in pods:
        for one in pod.status.container_statuses or []:
            if one.state is not None and one.state.waiting is not None:
                return f"{one.state.waiting.reason}: {one.state.waiting.message or ''}".rstrip(": ")
        for condition in pod.status.conditions or []:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{condition.reason}: {condition.message}"
    return "it has no pod"


def _unless_missing(delete: Any) -> None:
    try:
        delete()
    except ApiException as error:
        if error.status != _NOT_FOUND:
            raise
