"""A run of a job in pods: what `penstock up` does with a driver on this machine, with one in a cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.jobs.local.recording import Record
from penstock.scripts.local.kafka_topics import Fed
from penstock.scripts.local.run import LocalRun
from tests.kube.charts import Release
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.pod_driver import PodDriver

# More than `progressTimeout`, after which a driver says itself that it hangs, and the start of the next one.
STALL_LIMIT_S = 900


@dataclass(frozen=True)
class ReleasedJob:
    """A job's release in the cluster, removed at the end.

    Args:
        name: of the job.
        release: as the charts have it.
        cluster: where it runs.
        helm: the helm command.
        folder: for the release's values.
    """

    name: str
    release: Release
    cluster: ClusterUnderTest
    helm: Path
    folder: Path

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return self.release.name

    @property
    def driver(self) -> str:
        """Name of the driver's pod."""
        return f"{self.name}-driver-0"

    def install(self) -> None:
        """Releases the job."""
        team_job.installed(self.helm, self.release, self.cluster.kubeconfig, self.folder)

    def upgrade(self, release: Release) -> None:
        """Releases another version of the job."""
        team_job.installed(self.helm, release, self.cluster.kubeconfig, self.folder)

    def checked(self, release: Release) -> subprocess.CompletedProcess[str]:
        """Releases another version of the job if its check passes. Helm's end."""
        return team_job.checked(self.helm, release, self.cluster.kubeconfig, self.folder)

    def tried(self, release: Release, ready_s: int) -> subprocess.CompletedProcess[str]:
        """Releases another version of the job if its check passes, and rolls back if its driver does not become ready. Helm's end."""
        return team_job.tried(self.helm, release, self.cluster.kubeconfig, self.folder, ready_s)

    def uninstall(self) -> None:
        """Removes the job and waits until its namespace is gone."""
        team_job.uninstalled(self.helm, self.release, self.cluster.kubeconfig)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.cluster.objects.wait_for(namespace, "", lambda all_: self.namespace not in {one["metadata"]["name"] for one in all_}, 300)

    def pods(self, role: str) -> list[Any]:
        """The pods of a role, ``driver`` or ``executor``."""
        pods: list[Any] = self.cluster.core.list_namespaced_pod(self.namespace, label_selector=f"spark-role={role}").items
        return pods

    def scale(self, replicas: int) -> None:
        """Sets the number of drivers, 0 or 1."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{self.name}-driver/scale"
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}}
        body["metadata"] = {"name": f"{self.name}-driver", "namespace": self.namespace}
        self.cluster.objects.replace(path, body)

    def wait_until_gone(self, role: str, limit_s: int = 300) -> None:
        """Waits until no pod of a role is there."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any", "namespace": self.namespace}}
        self.cluster.objects.wait_for(pod, f"spark-role={role}", lambda pods: not pods, limit_s)

    def wait_until_complete(self, limit_s: int = 300) -> None:
        """Waits until the Job of a bounded run has completed."""
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "any", "namespace": self.namespace}}
        self.cluster.objects.wait_for(job, "", lambda jobs: [one["status"].get("succeeded") for one in jobs] == [1], limit_s)

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.uninstall()


@dataclass
class PodRun(LocalRun):
    """A run whose driver is a pod.

    Args:
        released: the job's release.
        faults: number of committed micro-batches -> what is done to the job then, and only once.
        looks: the same -> what is looked at then.
        failures_allowed: how many failures of the driver are left to its pod, which starts it again.
        parts: in how many parts the input is written; each after the first by `feed_more`.
    """

    released: ReleasedJob | None = None
    faults: dict[int, Callable[[ReleasedJob], None]] = field(default_factory=dict)
    looks: dict[int, Callable[[ReleasedJob], None]] = field(default_factory=dict)
    failures_allowed: int = 0
    parts: int = 1
    _held_back: list[dict[str, list[Record]]] = field(default_factory=list)
    _since: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all parts of the input are written."""
        return not self._held_back

    def feed(self, records: Mapping[str, list[Record]]) -> None:
        """Writes the input, or its first part, to its topics."""
        parts = [{topic: _part(some, number, self.parts) for topic, some in records.items()} for number in range(self.parts)]
        first, *self._held_back = parts
        super().feed(first)

    def feed_more(self) -> None:
        """Writes the next part of the input."""
        before = self.fed
        self.fed = {}
        super().feed(self._held_back.pop(0))
        self.fed = {topic: _together(fed, self.fed[topic]) for topic, fed in before.items()}

    def _show(self, batch: Mapping[str, Any], committed: Mapping[str, Any], ends: Mapping[str, Mapping[str, int]]) -> None:
        super()._show(batch, committed, ends)
        if self._since is not None:
            self.steps.line("fault", f"the next micro-batch was committed {time.monotonic() - self._since:.0f} s after it")
            self._since = None
        assert self.released is not None
        if look := self.looks.pop(self.micro_batches, None):
            look(self.released)
        if fault := self.faults.pop(self.micro_batches, None):
            self.steps.line("fault", fault.__name__.replace("_", " "))
            self._since = time.monotonic()
            fault(self.released)

    def _driver(self) -> Any:
        assert self.released is not None
        return _Released(self.released, self.failures_allowed, bounded=self.bounded)


def _part(records: list[Record], number: int, parts: int) -> list[Record]:
    return records[len(records) * number // parts : len(records) * (number + 1) // parts]


def _together(fed: Fed, more: Fed) -> Fed:
    return Fed(fed.partitions, fed.records + more.records, {**fed.ends, **more.ends}, fed.flush | more.flush)


class _Released:
    """The driver while its job is released."""

    def __init__(self, job: ReleasedJob, failures_allowed: int, *, bounded: bool) -> None:
        self._held = ExitStack()
        self._job = job
        self._failures_allowed = failures_allowed
        self._bounded = bounded

    def __enter__(self) -> PodDriver:
        self._held.enter_context(self._job)
        try:
            core, namespace = self._job.cluster.core, self._job.namespace
            driver = PodDriver(core, namespace, None, bounded=self._bounded, failures_allowed=self._failures_allowed)
            return self._held.enter_context(driver)
        except BaseException:
            self._held.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()
