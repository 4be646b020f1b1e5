"""The cgroups of a cluster on this machine: one tree for its processes, with a folder for each node, in version 1 or 2 of cgroups.

Every process that the cluster starts is in this tree, so what a killed run has left behind is found in it and ended.
Source: cgroups(7); the kubelet's documentation of ``cgroupRoot``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from penstock.scripts.kube.errors import CgroupNotMade

MOUNT = Path("/sys/fs/cgroup")
# Name of the tree, in each hierarchy.
ROOT = "penstock-nodes"
# Where processes are that belong to no pod.
_SYSTEM = "system"
# Those of a node in version 2.
_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")
# A killed process is gone at once; one that waits for a disk takes longer.
_END_LIMIT_S = 30
_POLL_S = 0.05


class Cgroups:
    """The tree of one cluster.

    Args:
        mount: where the hierarchies are mounted.
    """

    def __init__(self, mount: Path = MOUNT) -> None:
        self._mount = mount

    @property
    def unified(self) -> bool:
        """Whether this machine has version 2, one hierarchy for all controllers."""
        return (self._mount / "cgroup.controllers").exists()

    @property
    def joined(self) -> tuple[str, ...]:
        """The command that runs another one within the tree; one hierarchy of version 1 is enough to find it again."""
        procs = self._trees()[-1] / _SYSTEM / "cgroup.procs"
        return ("sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh")

    def create(self, *nodes: str) -> None:
        """Create the tree with a folder for each node.

        Raises:
            CgroupNotMade: KUBE-023.
        """
        for tree in self._trees():
            try:
                for folder in (tree, tree / _SYSTEM, *(tree / node for node in nodes)):
                    folder.mkdir(exist_ok=True)
                    _fill(folder)
                if self.unified:
                    for folder in (self._mount, tree, *(tree / node for node in nodes)):
                        _delegate(folder)
            except OSError as error:
                fix = "run as root on a machine that lets root create cgroups: a container needs them mounted writable"
                raise CgroupNotMade(path=str(tree), given=str(error), need="a cgroup for each node", fix=fix) from None

    def path(self, node: str) -> str:
        """The kubelet's ``cgroupRoot``."""
        return f"/{ROOT}/{node}"

    def processes(self) -> list[int]:
        """Ids of all processes in the tree."""
        found: set[int] = set()
        for tree in self._trees():
            for procs in sorted(tree.rglob("cgroup.procs")):
                with contextlib.suppress(OSError):
                    found.update(int(line) for line in procs.read_text("ascii").split())
        return sorted(found)

    def memory(self, node: str) -> Path:
        """The folder of a node in the hierarchy of memory."""
        return self._mount / ROOT / node if self.unified else self._mount / "memory" / ROOT / node

    def remove(self) -> None:
        """End what is still in the tree, and remove it.

        Raises:
            CgroupNotMade: KUBE-023, a process did not end.
        """
        until_s = time.monotonic() + _END_LIMIT_S
        while pids := [pid for pid in self.processes() if pid != os.getpid()]:
            if time.monotonic() > until_s:
                given = f"processes {pids} do not end"
                raise CgroupNotMade(path=ROOT, given=given, need="no process of an earlier cluster", fix="restart this machine")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)
        for tree in self._trees():
            for folder in sorted((one for one in tree.rglob("*") if one.is_dir()), reverse=True):
                folder.rmdir()
            with contextlib.suppress(FileNotFoundError):
                tree.rmdir()

    def _trees(self) -> list[Path]:
        """The tree's folder in each hierarchy."""
        if self.unified:
            return [self._mount / ROOT]
        # ``cpu,cpuacct`` is mounted once and linked under both names.
        hierarchies = {one.resolve() for one in self._mount.iterdir() if (one / "cgroup.procs").exists()}
        return [one / ROOT for one in sorted(hierarchies)]


def _fill(folder: Path) -> None:
    """A cpuset of version 1 accepts no process before it has processors and memory nodes."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists() and (folder.parent / name).exists() and not (folder / name).read_text("ascii").strip():
            (folder / name).write_text((folder.parent / name).read_text("ascii"), encoding="ascii")


def _delegate(folder: Path) -> None:
    """Version 2: the folder's children get all controllers that it has."""
    there = (folder / "cgroup.controllers").read_text("ascii").split()
    wanted = " ".join(f"+{one}" for one in _CONTROLLERS if one in there)
    (folder / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
