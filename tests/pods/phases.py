"""When a job's pods were where on their start: from the Kubernetes API, the driver's log and Spark's own API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.infra.manifests.deployed_job import UI_PORT
from penstock.infra.manifests.driver_pod import CONTAINER
from tests.pods.commands import PodContainer, output
from tests.pods.pod_run import ReleasedJob

_DRIVER = "driver"
# Of the driver, as they are in its log.
_EVENTS = {
    "starting": "program runs",
    "generation": "job's lease held",
    "reading": "query reads",
    "batch": "first micro-batch written",
    "committed": "first micro-batch committed",
}
# The driver's UI, asked from within its container: policies of the network let nobody else reach it.
_ASK = f"""
import json, urllib.request

def answer(path):
    with urllib.request.urlopen("http://127.0.0.1:{UI_PORT}/api/v1/applications" + path) as said:
        return json.load(said)

(application,) = answer("")
executors = answer("/" + application["id"] + "/executors")
print(json.dumps({{"began": application["attempts"][0]["startTime"], "added": {{one["id"]: one["addTime"] for one in executors}}}}))
"""


@dataclass(frozen=True)
class Phase:
    """The end of a phase.

    Args:
        pod: driver, or executor with Spark's number.
        name: what has happened.
        at: when; of the Kubernetes API to the second.
    """

    pod: str
    name: str
    at: datetime


def phases(job: ReleasedJob) -> list[Phase]:
    """The phases of a job's start up to its first committed micro-batch, in the order in which they ended.

    Args:
        job: a job that has committed one.
    """
    found = [*_of_pod(_DRIVER, job.cluster.core.read_namespaced_pod(job.driver, job.namespace)), *_of_log(job), *_of_spark(job)]
    for pod in job.pods("executor"):
        found += _of_pod(_executor(pod.metadata.labels["spark-exec-id"]), pod)
    return sorted(found, key=lambda phase: phase.at)


def table(found: Iterable[Phase]) -> str:
    """The phases as a table in Markdown, with the seconds since the first of them in a column for each pod."""
    ordered = list(found)
    pods = sorted({phase.pod for phase in ordered})
    seconds = {(phase.name, phase.pod): f"{(phase.at - ordered[0].at).total_seconds():.1f}" for phase in ordered}
    rows = [["seconds", *pods], ["---"] * (1 + len(pods))]
    rows += [[name, *(seconds.get((name, pod), "") for pod in pods)] for name in dict.fromkeys(phase.name for phase in ordered)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _executor(number: str) -> str:
    return f"executor {number}"


def _of_pod(name: str, pod: Any) -> Iterator[Phase]:
    yield Phase(name, "pod created", pod.metadata.creation_timestamp)
    said = {condition.type: condition.last_transition_time for condition in pod.status.conditions if condition.status == "True"}
    yield Phase(name, "scheduled", said["PodScheduled"])
    (container,) = pod.status.container_statuses
    # The kubelet has the image by then.
    yield Phase(name, "container started", container.state.running.started_at)
    yield Phase(name, "ready", said["Ready"])


def _of_log(job: ReleasedJob) -> Iterator[Phase]:
    log = job.cluster.core.read_namespaced_pod_log(job.driver, job.namespace, container=CONTAINER, timestamps=True)
    missing = dict(_EVENTS)
    for line in log.splitlines():
        at, _, text = line.partition(" ")
        if text.startswith('{"event": ') and (name := missing.pop(json.loads(text)["event"], None)):
            yield Phase(_DRIVER, name, datetime.fromisoformat(at))


def _of_spark(job: ReleasedJob) -> Iterator[Phase]:
    said = output(job.cluster.kubeconfig, PodContainer(job.namespace, job.driver, CONTAINER), ["python", "-I", "-c", _ASK])
    found = json.loads(said)
    yield Phase(_DRIVER, "Spark's context began", _time(found["began"]))
    for number, at in found["added"].items():
        if number != _DRIVER:
            yield Phase(_executor(number), "registered with the driver", _time(at))


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)
