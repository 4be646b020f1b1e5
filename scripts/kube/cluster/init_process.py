"""The first process of a node's namespaces: it mounts what the node has of its own, and reaps processes that have lost their parent.

Run by ``python -I -S``, so it imports nothing of Penstock: ``init_process.py READY TMPFS... -- SOURCE TARGET...``, with the file that it
creates when all is mounted, folders that become empty, and pairs of folders of which the first is mounted at the second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Mount, say so, and reap until SIGTERM; when this process ends, the kernel kills all others of its namespace."""
    ready, *rest = sys.argv[1:]
    at = rest.index("--")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _mount("-t", "proc", "proc", "/proc")
    for folder in rest[:at]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "tmpfs", folder)
    pairs = rest[at + 1 :]
    for source, target in zip(pairs[::2], pairs[1::2], strict=True):
        for one in (source, target):
            Path(one).mkdir(parents=True, exist_ok=True)
        _mount("--bind", source, target)
    # Volumes that the kubelet mounts must reach the containers' mount namespaces, and only these.
    _mount("--make-rshared", "/")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    Path(ready).touch()
    while signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) != signal.SIGTERM:
        _reap()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
