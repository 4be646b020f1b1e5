"""A node: containerd, kubelet, kube-proxy and network policies in namespaces and a cgroup of their own."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.scripts.kube import binaries
from penstock.scripts.kube.cluster import network, network_policies, requirements, sandbox_image
from penstock.scripts.kube.cluster.cgroups import Cgroups
from penstock.scripts.kube.cluster.control_plane import CLUSTER_DOMAIN, ControlPlane
from penstock.scripts.kube.cluster.namespaces import POLL_S, Namespaces
from penstock.scripts.kube.cluster.programs import Programs
from penstock.scripts.kube.errors import NodeCommandFailed, NodeNotReady

# Measured on 2 cores: containerd answers after some 0.3 s. A minute allows for a busy machine.
START_LIMIT_S = 60
# An image of a gigabyte is unpacked in some 15 s.
IMPORT_LIMIT_S = 600
# Folder of the node's data -> where its programs look for it. A disk of its own holds what pods write, and not the images: the kubelet
# would remove those to make room, and nothing here pulls them again. Source: Kubernetes, "Node-pressure Eviction", nodefs and imagefs.
_OF_PODS = (("kubelet", "/var/lib/kubelet"), ("logs", "/var/log"))
_OF_CONTAINERD = (("containerd", "/var/lib/containerd"),)
# Its disk, if it has one of its own, is mounted here; and what fills it.
_DISK, _FILLING = "disk", "filling"
_BLOCK_BYTES = 4096
_SOCKET = "/run/containerd/containerd.sock"
# Folder of its data with the registries that it pulls from, and the file of one of them. Source: containerd's documentation, "Registry
# Configuration".
_REGISTRIES = "registries"
_HOST = """\
server = "{url}"

[host."{url}"]
capabilities = ["pull", "resolve"]
"""
# Source: containerd's documentation of its CRI plugin, "CRI Plugin Config Guide". A process without CAP_SYS_RESOURCE can't lower the score
# by which the kernel chooses what to kill, so a container's is not lower than containerd's.
_CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{sandbox}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{registries}"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{configuration}"
"""


