"""The programs of one part of a cluster, the control plane or a node."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.scripts.kube.cluster.namespaces import Namespaces
from penstock.scripts.kube.errors import ComponentDied
from penstock.scripts.process.supervised import SupervisedProcess


@dataclass(frozen=True)
class Programs:
    """Programs that run until they are stopped.

    Args:
        namespaces: where they run.
        folder: existing folder for their logs.
    """

    namespaces: Namespaces
    folder: Path
    _running: dict[str, SupervisedProcess] = field(default_factory=dict)

    def start(self, program: Path, *flags: str) -> None:
        """Start a program; its log is ``<name>.log``."""
        self._running[program.name] = self.namespaces.process(self.folder / f"{program.name}.log", program, *flags)

    def check(self) -> None:
        """Raise if one of them has exited by itself.

        Raises:
            ComponentDied: KUBE-025.
        """
        for name, program in self._running.items():
            if not program.alive():
                given = f"exited with code {program.returncode}; the end of its log, {program.log}:\n{program.tail()}"
                where = f"{self.namespaces.name}: {name}"
                raise ComponentDied(path=where, given=given, need="a program that runs", fix="check the log, and retry")

    def stop_one(self, name: str) -> None:
        """Stop one of them, which is not missed any more."""
        self._running.pop(name).stop()

    def stop(self) -> None:
        """Stop all of them, and their namespaces; a second call does nothing."""
        for program in self._running.values():
            program.stop()
        self.namespaces.stop()

    def tail(self, name: str) -> str:
        """The end of a program's log."""
        return self._running[name].tail()
