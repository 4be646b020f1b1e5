"""A control group with a limit of memory, as the kubelet makes one for a container, and what the kernel counts in it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

MIB = 1024 * 1024
_MOUNT = Path("/sys/fs/cgroup")
_V1 = _MOUNT / "memory"
_END_S, _POLL_S = 30.0, 0.1


@dataclass(frozen=True)
class Usage:
    """What a group holds, in MiB.

    Args:
        rss_mib: anonymous memory.
        working_set_mib: as the kubelet counts it: all that is charged, with the page cache, but what the kernel has found inactive.
    """

    rss_mib: float
    working_set_mib: float


class ControlGroups:
    """A folder of groups; a context manager that removes them, when their processes have ended. Needs root. Linux only.

    Args:
        name: of the folder, of its own.
    """

    def __init__(self, name: str) -> None:
        self.is_v1 = _V1.is_dir()
        self.folder = (_V1 if self.is_v1 else _MOUNT) / name
        self.groups: dict[str, ControlGroup] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir()
        if not self.is_v1:
            for folder in (_MOUNT, self.folder):
                (folder / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for group in self.groups.values():
            _remove(group.folder)
        _remove(self.folder)

    def add(self, name: str, limit_mib: int) -> ControlGroup:
        """A new group.

        Args:
            name: of the group.
            limit_mib: beyond which the kernel kills.
        """
        group = ControlGroup(self.folder / name, is_v1=self.is_v1)
        group.folder.mkdir()
        (group.folder / ("memory.limit_in_bytes" if self.is_v1 else "memory.max")).write_text(str(limit_mib * MIB), encoding="ascii")
        self.groups[name] = group
        return group


class ControlGroup:
    """One group.

    Args:
        folder: of the kernel.
        is_v1: the version of control groups.
    """

    def __init__(self, folder: Path, *, is_v1: bool) -> None:
        self.folder = folder
        self._is_v1 = is_v1

    @property
    def processes_file(self) -> Path:
        """A process that writes its id there is in the group, with what it starts."""
        return self.folder / "cgroup.procs"

    def processes(self) -> list[int]:
        """The ids of its processes."""
        return [int(line) for line in self.processes_file.read_text(encoding="ascii").split()]

    def usage(self) -> Usage:
        """What it holds now.

        Source: cAdvisor's setMemoryStats: usage less total_inactive_file, or inactive_file; RSS is total_rss, or anon.
        """
        stat = _numbers(self.folder / "memory.stat")
        used = int((self.folder / ("memory.usage_in_bytes" if self._is_v1 else "memory.current")).read_text(encoding="ascii"))
        rss, inactive = ("total_rss", "total_inactive_file") if self._is_v1 else ("anon", "inactive_file")
        return Usage(rss_mib=stat[rss] / MIB, working_set_mib=max(0, used - stat[inactive]) / MIB)

    def kills(self) -> int:
        """How many processes the kernel has killed for the limit."""
        return _numbers(self.folder / ("memory.oom_control" if self._is_v1 else "memory.events"))["oom_kill"]


def _numbers(file: Path) -> dict[str, int]:
    lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
    return {name: int(number) for name, number in lines}


def _remove(folder: Path) -> None:
    """Python workers end when they notice that their executor has."""
    until_s = time.monotonic() + _END_S
    while folder.exists():
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        if time.monotonic() > until_s:
            raise TimeoutError(f"{folder} still has processes: {(folder / 'cgroup.procs').read_text(encoding='ascii').split()}")
        time.sleep(_POLL_S)
