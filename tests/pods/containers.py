"""The processes of a pod's container on the tests' own nodes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.pods.pod_run import ReleasedJob


def control_group(job: ReleasedJob, pod: str) -> Path:
    """The memory's control group of a pod's container."""
    (container,) = job.cluster.core.read_namespaced_pod(pod, job.namespace).status.container_statuses
    name = container.container_id.rpartition("/")[2]
    return next(job.cluster.tree(job.cluster.node_of(job.namespace, pod)).rglob(name))


def processes(group: Path, program: bytes) -> list[int]:
    """The processes of a control group whose command line names a program."""
    found = []
    for pid in map(int, (group / "cgroup.procs").read_text("ascii").split()):
        # One that has ended meanwhile has no file, or an empty one until its parent has taken notice.
        with contextlib.suppress(OSError):
            found += [pid] if program in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def programs(group: Path) -> list[str]:
    """The command lines of a control group's processes, for messages."""
    pids = (group / "cgroup.procs").read_text("ascii").split()
    return [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:120].decode("utf-8", "replace") for pid in pids]
