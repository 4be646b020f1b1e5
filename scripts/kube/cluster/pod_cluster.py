"""A cluster with nodes on this machine, which ends with the process that started it and leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from kubernetes import config
from kubernetes.client import CoreV1Api

from penstock.scripts.kube import binaries
from penstock.scripts.kube.binaries import Progress
from penstock.scripts.kube.cluster import dns, network, requirements
from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.kube.cluster.control_plane import API_PORT, ControlPlane
from penstock.scripts.kube.cluster.namespaces import POLL_S, Namespaces
from penstock.scripts.kube.cluster.node import Node
from penstock.scripts.kube.errors import CacheNotWritable, ClusterInUse, NodeNotReady

# Measured on 2 cores: 12 s for two nodes. Three minutes allow for a busy machine.
READY_LIMIT_S = 180


class PodCluster:
    """A running cluster.

    One runs on a machine at a time, for its addresses and cgroups are always the same. What an earlier one has left behind that was killed
    together with its supervisors is removed first.

    Args:
        folder: empty or missing folder for its data and logs, removed at the end.
        logs: existing folder to which the logs are copied at the end; None: they are removed with the rest.
        labels: labels of each node; its length is the number of nodes.
        disk_mib: size of a disk of its own for the pods of each node; None: they use this machine's.
        api_port: of the API, behind port 443 of its service.
        progress: called with a line from time to time.
    """

    def __init__(
        self,
        *,
        folder: Path,
        logs: Path | None = None,
        labels: tuple[Mapping[str, str], ...] = ({}, {}),
        disk_mib: int | None = None,
        api_port: int = API_PORT,
        progress: Progress = lambda _: None,
    ) -> None:
        self._folder = folder.absolute()
        self._logs = logs
        self._labels = labels
        self._disk_mib = disk_mib
        self._api_port = api_port
        self._progress = progress
        self._cgroups = Cgroups()
        self._held = ExitStack()
        self.nodes: list[Node] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of a cluster administrator."""
        return self.control_plane.api.kubeconfig

    @property
    def host_address(self) -> str:
        """The address at which pods reach this machine."""
        return network.HOST

    @property
    def cgroups(self) -> Cgroups:
        """Those of its processes."""
        return self._cgroups

    def start(self) -> Self:
        """Build what is not built yet, start everything, and wait until all nodes are ready.

        Raises:
            NodesUnsupported: KUBE-020.
            ClusterInUse: KUBE-021.
            AddressesTaken: KUBE-022.
            CgroupNotMade: KUBE-023.
            PenstockError: whatever fails while it is built and started, KUBE-001 to KUBE-011 and KUBE-024 to KUBE-026.
        """
        requirements.refuse_unsupported()
        for program in (*binaries.PROGRAMS, *binaries.CLUSTER_PROGRAMS):
            binaries.built(program, self._progress)
        try:
            self._held.enter_context(self._alone())
            self._remove_leftovers()
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything and remove all data; a second call does nothing."""
        self._held.close()

    def check(self) -> None:
        """Raise if a program of the cluster has exited by itself. Raises as `ControlPlane.check` and `Node.check`."""
        self.control_plane.check()
        for node in self.nodes:
            node.check()

    def import_image(self, archive: Path) -> None:
        """Give all nodes an image. Raises as `Node.import_image`."""
        for node in self.nodes:
            node.import_image(archive)

    def pull_from(self, registry: str) -> None:
        """Let all nodes pull from a registry without TLS.

        Args:
            registry: ``host:port``, as in the names of its images.
        """
        for node in self.nodes:
            node.pull_from(registry)

    def _start(self) -> None:
        network.refuse_taken_addresses()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._record.write_text(json.dumps({"folder": str(self._folder)}), encoding="utf-8")
        self._held.callback(self._remove)
        names = [f"node-{number}" for number in range(1, len(self._labels) + 1)]
        self._cgroups.create(*names)
        self._progress("cluster: starting the control plane")
        namespaces = Namespaces("control-plane", folder=self._folder, cgroups=self._cgroups)
        self._held.callback(namespaces.stop)
        namespaces.start()
        network.connect_host(namespaces)
        self.control_plane = ControlPlane(namespaces, self._subfolder("control-plane"), self._progress, self._api_port)
        self._held.callback(self.control_plane.stop)
        self.control_plane.start()
        self._progress(f"cluster: starting {' and '.join(names)}")
        for number, labels in enumerate(self._labels, 1):
            node = Node(number, self.control_plane, self._cgroups, self._subfolder(names[number - 1]), labels, self._disk_mib)
            self.nodes.append(node)
            self._held.callback(node.stop)
            node.start()
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """Wait until all nodes are ready and pods can be created, and create that of the DNS."""
        until_s = time.monotonic() + READY_LIMIT_S
        with config.new_client_from_config(config_file=str(self.kubeconfig)) as client:
            core = CoreV1Api(client)
            while (ready := _ready(core)) < {node.name for node in self.nodes} or not _have_service_accounts(core):
                self.check()
                if time.monotonic() > until_s:
                    need = f"{len(self.nodes)} ready nodes within {READY_LIMIT_S} s"
                    fix = "check the logs, and retry"
                    raise NodeNotReady(path=str(self._folder), given=f"ready: {', '.join(sorted(ready)) or 'none'}", need=need, fix=fix)
                time.sleep(POLL_S)
            dns.register(core)

    def _remove_leftovers(self) -> None:
        """End and remove what an earlier cluster has left that could not do it itself."""
        self._cgroups.remove()
        network.remove_host_link()
        if self._record.exists():
            left = json.loads(self._record.read_text("utf-8") or "{}").get("folder")
            if left:
                shutil.rmtree(left, ignore_errors=True)
            self._record.unlink()

    def _remove(self) -> None:
        self._cgroups.remove()
        network.remove_host_link()
        if self._logs is not None:
            for log in (*self._folder.glob("*.log"), *self._folder.glob("*/*.log")):
                shutil.copyfile(log, self._logs / f"{log.parent.name}-{log.name}")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._record.unlink(missing_ok=True)

    @property
    def _record(self) -> Path:
        return binaries.cache_folder() / "cluster.json"

    def _subfolder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        return folder

    def _alone(self) -> IO[str]:
        """Hold the machine's lock, which the system releases when this process ends, however it ends."""
        file = binaries.cache_folder() / "cluster.lock"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = file.open("w")
        except OSError as error:
            fix = "make it writable, or set XDG_CACHE_HOME to a writable directory"
            raise CacheNotWritable(path=str(file), given=error.strerror or "", need="a writable cache directory", fix=fix) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            fix = "wait until it has ended, or stop it"
            raise ClusterInUse(path=str(file), given="held by another process", need="one cluster at a time", fix=fix) from None
        return lock


def _have_service_accounts(core: CoreV1Api) -> bool:
    """Whether the namespaces have the service account without which no pod is created."""
    return all(core.list_namespaced_service_account(namespace).items for namespace in ("default", dns.NAMESPACE))


def _ready(core: CoreV1Api) -> set[str]:
    """Names of the nodes that are ready."""
    nodes: list[Any] = core.list_node().items
    return {
        node.metadata.name for node in nodes if any(one.type == "Ready" and one.status == "True" for one in (node.status.conditions or []))
    }
