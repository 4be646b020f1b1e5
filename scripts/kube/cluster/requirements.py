"""What a machine needs so that pods can run on it."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from penstock.scripts.kube.cluster.namespaces import environment
from penstock.scripts.kube.errors import NodesUnsupported

# Program -> Debian's package of it; others call them the same.
_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "sysctl": "procps",
    "mkfs.ext4": "e2fsprogs",
}
# Where the CNI plugins are. Source: lists of files of the packages of Debian and Fedora; upstream's archive.
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/usr/libexec/cni"), Path("/opt/cni/bin"))
_CNI_PLUGINS = ("bridge", "host-local", "loopback")


def cni_folder() -> Path | None:
    """The folder of the CNI plugins; None if there is none with all of them."""
    return next((one for one in CNI_FOLDERS if all((one / plugin).exists() for plugin in _CNI_PLUGINS)), None)


def refuse_unsupported() -> None:
    """Raise if pods can't run here.

    Raises:
        NodesUnsupported: KUBE-020, with everything that is missing.
    """
    if platform.system() != "Linux":
        raise _unsupported(platform.system(), "Linux: nodes are made of its namespaces and cgroups")
    if os.geteuid() != 0:
        raise _unsupported(f"the user id {os.geteuid()}", "root: nodes mount file systems, and create links and cgroups")
    path = environment()["PATH"]
    packages = {package for program, package in _PROGRAMS.items() if shutil.which(program, path=path) is None}
    if cni_folder() is None:
        packages.add("containernetworking-plugins")
    if packages:
        given = f"not installed: {', '.join(sorted(packages))}"
        raise _unsupported(given, "containerd, runc, the CNI plugins and iptables", f"apt-get install {' '.join(sorted(packages))}")
    if "overlay" not in Path("/proc/filesystems").read_text("ascii"):
        raise _unsupported("a kernel without overlayfs", "overlayfs, for the containers' file systems", "modprobe overlay")
    if not Path("/proc/sys/net/bridge").exists():
        raise _unsupported("a kernel without br_netfilter", "br_netfilter, for network policies", "modprobe br_netfilter")


def _unsupported(given: str, need: str, fix: str = "") -> NodesUnsupported:
    own = "set KUBECONFIG to a cluster of yours (kind, minikube, EKS)"
    return NodesUnsupported(path="nodes", given=given, need=need, fix=f"{fix}, or {own}" if fix else own)
