"""The programs of the Kubernetes tests, built from Go modules and kept in the user's cache folder.

``modules/go.mod`` names the modules, ``modules/go.sum`` pins all of them by hash; ``node_programs/`` is another such module, with sources,
and ``registry/`` is one for a registry of images.
Built programs are in ``$XDG_CACHE_HOME/penstock/kube/<hash>/`` (``~/.cache`` by default), with the hash of these files, of Go's version and
of the build flags: another version of any of these is built next to the old one. A program is moved there by an atomic rename, so that an
interrupted build is simply run again; Go's build cache keeps what was compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock.scripts.kube.errors import BuildTooLong, CacheNotWritable, GoMissing, GoUnfit, ModulesNotFetched, NotBuilt
from penstock.scripts.process.supervised import SupervisedProcess

MODULE = Path(__file__).with_name("modules")
# CoreDNS needs other versions of Kubernetes' libraries than Kubernetes itself.
NODE_MODULE = Path(__file__).with_name("node_programs")
REGISTRY_MODULE = Path(__file__).with_name("registry")
# As in go.mod: the EKS version that environments name, and the version of Helm in its Terraform provider.
KUBERNETES = "v1.35.4"
HELM_VERSION = "v3.19.5"

# Measured on 2 shared cores: kube-apiserver takes some minutes, the others about one. Half an hour allows for a busy machine.
BUILD_LIMIT_S = 1800
# 150 MB of source, also over a slow network.
FETCH_LIMIT_S = 900
_VERSION_LIMIT_S = 120
POLL_S = 0.2
# Interval of progress lines.
REPORT_EVERY_S = 10.0

# Two packages at a time: each one more takes another GiB of memory.
_FLAGS = ("-trimpath", "-buildvcs=false", "-p=2")
# Without symbols, kube-apiserver is a third smaller.
_STRIPPED = "-s -w"
_SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Program:
    """A program and its source.

    Args:
        name: name of the program's file.
        package: Go package that it is built from.
        module: folder whose go.mod and go.sum pin it.
        said: values of Go variables, by which the program reports its version.
    """

    name: str
    package: str
    module: Path = MODULE
    said: Mapping[str, str] = field(default_factory=dict)


_MAJOR, _MINOR, _ = KUBERNETES.lstrip("v").split(".")
# Source: the Makefiles of Kubernetes and of Helm set these variables.
_KUBERNETES_SAYS = {
    "k8s.io/component-base/version.gitVersion": KUBERNETES,
    "k8s.io/component-base/version.gitMajor": _MAJOR,
    "k8s.io/component-base/version.gitMinor": _MINOR,
}


def _of_kubernetes(name: str) -> Program:
    return Program(name, f"k8s.io/kubernetes/cmd/{name}", said=_KUBERNETES_SAYS)


ETCD = Program("etcd", "go.etcd.io/etcd/server/v3")
API_SERVER = _of_kubernetes("kube-apiserver")
HELM = Program(
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    said={
        "helm.sh/helm/v3/internal/version.version": HELM_VERSION,
        # `helm template` compares a chart's kubeVersion with it.
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": _MAJOR,
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": _MINOR,
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": _MAJOR,
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": _MINOR,
    },
)
# In build order: later programs reuse what earlier ones have compiled.
PROGRAMS = (ETCD, API_SERVER, HELM)
CONTROLLER_MANAGER = _of_kubernetes("kube-controller-manager")
SCHEDULER = _of_kubernetes("kube-scheduler")
KUBELET = _of_kubernetes("kubelet")
KUBE_PROXY = _of_kubernetes("kube-proxy")
COREDNS = Program("coredns", "penstock-nodes/coredns", NODE_MODULE)
PAUSE = Program("pause", "penstock-nodes/pause", NODE_MODULE)
NETWORK_POLICIES = Program("network-policies", "penstock-nodes/network-policies", NODE_MODULE)
# What a cluster with nodes has in addition.
CLUSTER_PROGRAMS = (CONTROLLER_MANAGER, SCHEDULER, KUBELET, KUBE_PROXY, COREDNS, PAUSE, NETWORK_POLICIES)

CRANE = Program("crane", "github.com/google/go-containerregistry/cmd/crane", REGISTRY_MODULE)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Cache folder of the programs, outside of the checkout and shared by all checkouts of a user."""
    # Source: XDG Base Directory Specification: a relative path is ignored.
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "penstock" / "kube"


def built(program: Program, progress: Progress = lambda _: None, *, limit_s: float = BUILD_LIMIT_S) -> Path:
    """Return the program's file, building it if necessary.

    Args:
        program: one of `PROGRAMS` or `CLUSTER_PROGRAMS`, or `CRANE`.
        progress: called with a line from time to time during a build.
        limit_s: build timeout in seconds, in addition to `FETCH_LIMIT_S` for the download of the modules.

    Returns:
        The absolute path of an executable file.

    Raises:
        GoMissing: KUBE-001.
        GoUnfit: KUBE-002.
        ModulesNotFetched: KUBE-003.
        NotBuilt: KUBE-004.
        BuildTooLong: KUBE-005.
        CacheNotWritable: KUBE-006.
    """
    build = _Build(program, _go(), progress)
    file = build.file
    if not file.exists():
        # Another process may have built it while this one waited for the lock.
        with _alone(file.parent, progress):
            if not file.exists():
                build.run(limit_s)
    return file


