"""The processes of executors, from Linux's process table: a JVM, its Python daemon, and the daemon's workers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path


def tree(pid: int) -> list[int]:
    """A process and all that it has started, itself first; empty if it has ended."""
    parents = _parents()
    found = [pid] if pid in parents else []
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Sends a signal to processes, which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill(pid: int) -> None:
    """Kills a process and all that it has started, as the end of a pod does."""
    pids = tree(pid)
    # None of them must start another in the meantime.
    send(signal.SIGSTOP, pids)
    send(signal.SIGKILL, {*pids, *tree(pid)})


def owner(port: int, peer: int, pids: Iterable[int]) -> int | None:
    """Which of some processes has the loopback connection from a port to a port; None if none of them has."""
    # Source: proc(5), /proc/net/tcp: addresses are in hexadecimal, the tenth column is the socket's inode.
    sockets = [line.split() for file in ("tcp", "tcp6") for line in Path(f"/proc/net/{file}").read_text(encoding="utf-8").splitlines()[1:]]
    inodes = {f"socket:[{words[9]}]" for words in sockets if (_port(words[1]), _port(words[2])) == (port, peer)}
    return next((pid for pid in pids if inodes & _open_files(pid)), None)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _open_files(pid: int) -> set[str]:
    links = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                links.add(str(file.readlink()))
    return links


def _parents() -> dict[int, int]:
    """Process -> its parent, without those that have ended and wait for their parent to notice."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # Source: proc(5), /proc/pid/stat: after the name, in parentheses, come the state and the parent.
            state, parent = re.split(r"\s+", (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].strip())[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    return parents
