"""Which connections a pod can open, tried from within its container."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.pods.commands import PodContainer, output

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


def reached(kubeconfig: Path, source: PodContainer, targets: Iterable[str]) -> set[str]:
    """The targets that accept a connection of a container with Python, of some ``host:port``."""
    return set(output(kubeconfig, source, ["env", _RESOLVER, "python3", "-I", "-c", _TRY, *targets]).split())
