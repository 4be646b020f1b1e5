"""CPU time and memory of a process with all that it has started. Linux only."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from pathlib import Path
from typing import Self

_TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
_MEMORY_EVERY_S = 1.0
# Fields of /proc/PID/stat after the name, which may contain anything. Source: proc(5).
_PARENT, _CPU = 1, slice(11, 15)


class ProcessTree:
    """A process and its descendants, watched until the end of the context.

    Args:
        pid: of the first process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch_memory, daemon=True)
        self.peak_mib = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """CPU seconds so far: of all live processes and, as the kernel adds them to a parent that has waited for them, of ended ones."""
        return sum(sum(map(int, fields[_CPU])) for fields in self._stats().values()) * _TICKS_S

    def _stats(self) -> dict[int, list[str]]:
        """Process id -> its fields, for each process of the tree."""
        stats = dict(filter(None, map(_stat, Path("/proc").glob("[0-9]*"))))
        children = defaultdict(list)
        for pid, fields in stats.items():
            children[int(fields[_PARENT])].append(pid)
        tree: dict[int, list[str]] = {}
        todo = [self._pid]
        while todo:
            pid = todo.pop()
            if pid in stats:
                tree[pid] = stats[pid]
                todo += children[pid]
        return tree

    def _watch_memory(self) -> None:
        while not self._ended.wait(_MEMORY_EVERY_S):
            self.peak_mib = max(self.peak_mib, sum(map(_own_mib, self._stats())))


def _stat(folder: Path) -> tuple[int, list[str]] | None:
    try:
        return int(folder.name), (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _own_mib(pid: int) -> float:
    """Resident memory, with what several processes share divided among them."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
