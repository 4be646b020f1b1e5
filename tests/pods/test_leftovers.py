"""What a cluster leaves behind: nothing, after an end of each kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts.kube.cluster import network
from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
from penstock.scripts.kube.cluster.requirements import refuse_unsupported
from penstock.sizing.errors import ToolMissing
from tests.kube.evidence import wait_for

_PROGRAM = """
import sys, time
from pathlib import Path
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
with PodCluster(folder=Path(sys.argv[1]), labels=({},)):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _runs_pods() -> None:
    try:
        refuse_unsupported()
    except ToolMissing as error:
        pytest.skip(error.render())


def leftovers(folder: Path) -> list[str]:
    """What is still there of a cluster."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, timeout=60, check=True).stdout
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    found = [f"process {pid}" for pid in Cgroups().processes()]
    found += [f"mount {mount}" for mount in mounts if mount.startswith(str(folder))]
    found += [network.HOST_LINK] if network.HOST_LINK in links else []
    return found + ([str(folder)] if folder.exists() else [])


@pytest.mark.parametrize("disk_mib", [None, 1024], ids=["the machine's disk", "a disk of its own"])
def test_a_cluster_that_is_stopped_leaves_nothing(tmp_path: Path, disk_mib: int | None) -> None:
    folder = tmp_path / "cluster"
    with PodCluster(folder=folder, labels=({},), disk_mib=disk_mib) as cluster:
        assert leftovers(folder)
        size_mib = int(cluster.nodes[0].namespaces.run("stat", "--file-system", "--format=%b", "/var/lib/kubelet")) * 4096 / 2**20
        assert (size_mib < 1024) == (disk_mib is not None)
    assert leftovers(folder) == []
    assert not any(str(folder) in image.read_text() for image in Path("/sys/block").glob("loop*/loop/backing_file"))
    assert not any(Path("/sys/fs/cgroup").glob("**/penstock-nodes"))


def test_what_a_killed_process_leaves_is_gone_with_the_next_cluster(tmp_path: Path) -> None:
    folder, second = tmp_path / "cluster", tmp_path / "second"
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    # Its supervisors too, which would clean up at once.
    for pid in [*supervisors(process.pid), process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with PodCluster(folder=second, labels=({},)):
        assert not folder.exists()
    wait_for(lambda: leftovers(second) == [])
    assert leftovers(folder) == []


def supervisors(pid: int) -> list[int]:
    """The children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