@dataclass
class Node:
    """A node of the cluster.

    Args:
        number: from 1; its name is ``node-<number>``.
        control_plane: the cluster's, started.
        cgroups: the cluster's.
        folder: existing folder for its data and logs.
        labels: of the node.
        disk_mib: size of a disk of its own, for its pods' volumes and logs; None: this machine's.
    """

    number: int
    control_plane: ControlPlane
    cgroups: Cgroups
    folder: Path
    labels: Mapping[str, str] = field(default_factory=dict)
    disk_mib: int | None = None

    def __post_init__(self) -> None:
        # A disk of its own is mounted later.
        mounts = [(f"data/{source}", target) for source, target in (*_OF_CONTAINERD, *(_OF_PODS if self.disk_mib is None else ()))]
        self.namespaces = Namespaces(self.name, folder=self.folder, cgroups=self.cgroups, empty=("/run",), mounts=mounts)
        self._programs = Programs(self.namespaces, self.folder)

    @property
    def name(self) -> str:
        """Its name in the API."""
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """Its address."""
        return network.node_address(self.number)

    def start(self) -> None:
        """Start everything; the API knows the node a few seconds later.

        Raises:
            NodeCommandFailed: KUBE-024.
            ComponentDied: KUBE-025.
            NodeNotReady: KUBE-026.
        """
        self.namespaces.start()
        network.connect_node(self.control_plane.namespaces, self.namespaces, self.number)
        if self.disk_mib is not None:
            self._mount_disk(self.disk_mib)
        self._start_containerd()
        pause = sandbox_image.write_archive(binaries.built(binaries.PAUSE), self.folder / "pause.tar")
        self.import_image(pause)
        self._enforce_network_policies()
        self.start_kubelet()
        self._start_proxy()

    def stop(self) -> None:
        """End all of its processes, containers among them; a second call does nothing."""
        self._programs.stop()

    def check(self) -> None:
        """Raise if one of its programs has exited by itself.

        Raises:
            ComponentDied: KUBE-025.
        """
        self._programs.check()

    def import_image(self, archive: Path) -> None:
        """Give the node an image, so that it need not be pulled.

        Args:
            archive: an archive of OCI or of Docker.

        Raises:
            NodeCommandFailed: KUBE-024.
        """
        self.ctr("images", "import", str(archive), limit_s=IMPORT_LIMIT_S)

    def pull_from(self, registry: str) -> None:
        """Let the node pull from a registry without TLS; containerd looks for it at each pull.

        Args:
            registry: ``host:port``.
        """
        folder = self.folder / _REGISTRIES / registry
        folder.mkdir(parents=True)
        (folder / "hosts.toml").write_text(_HOST.format(url=f"http://{registry}"), encoding="utf-8")

    def ctr(self, *arguments: str, limit_s: float = START_LIMIT_S) -> str:
        """Run containerd's command line on the containers and images of Kubernetes. Raises as `import_image`."""
        return self.namespaces.run("ctr", "--namespace=k8s.io", *arguments, limit_s=limit_s)

    def disconnect(self) -> None:
        """Unplug the node: nothing reaches it or is reached by it any more."""
        self.control_plane.namespaces.run("ip", "link", "set", self.name, "down")

    def connect(self) -> None:
        """Plug it in again."""
        self.control_plane.namespaces.run("ip", "link", "set", self.name, "up")

    def fill_disk(self, left_mib: int = 0) -> None:
        """Fill its own disk from elsewhere than a pod; a second call fills it further.

        Args:
            left_mib: space that is left.

        Raises:
            OSError: it can't be filled.
        """
        disk = self._disk
        piece = 2**30
        with (disk / _FILLING).open("ab") as file:
            while (free := _free_bytes(disk) - left_mib * 2**20) >= _BLOCK_BYTES and piece >= _BLOCK_BYTES:
                piece = min(piece, free // _BLOCK_BYTES * _BLOCK_BYTES)
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, piece)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    # The file system needs blocks for its own records.
                    piece //= 2

    def free_disk(self) -> None:
        """Remove what fills its disk; without it nothing is done."""
        (self._disk / _FILLING).unlink(missing_ok=True)

    def volume(self, uid: str, name: str) -> Path:
        """A pod's emptyDir volume, as this machine sees it.

        Args:
            uid: of the pod.
            name: of the volume.
        """
        return self.namespaces.root / f"var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/{name}"

    def start_kubelet(self, *, evicts: bool = True) -> None:
        """Start the kubelet, which registers the node.

        Args:
            evicts: whether it evicts pods when the node's own disk is full; otherwise writing fails.
        """
        user = f"system:node:{self.name}"
        kubeconfig = self.control_plane.api.write_kubeconfig(self.folder / "kubelet.kubeconfig", user, ["system:nodes"])
        configuration = self.folder / "kubelet.json"
        configuration.write_text(json.dumps(self._kubelet(evicts=evicts), indent=2), encoding="utf-8")
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        self._programs.start(
            binaries.built(binaries.KUBELET),
            f"--config={configuration}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            *([f"--node-labels={labels}"] if labels else []),
        )

    @contextmanager
    def without_evictions(self) -> Iterator[None]:
        """The node with a kubelet that evicts no pods for its own disk; its containers run on."""
        self.stop_kubelet()
        self.start_kubelet(evicts=False)
        try:
            yield
        finally:
            self.stop_kubelet()
            self.start_kubelet()

    def stop_kubelet(self) -> None:
        """Stop the kubelet: the node's containers run on, and nobody reports or ends them."""
        self._programs.stop_one("kubelet")

    @property
    def _disk(self) -> Path:
        return self.namespaces.root / str((self.folder / _DISK).absolute()).lstrip("/")

    def _mount_disk(self, size_mib: int) -> None:
        """A file as a disk. The kernel frees its loop device with the last mount of it."""
        image, disk = self.folder / "disk.ext4", self.folder / _DISK
        disk.mkdir()
        with image.open("wb") as file:
            file.truncate(size_mib * 2**20)
        self.namespaces.run("mkfs.ext4", "-q", "-m", "0", str(image))
        self.namespaces.run("mount", "-o", "loop", str(image), str(disk))
        for source, target in _OF_PODS:
            self.namespaces.run("mkdir", "-p", str(disk / source), target)
            self.namespaces.run("mount", "--bind", str(disk / source), target)

    def _start_containerd(self) -> None:
        cni = self.folder / "cni"
        cni.mkdir(exist_ok=True)
        registries = self.folder / _REGISTRIES
        registries.mkdir(exist_ok=True)
        (cni / "10-pods.conflist").write_text(network.cni_configuration(self.number), encoding="utf-8")
        configuration = self.folder / "containerd.toml"
        text = _CONTAINERD.format(
            socket=_SOCKET,
            sandbox=sandbox_image.IMAGE,
            plugins=requirements.cni_folder(),
            configuration=cni.absolute(),
            registries=registries.absolute(),
        )
        configuration.write_text(text, encoding="utf-8")
        self._programs.start(Path("containerd"), "--config", str(configuration))
        until_s = time.monotonic() + START_LIMIT_S
        while not self._answers():
            self.check()
            if time.monotonic() > until_s:
                given = self._programs.tail("containerd")
                need = f"an answer of containerd within {START_LIMIT_S} s"
                raise NodeNotReady(path=self.name, given=given, need=need, fix=f"check the logs in {self.folder}, and retry")
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        try:
            # The list of images needs the plugin of Kubernetes' interface, which is loaded last.
            self.ctr("images", "list", "--quiet")
        except NodeCommandFailed:
            return False
        return True

    def _enforce_network_policies(self) -> None:
        # Kubernetes' built-in group of cluster administrators.
        groups = ["system:masters"]
        kubeconfig = self.control_plane.api.write_kubeconfig(self.folder / "network-policies.kubeconfig", "network-policies", groups)
        network_policies.enforce(self.namespaces, self._programs, kubeconfig, self.name)

    def _start_proxy(self) -> None:
        kubeconfig = self.control_plane.api.write_kubeconfig(self.folder / "kube-proxy.kubeconfig", "system:kube-proxy", [])
        # Settings of the kernel's connection tracking are the whole machine's.
        untouched = {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
        configuration = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "clusterCIDR": str(network.PODS),
            "hostnameOverride": self.name,
            "conntrack": untouched,
        }
        file = self.folder / "kube-proxy.json"
        file.write_text(json.dumps(configuration, indent=2), encoding="utf-8")
        self._programs.start(binaries.built(binaries.KUBE_PROXY), f"--config={file}")

    def _kubelet(self, *, evicts: bool) -> dict[str, Any]:
        """The kubelet's configuration. Source: Kubernetes' reference, "Kubelet Configuration (v1beta1)"."""
        # Otherwise the disk's and the memory's state of the whole machine would evict pods.
        nodefs = "0%" if not evicts else "5%" if self.disk_mib else "1%"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.control_plane.api.authority.certificate)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroups.path(self.name),
            "clusterDNS": [network.CONTROL_PLANE],
            "clusterDomain": CLUSTER_DOMAIN,
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": nodefs},
            # Not five minutes, so that a node whose disk has room again takes pods; and volumes are measured more often than once a minute.
            "evictionPressureTransitionPeriod": "10s",
            "volumeStatsAggPeriod": "10s",
            # 100 removes no images.
            "imageGCHighThresholdPercent": 100,
            "failCgroupV1": False,
            "failSwapOn": False,
            "resolvConf": "/dev/null",
            "rotateCertificates": False,
        }


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
