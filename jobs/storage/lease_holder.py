"""The process that holds a lease, and whether another process can tell that it is dead."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

_PROC = Path("/proc")


class LeaseHolder(BaseModel):
    """A driver's process.

    Args:
        host: its host name.
        pid: its process id.
        started: when it started, in clock ticks since the machine's start; None where there is no /proc.
        pid_namespace: in which `pid` counts.
        boot_id: of the running kernel; differs between machines and between their starts.
        pod: name of its pod; None outside of Kubernetes.
        pod_uid: uid of its pod, which no other pod ever has; of a driver outside of Kubernetes, that of its supervisor, if it has one.
        namespace: its pod's, with a checksum of the cluster's CA: the names of its pods are unique at any time.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)

    host: str
    pid: int = Field(ge=1)
    started: int | None = None
    pid_namespace: str | None = None
    boot_id: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    namespace: str | None = None

    @classmethod
    def this_process(cls, pod: str | None = None, pod_uid: str | None = None, namespace: str | None = None) -> Self:
        """The calling process.

        Args:
            pod: name of its pod.
            pod_uid: uid of its pod.
            namespace: see the class.
        """
        return cls(
            host=socket.gethostname(),
            pid=os.getpid(),
            started=_started(os.getpid()),
            pid_namespace=_pid_namespace(),
            boot_id=_boot_id(),
            pod=pod,
            pod_uid=pod_uid,
            namespace=namespace,
        )

    def seen_dead_by(self, here: LeaseHolder) -> bool:
        """Whether a process can tell that this one has ended. False if it is alive, or if there is no way to know.

        Args:
            here: the process that looks, which is the calling one.
        """
        if self.boot_id and (self.boot_id, self.pid_namespace) == (here.boot_id, here.pid_namespace):
            return not self._runs()
        # Another container of the same pod: Kubernetes starts it after the previous one has ended, and so does a supervisor.
        return self.pod_uid is not None and self.pod_uid == here.pod_uid

    def removed_for(self, here: LeaseHolder) -> bool:
        """Whether this one's pod was removed from the API, for another has its name.

        It has ended, or it is on a node that nobody hears of any more: deleted with the node or by force, it runs on without the right to
        ask for executors, and renews its lease. It can't write to the checkpoint once another driver has a greater token.

        Args:
            here: the process that looks, which is the calling one.
        """
        if self.pod is None or self.namespace is None or self.pod_uid == here.pod_uid:
            return False
        return (self.pod, self.namespace) == (here.pod, here.namespace)

    def _runs(self) -> bool:
        started = _started(self.pid)
        if started is not None:
            return started == self.started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # /proc may hide the processes of other users.
            return True
        return True

    def __str__(self) -> str:
        """For people: the pod, or the host and the process."""
        return f"pod {self.pod}" if self.pod else f"process {self.pid} on {self.host}"


def _started(pid: int) -> int | None:
    """Start of a process in clock ticks since the machine's start; 0 if it has ended unnoticed by its parent; None if /proc has none."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Source: proc_pid_stat(5), field 22; field 2, the program's name, may contain blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] == "Z" else int(fields[19])


def _boot_id() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return None
