"""The driver of a job in its pod: its events, read from the container's log, through restarts of the container and of the pod."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from types import TracebackType
from typing import Any, Self

from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from penstock.infra.manifests.driver_pod import CONTAINER
from penstock.scripts.local.driver import reported_error
from penstock.sizing.errors import PenstockError, raise_all

_LOOK_S = 0.5
_SHOWN_LINES = 40


class PodDriver:
    """The events of a driver's pod.

    Args:
        core: the cluster's API.
        namespace: of the job.
        pod: name of the driver's pod; None: the one pod of the driver's Job.
        bounded: whether the driver ends by itself; the end of another is its pod's, which is followed by a new one.
        failures_allowed: how many failures of the driver are left to its pod, which starts it again.
    """

    def __init__(self, core: CoreV1Api, namespace: str, pod: str | None, *, bounded: bool = False, failures_allowed: int = 0) -> None:
        self._core = core
        self._namespace = namespace
        self._pod = pod
        self._bounded = bounded
        self._failures_allowed = failures_allowed
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._ended = threading.Event()
        self._read: dict[str, int] = {}
        self.failures: list[PenstockError] = []
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None if there is none within the timeout.

        Raises:
            PenstockError: the driver's failure.
        """
        try:
            event = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if event["event"] == "stopped" and not self._bounded:
            return None
        if event["event"] == "failed":
            self.failures += [reported_error(error) for error in event["errors"]]
            if len(self.failures) > self._failures_allowed:
                raise_all(self.failures)
            return None
        return event

    def kill(self) -> None:
        """The pod is its controller's."""

    @property
    def log(self) -> str:
        """For people: the end of its log, which is gone with the pod."""
        return "\n".join(["the driver's log, which ends with", *self.lines[-_SHOWN_LINES:]])

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_S):
            with contextlib.suppress(ApiException, HTTPError, OSError):
                pod = self._driver()
                container = _container(pod) if pod else None
                if pod and container:
                    self._follow_container(pod.metadata.name, container)

    def _driver(self) -> Any:
        pods = self._core.list_namespaced_pod(self._namespace, label_selector="spark-role=driver").items
        return next((pod for pod in pods if self._pod in (None, pod.metadata.name)), None)

    def _follow_container(self, pod: str, container: str) -> None:
        """Reads a container's log on from where it was read to."""
        answer = self._core.read_namespaced_pod_log(pod, self._namespace, container=CONTAINER, follow=True, _preload_content=False)
        for number, line in enumerate(answer):
            if number < self._read.get(container, 0):
                continue
            self._read[container] = number + 1
            self._take(line.decode("utf-8", "replace").rstrip("\n"))
            if self._ended.is_set():
                return

    def _take(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith('{"event": '):
            with contextlib.suppress(ValueError):
                self._queue.put(json.loads(line))


def _container(pod: Any) -> str | None:
    """The id of the driver's container, which is another one after each restart."""
    statuses = pod.status.container_statuses or []
    return next((one.container_id for one in statuses if one.name == CONTAINER and one.container_id), None)
