"""Pods that listen on ports, of the jobs' image, and namespaces for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.kube.objects import Object, Objects, Refused
from tests.pods.commands import PodContainer

CONTAINER = "listening"
_LABEL = "penstock-tests"
# Listens until it is killed: the kernel accepts the connections.
_LISTEN = "import signal, socket, sys; held = [socket.create_server(('', int(port))) for port in sys.argv[1:]]; signal.pause()"


def listening(name: str, namespace: str, image: str, labels: Mapping[str, str], *ports: int) -> Object:
    """A pod that the strictest level of Pod Security accepts.

    Args:
        name: of the pod.
        namespace: of the pod.
        image: with Python, for a user that is not root.
        labels: of the pod.
        ports: that it listens on, any but those below 1024.
    """
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["python3", "-I", "-c", _LISTEN, *map(str, ports)],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"name": name, "namespace": namespace, "labels": {**labels, _LABEL: name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def ports(pod: Object) -> list[int]:
    """The ports that it listens on."""
    command = pod["spec"]["containers"][0]["command"]
    return [int(port) for port in command[command.index(_LISTEN) + 1 :]]


def source(pod: Object) -> PodContainer:
    """Its container."""
    return PodContainer(pod["metadata"]["namespace"], pod["metadata"]["name"], CONTAINER)


@contextmanager
def namespace(objects: Objects, name: str, labels: Mapping[str, str] | None = None) -> Iterator[None]:
    """A namespace while it is needed; one that the cluster has already stays."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
    try:
        objects.create(manifest)
    except Refused as refused:
        assert refused.status == 409, refused
        yield
        return
    try:
        yield
    finally:
        objects.delete(manifest)
        objects.wait_for(manifest, "", lambda all_: name not in {one["metadata"]["name"] for one in all_}, 300)


@contextmanager
def running(objects: Objects, pods: Sequence[Object]) -> Iterator[dict[str, str]]:
    """Pods while they are needed; the address of each, by its name."""
    with ExitStack() as held:
        for pod in pods:
            objects.create(pod)
            held.callback(objects.delete, pod)
        yield {pod["metadata"]["name"]: _address(objects, pod) for pod in pods}


def _address(objects: Objects, pod: Object) -> str:
    """The pod's address, once it runs."""
    (runs,) = objects.wait_for(pod, f"{_LABEL}={pod['metadata']['name']}", _run, 300)
    return str(runs["status"]["podIP"])


def _run(pods: Sequence[Any]) -> bool:
    return [one["status"]["phase"] for one in pods] == ["Running"]