class _Build:
    """The build of one program."""

    def __init__(self, program: Program, go: str, progress: Progress) -> None:
        self._program = program
        self._go = go
        self._progress = progress
        self._module = program.module
        self._environment = {**os.environ, **_SETTINGS}
        self.file = cache_folder() / self._key() / program.name

    def run(self, limit_s: float) -> None:
        began_s = time.monotonic()
        self._progress(f"{self._program.name}: fetching its Go modules")
        packages = self._fetch()
        partial = self.file.with_name(f".{self._program.name}.partial")
        self._compile(partial, packages, limit_s)
        partial.replace(self.file)
        size_mib, took_s = self.file.stat().st_size / 2**20, time.monotonic() - began_s
        self._progress(f"{self._program.name}: built in {took_s:.0f} s, {size_mib:.0f} MiB, kept in {self.file.parent}")

    def _key(self) -> str:
        sources = [self._module / "go.mod", self._module / "go.sum", *sorted(self._module.glob("*/*.go"))]
        pinned = [file.read_bytes() for file in sources]
        said = "\0".join((self._version(), *self._flags(), *sorted(_SETTINGS.values())))
        return hashlib.sha256(b"\0".join([*pinned, said.encode()])).hexdigest()[:16]

    def _flags(self) -> list[str]:
        said = [f"-X {variable}={value}" for variable, value in self._program.said.items()]
        return [*_FLAGS, f"-ldflags={' '.join((_STRIPPED, *said))}"]

    def _version(self) -> str:
        """Return Go's version and target as seen from the module's folder: Go may download a newer version of itself."""
        command = [self._go, "env", "GOVERSION", "GOOS", "GOARCH"]
        need, fix = f"Go {self._needed()} or later", "install this version or a later one"
        try:
            said = subprocess.run(
                command, cwd=self._module, env=self._environment, capture_output=True, text=True, timeout=_VERSION_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GoUnfit(path=self._go, given=str(error), need=need, fix=fix) from None
        version = " ".join(said.stdout.split())
        if said.returncode != 0 or _numbers(version) < _numbers(self._needed()):
            raise GoUnfit(path=self._go, given=version or said.stderr.strip()[-400:], need=need, fix=fix)
        return version

    def _needed(self) -> str:
        lines = (self._module / "go.mod").read_text("utf-8").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("go "))

    def _fetch(self) -> int:
        """Download the program's modules and return the number of its packages."""
        log = self.file.with_name(f"{self._program.name}-fetch.log")
        names = self.file.with_name(f".{self._program.name}.packages")
        # The shell only separates the list from Go's download messages.
        script = 'exec "$0" list -deps -f "{{.ImportPath}}" "$1" > "$2"'
        code = self._supervised_run(
            ["sh", "-c", script, self._go, self._program.package, str(names)], log, FETCH_LIMIT_S, lambda: "fetching"
        )
        if code != 0:
            fix = "check that Go can reach its module proxy (go env GOPROXY), and retry; nothing was changed"
            raise ModulesNotFetched(path=self._program.name, given=_end_of(log), need="the modules of go.mod, matching go.sum", fix=fix)
        count = len(names.read_text("utf-8").split())
        names.unlink()
        return count

    def _compile(self, target: Path, packages: int, limit_s: float) -> None:
        log = self.file.with_name(f"{self._program.name}-build.log")

        def state() -> str:
            return f"{len(log.read_text('utf-8').splitlines())} of at most {packages} packages compiled"

        command = ["nice", self._go, "build", "-v", *self._flags(), "-o", str(target), self._program.package]
        if self._supervised_run(command, log, limit_s, state) != 0:
            need = f"a successful build of {self._program.package}"
            raise NotBuilt(path=self._program.name, given=_end_of(log), need=need, fix=f"check {log}, and retry")

    def _supervised_run(self, command: list[str], log: Path, limit_s: float, state: Callable[[], str]) -> int | None:
        """Run a command to its end; it is stopped when this process ends."""
        began_s = reported_s = time.monotonic()
        log.unlink(missing_ok=True)
        with SupervisedProcess(command, env=self._environment, cwd=self._module, log=log) as supervised:
            while supervised.alive():
                now_s = time.monotonic()
                if now_s - began_s > limit_s:
                    fix = "retry: the build resumes where it stopped"
                    raise BuildTooLong(path=self._program.name, given=state(), need=f"at most {limit_s:g} s", fix=fix)
                if now_s - reported_s >= REPORT_EVERY_S:
                    reported_s = now_s
                    self._progress(f"{self._program.name}: {state()}, {now_s - began_s:.0f} s")
                time.sleep(POLL_S)
            return supervised.returncode


def _go() -> str:
    path = shutil.which("go")
    if path is None:
        fix = "install Go (https://go.dev/doc/install), and check that `go version` works"
        raise GoMissing(path="go", given="not in PATH", need="Go, which builds Kubernetes, etcd and helm", fix=fix)
    return path


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock, which the system releases when a process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        fix = "make it writable, or set XDG_CACHE_HOME to a writable directory"
        raise CacheNotWritable(
            path=str(folder), given=error.strerror or "", need="a writable directory for the built programs", fix=fix
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that builds in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _numbers(version: str) -> list[int]:
    """Parse the numbers of ``1.25.0`` or of ``go1.26.8 linux amd64``; an empty list if it has none."""
    match = re.search(r"[0-9]+(?:\.[0-9]+)+", version)
    return [int(number) for number in match.group().split(".")] if match else []


def _end_of(log: Path) -> str:
    return log.read_text("utf-8", "replace").strip()[-800:] if log.exists() else ""
