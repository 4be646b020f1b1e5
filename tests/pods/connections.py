"""Which connections a pod can open, tried from within its container."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kubernetes import config
from kubernetes.client import CoreV1Api
from kubernetes.stream import stream

_LIMIT_S = 120
# A packet that a policy drops has no answer. The first packet of a connection is sent again after one second and after three.
_SILENCE_S = 5
# Names are looked up in four domains. Source: resolv.conf(5).
_RESOLVER = "RES_OPTIONS=timeout:1 attempts:2"
_TRY = f"""
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def reached(target):
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), {_SILENCE_S}).close()
    except OSError:
        return False
    return True
with ThreadPoolExecutor(len(sys.argv)) as pool:
    print(*(target for target, is_so in zip(sys.argv[1:], pool.map(reached, sys.argv[1:])) if is_so))
"""


@dataclass(frozen=True)
class Source:
    """A container with Python.

    Args:
        namespace: of its pod.
        pod: name of its pod.
        container: its name.
    """

    namespace: str
    pod: str
    container: str


def reached(kubeconfig: Path, source: Source, targets: Iterable[str]) -> set[str]:
    """The targets that accept a connection of a container, of some ``host:port``."""
    command = ["env", _RESOLVER, "python3", "-I", "-c", _TRY, *targets]
    # A client of its own: a command within a container has it speak another protocol meanwhile.
    with config.new_client_from_config(config_file=str(kubeconfig)) as client:
        ask = CoreV1Api(client).connect_get_namespaced_pod_exec
        place = {"container": source.container, "command": command}
        answer = stream(ask, source.pod, source.namespace, **place, stdout=True, stderr=True, _preload_content=False)
        try:
            answer.run_forever(timeout=_LIMIT_S)
            code, said = answer.returncode, answer.read_all()
        finally:
            # `close` does nothing once the other side has said that it closes.
            answer.sock.shutdown()
    assert code == 0, said
    return set(said.split())
