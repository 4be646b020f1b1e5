"""A real Kubernetes API on this machine: etcd and kube-apiserver on loopback ports, in processes that end with this one.

It has no controller, no scheduler and no kubelet: applied objects are validated, admitted and stored, but nothing acts on them.
Manifests are validated as in a cluster: each object passes the API's own schema, the CRDs' rules, RBAC, Pod Security, quotas and limits.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.scripts.kube import binaries
from penstock.scripts.kube.binaries import Progress
from penstock.scripts.kube.certificates import Authority, Pair
from penstock.scripts.kube.errors import ServerDied, ServerNotReady
from penstock.scripts.process.supervised import SupervisedProcess

# Measured on 2 cores: some 6 s. Two minutes allow for a busy machine.
START_LIMIT_S = 120
POLL_S = 0.1
_ANSWER_S = 5.0
_PORT_TRIES = 5
_TAKEN = "address already in use"
# As on EKS with a VPC in 10.0.0.0/8.
_SERVICES = "172.20.0.0/16"
_SERVICE_ADDRESS = "172.20.0.1"
ISSUER = "https://kubernetes.default.svc"
_GRACE_S = 10
# The only environment variables that the programs get: the user's KUBECONFIG and proxies must not affect them.
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG")


class ApiServer:
    """A running API; its data is removed when it ends.

    Args:
        folder: empty or missing folder for its data, keys and kubeconfig, removed at the end.
        logs: folder for ``etcd.log`` and ``kube-apiserver.log``.
        progress: called with a line from time to time while a program is built.
        start_limit_s: start timeout in seconds, once everything is built.
    """

    def __init__(self, *, folder: Path, logs: Path, progress: Progress = lambda _: None, start_limit_s: float = START_LIMIT_S) -> None:
        self._folder = folder.absolute()
        self._logs = logs
        self._progress = progress
        self._start_limit_s = start_limit_s
        self._port = 0
        self._etcd: SupervisedProcess | None = None
        self._server: SupervisedProcess | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """``https://127.0.0.1:port``."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> Path:
        """PEM file of the CA that signed the server's certificate."""
        return self._folder / "keys" / "ca.crt"

    @property
    def admin(self) -> Pair:
        """Certificate and key of a cluster administrator."""
        return Pair(self._folder / "keys" / "admin.crt", self._folder / "keys" / "admin.key")

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of that administrator; it refers to files that exist while the server runs."""
        return self._folder / "kubeconfig"

    @property
    def pids(self) -> tuple[int, int]:
        """Process ids of etcd and of the API server."""
        assert self._etcd is not None and self._server is not None
        return self._etcd.pid, self._server.pid

    def start(self) -> Self:
        """Build what is not built yet, start both programs, and wait until the API is ready.

        Raises:
            ToolMissing: KUBE-001, KUBE-002, KUBE-003, KUBE-006.
            NotBuilt: KUBE-004.
            BuildTooLong: KUBE-005.
            ServerDied: KUBE-010, with the end of the log.
            ServerNotReady: KUBE-011.
        """
        etcd, server = (binaries.built(program, self._progress) for program in (binaries.ETCD, binaries.API_SERVER))
        for last in (*[False] * (_PORT_TRIES - 1), True):
            try:
                self._start_on(etcd, server, *_free_ports(3))
                break
            except ServerDied as died:
                # Another process may take a free port between its choice and the server's start.
                if last or _TAKEN not in died.given:
                    raise
        return self

    def stop(self) -> None:
        """Stop both programs and remove their data; a second call does nothing."""
        for supervised in (self._server, self._etcd):
            if supervised is not None:
                supervised.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def check(self) -> None:
        """Raise if one of the programs has exited.

        Raises:
            ServerDied: KUBE-010.
        """
        for supervised in (self._etcd, self._server):
            if supervised is not None and not supervised.alive():
                name = Path(supervised.argv[0]).name
                given = f"{name} exited with code {supervised.returncode}; the end of its log, {supervised.log}:\n{supervised.tail()}"
                raise ServerDied(
                    path="kubernetes", given=given, need="an API server that runs until it is stopped", fix="check the log, and retry"
                )

    def _start_on(self, etcd: Path, server: Path, client_port: int, peer_port: int, port: int) -> None:
        self._port = port
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            authority = Authority(self._folder / "keys")
            self._write_kubeconfig(authority)
            self._etcd = self._supervised([etcd, *_etcd_flags(self._folder / "etcd", client_port, peer_port)], remove=True)
            self._server = self._supervised([server, *self._server_flags(authority, client_port)], remove=False)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _supervised(self, command: list[str | Path], *, remove: bool) -> SupervisedProcess:
        log = self._logs / f"{Path(command[0]).name}.log"
        environment = {name: value for name, value in os.environ.items() if name in _KEPT}
        folder = self._folder if remove else None
        return SupervisedProcess(command, env=environment, log=log, remove=folder, grace_s=_GRACE_S).start()

    def _server_flags(self, authority: Authority, etcd_port: int) -> list[str]:
        tls = authority.server("kube-apiserver", ["127.0.0.1", _SERVICE_ADDRESS], ["localhost", "kubernetes.default.svc"])
        tokens = authority.signing_key("service-account")
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            # Otherwise it writes the loopback address into the endpoints of the service `kubernetes`, which the API rejects.
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._port}",
            f"--service-cluster-ip-range={_SERVICES}",
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={authority.certificate}",
            "--authorization-mode=RBAC",
            # Fluent Bit and the CNI are privileged pods on EKS; the Pod Security level of a namespace is what forbids them.
            "--allow-privileged=true",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={tokens.certificate}",
            f"--service-account-signing-key-file={tokens.key}",
            "--profiling=false",
        ]

    def _write_kubeconfig(self, authority: Authority) -> None:
        # Kubernetes' built-in group of cluster administrators.
        pair = authority.client("admin", ["system:masters"])
        cluster = {"server": self.url, "certificate-authority": str(authority.certificate)}
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
            "current-context": "local",
        }
        # JSON is valid YAML.
        self.kubeconfig.write_text(json.dumps(config, indent=2), encoding="utf-8")

    def _wait_until_ready(self) -> None:
        until_s = time.monotonic() + self._start_limit_s
        said = "no response"
        while time.monotonic() < until_s:
            self.check()
            said = self._readiness()
            if said == "ok":
                return
            time.sleep(POLL_S)
        need = f"the response ok from /readyz within {self._start_limit_s:g} s"
        raise ServerNotReady(path=self.url, given=said, need=need, fix=f"check the logs in {self._logs}, and retry")

    def _readiness(self) -> str:
        """Return the API's readiness: ``ok``, or the checks that still fail."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.admin.certificate, self.admin.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=_ANSWER_S, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().read().decode("utf-8", "replace").strip()
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            connection.close()


def _etcd_flags(data: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (client_port, peer_port))
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # The data need not survive a crash.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _free_ports(count: int) -> list[int]:
    """Return free loopback ports, bound at the same time so that they differ."""
    with ExitStack() as held:
        listeners = [held.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]
