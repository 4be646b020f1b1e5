"""Namespaces of the kernel: processes, mounts, network and host name apart from the machine's, for the control plane and for each node.

All processes of one `Namespaces` end when its first process ends, and with the last of them its mounts, interfaces, routes and firewall
rules are gone: that is the kernel's doing, so it holds after a ``kill -9`` too. Source: pid_namespaces(7), mount_namespaces(7),
network_namespaces(7).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.kube.errors import NodeCommandFailed
from penstock.scripts.process.supervised import SupervisedProcess

INIT = Path(__file__).with_name("init_process.py")
# Measured on 2 cores: a tenth of a second. A minute allows for a busy machine.
START_LIMIT_S = 60
COMMAND_LIMIT_S = 300
POLL_S = 0.05
# Programs of the kubelet's and of containerd's lie here; PATH of a user may lack them.
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Namespaces:
    """One group of namespaces.

    Args:
        name: in messages and in the names of files.
        folder: existing folder for its log, and for what it mounts.
        cgroups: of all processes of the cluster, which this one's join.
        empty: folders that are empty in it, in memory.
        mounts: folder below `folder` -> where it is mounted in it.
    """

    def __init__(
        self, name: str, *, folder: Path, cgroups: Cgroups, empty: Sequence[str] = (), mounts: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.name = name
        self._folder = folder.absolute()
        self._cgroups = cgroups
        self._empty = empty
        self._mounts = mounts
        self._first: SupervisedProcess | None = None
        self._pid = 0

    @property
    def pid(self) -> int:
        """Process id of the first process, as this machine sees it."""
        return self._pid

    @property
    def root(self) -> Path:
        """Their root folder, as this machine sees it."""
        return Path(f"/proc/{self._pid}/root")

    @property
    def within(self) -> tuple[str, ...]:
        """The command that runs another one in these namespaces."""
        return ("nsenter", f"--target={self._pid}", "--net", "--mount", "--pid", "--uts", "--")

    def start(self) -> None:
        """Start the first process, and wait until everything is mounted.

        Raises:
            NodeCommandFailed: KUBE-024.
        """
        ready = self._folder / f"{self.name}.ready"
        pairs = [text for source, target in self._mounts for text in (str(self._folder / source), target)]
        command = [
            *self._cgroups.joined,
            *("unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--kill-child", "--propagation=private", "--"),
            *(sys.executable, "-I", "-S", str(INIT), str(ready), *self._empty, "--", *pairs),
        ]
        self._first = SupervisedProcess(command, env=environment(), log=self._folder / f"{self.name}.log", grace_s=2).start()
        until_s = time.monotonic() + START_LIMIT_S
        while not ready.exists():
            if not self._first.alive() or time.monotonic() > until_s:
                raise self._failed("namespaces", self._first.tail())
            time.sleep(POLL_S)
        self._pid = _child(self._first.pid)

    def stop(self) -> None:
        """End all processes; a second call does nothing."""
        if self._first is not None:
            self._first.stop()

    def alive(self) -> bool:
        """Whether the first process is there."""
        return self._first is not None and self._first.alive()

    def run(self, *command: str | Path, limit_s: float = COMMAND_LIMIT_S) -> str:
        """Run a command to its end.

        Returns:
            Its standard output.

        Raises:
            NodeCommandFailed: KUBE-024.
        """
        words = [str(word) for word in command]
        try:
            done = subprocess.run([*self.within, *words], env=environment(), capture_output=True, text=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            raise self._failed(" ".join(words), f"no end within {limit_s:g} s") from None
        if done.returncode != 0:
            raise self._failed(" ".join(words), (done.stdout + done.stderr).strip()[-800:])
        return done.stdout

    def process(self, log: Path, *command: str | Path) -> SupervisedProcess:
        """Start a program that runs until it is stopped, or until these namespaces end."""
        return SupervisedProcess([*self.within, *command], env=environment(), log=log, grace_s=5).start()

    def _failed(self, what: str, given: str) -> NodeCommandFailed:
        fix = f"check what the message names, and retry; logs are in {self._folder}"
        return NodeCommandFailed(path=f"{self.name}: {what}", given=given, need="a command that succeeds", fix=fix)


def environment() -> dict[str, str]:
    """The environment of the cluster's programs: the user's kubeconfig and proxies must not affect them."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}"}


def _child(pid: int) -> int:
    """The one child of a process, which is the first process of the new namespaces."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0])
