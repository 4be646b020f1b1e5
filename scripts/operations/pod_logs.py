"""Logs of a job's pods, as Kubernetes has them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from penstock.infra.manifests.client_mode_conf import EXECUTOR_CONTAINER
from penstock.infra.manifests.driver_pod import CONTAINER
from penstock.scripts.provisioning.draining import of_job
from penstock.scripts.provisioning.errors import JobNotDeployed, LogNotRead
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked
from penstock.sizing.errors import PenstockError

_ROLE = "spark-role"
_CONTAINERS = {"driver": CONTAINER, "executor": EXECUTOR_CONTAINER}
# A log that is followed may be silent for as long as its job.
_NO_LIMIT = None


def pods_of(api: client.ApiClient, job: str, role: str) -> list[Any]:
    """The pods of a job with a role, in the order of their names.

    Args:
        api: client of the cluster's API.
        job: its name.
        role: ``driver`` or ``executor``.

    Raises:
        JobNotDeployed: DEP-017, there are none.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    selector = f"{of_job(job)},{_ROLE}={role}"
    with asked(f"the pods of the job {job}"):
        pods = client.CoreV1Api(api).list_pod_for_all_namespaces(label_selector=selector, _request_timeout=REQUEST_LIMIT_S).items
    if not pods:
        fix = "check penstock status and penstock doctor; logs of pods that are gone are in CloudWatch: docs/stacks/observability.md"
        raise JobNotDeployed(path=f"job {job}", given=f"no pod with the role {role}", need="a pod in the cluster", fix=fix)
    return sorted(pods, key=lambda pod: str(pod.metadata.name))


def write_logs(api: client.ApiClient, pods: Sequence[Any], write: Callable[[str], object], *, follow: bool, previous: bool) -> None:
    """Writes the logs of pods: one after another, or if they are followed, as their lines come, until all of them have ended.

    Args:
        api: client of the cluster's API.
        pods: of one role; if there are several, each line begins with the name of its pod.
        write: takes a line.
        follow: whether to wait for more.
        previous: whether to write those of the containers before the ones that run.

    Raises:
        LogNotRead: DEP-022.
        ApiServerNotReached: DEP-007.
    """
    logs = [_Log(api, pod, write, named=len(pods) > 1) for pod in pods]
    if not follow or len(logs) == 1:
        for log in logs:
            log.write(follow=follow, previous=previous)
        return
    # Ended with the process: nothing but its end interrupts a request that waits.
    threads = [threading.Thread(target=log.follow, daemon=True) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        if log.failure is not None:
            raise log.failure


class _Log:
    """The log of a pod."""

    def __init__(self, api: client.ApiClient, pod: Any, write: Callable[[str], object], *, named: bool) -> None:
        self._core, self._pod, self._write = client.CoreV1Api(api), pod, write
        self._prefix = f"{pod.metadata.name}: " if named else ""
        self.failure: PenstockError | None = None

    def follow(self) -> None:
        try:
            self.write(follow=True, previous=False)
        except PenstockError as error:
            self.failure = error

    def write(self, *, follow: bool, previous: bool) -> None:
        name, namespace = self._pod.metadata.name, self._pod.metadata.namespace
        if not self._pod.spec.node_name:
            # The API server answers with an empty log.
            raise self._not_read("it has no node")
        with asked(f"the log of {name}"):
            try:
                answer = self._core.read_namespaced_pod_log(
                    name,
                    namespace,
                    container=_CONTAINERS[self._pod.metadata.labels[_ROLE]],
                    follow=follow,
                    previous=previous,
                    _preload_content=False,
                    _request_timeout=_NO_LIMIT if follow else REQUEST_LIMIT_S,
                )
            except ApiException as error:
                if error.status in (401, 403):
                    raise
                raise self._not_read(f"{error.status} {_message(error)}") from None
            for line in answer:
                self._write(f"{self._prefix}{line.decode('utf-8', 'replace')}")

    def _not_read(self, given: str) -> LogNotRead:
        return LogNotRead(
            path=f"pod {self._pod.metadata.name}",
            given=given,
            need="a container that has started, on a node that answers",
            fix="check penstock doctor, which says why a pod does not run; logs of pods that are gone are in CloudWatch",
        )


def _message(error: ApiException) -> str:
    """What the API server says, in the Status object of its answer."""
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, TypeError, KeyError):
        return str(error.reason)
