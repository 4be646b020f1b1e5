"""Commands that are run within a pod's container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kubernetes import config
from kubernetes.client import CoreV1Api
from kubernetes.stream import stream

_LIMIT_S = 120


@dataclass(frozen=True)
class PodContainer:
    """A container of a pod.

    Args:
        namespace: of its pod.
        pod: name of its pod.
        name: its own.
    """

    namespace: str
    pod: str
    name: str


def output(kubeconfig: Path, container: PodContainer, command: Sequence[str]) -> str:
    """The output of a command that succeeds."""
    # A client of its own: a command within a container has it speak another protocol meanwhile.
    with config.new_client_from_config(config_file=str(kubeconfig)) as client:
        ask = CoreV1Api(client).connect_get_namespaced_pod_exec
        place = {"container": container.name, "command": list(command)}
        answer = stream(ask, container.pod, container.namespace, **place, stdout=True, stderr=True, _preload_content=False)
        try:
            answer.run_forever(timeout=_LIMIT_S)
            code, said = answer.returncode, str(answer.read_all())
        finally:
            # `close` does nothing once the other side has said that it closes.
            answer.sock.shutdown()
    assert code == 0, said
    return said
