"""A real Kubernetes API on this machine: etcd and kube-apiserver on loopback ports, in processes that end with this one.

By itself it has no controller, no scheduler and no kubelet: applied objects are validated, admitted and stored, but nothing acts on them;
`penstock.scripts.kube.cluster` adds these.
Manifests are validated as in a cluster: each object passes the API's own schema, the CRDs' rules, RBAC, Pod Security, quotas and limits.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import shutil
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
SERVICES = "172.20.0.0/16"
_SERVICE_ADDRESS = "172.20.0.1"
ISSUER = "https://kubernetes.default.svc"
_GRACE_S = 10
# The only environment variables that the programs get: the user's KUBECONFIG and proxies must not affect them.
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG")
# Otherwise it writes the loopback address into the endpoints of the service `kubernetes`, which the API rejects.
_NO_ENDPOINT = ("--endpoint-reconciler-type=none",)


@dataclass(frozen=True)
class Listener:
    """Where the API is served.

    Args:
        address: IP address that it listens on; with a loopback address it has no endpoint for pods and no client for kubelets.
        within: command that runs another one where this address is; empty: on this machine itself.
        port: that it listens on; None: a free one.
    """

    address: str = "127.0.0.1"
    within: tuple[str, ...] = ()
    port: int | None = None

    @property
    def serves_pods(self) -> bool:
        """Whether nodes and their pods can reach it."""
        return not ipaddress.ip_address(self.address).is_loopback


LOOPBACK = Listener()


class ApiServer:
    """A running API; its data is removed when it ends.

    Args:
        folder: empty or missing folder for its data, keys and kubeconfig, removed at the end.
        logs: folder for ``etcd.log`` and ``kube-apiserver.log``.
        progress: called with a line from time to time while a program is built.
        start_limit_s: start timeout in seconds, once everything is built.
        listener: where it is served.
    """

    def __init__(
        self,
        *,
        folder: Path,
        logs: Path,
        progress: Progress = lambda _: None,
        start_limit_s: float = START_LIMIT_S,
        listener: Listener = LOOPBACK,
    ) -> None:
        self._listener = listener
        self._folder = folder.absolute()
        self._logs = logs
        self._progress = progress
        self._start_limit_s = start_limit_s
        self._port = 0
        self._etcd: SupervisedProcess | None = None
        self._server: SupervisedProcess | None = None
        self._authority: Authority | None = None
        self._token_key: Pair | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """``https://127.0.0.1:port``, or the listener's address."""
        return f"https://{self._listener.address}:{self._port}"

    @property
    def authority(self) -> Authority:
        """The CA of all certificates of this API."""
        assert self._authority is not None
        return self._authority

    @property
    def token_key(self) -> Pair:
        """Key pair of the tokens of service accounts; the certificate is the bare public key."""
        assert self._token_key is not None
        return self._token_key

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
                name = supervised.log.stem
                given = f"{name} exited with code {supervised.returncode}; the end of its log, {supervised.log}:\n{supervised.tail()}"
                raise ServerDied(
                    path="kubernetes", given=given, need="an API server that runs until it is stopped", fix="check the log, and retry"
                )

    def _start_on(self, etcd: Path, server: Path, client_port: int, peer_port: int, port: int) -> None:
        self._port = self._listener.port or port
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._authority = Authority(self._folder / "keys")
            self._token_key = self._authority.signing_key("service-account")
            # Kubernetes' built-in group of cluster administrators.
            self.write_kubeconfig(self.kubeconfig, "admin", ["system:masters"])
            self._etcd = self._supervised([etcd, *_etcd_flags(self._folder / "etcd", client_port, peer_port)], remove=True)
            self._server = self._supervised([server, *self._server_flags(self._authority, client_port)], remove=False)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _supervised(self, command: list[str | Path], *, remove: bool) -> SupervisedProcess:
        log = self._logs / f"{Path(command[0]).name}.log"
        environment = {name: value for name, value in os.environ.items() if name in _KEPT}
        folder = self._folder if remove else None
        return SupervisedProcess([*self._listener.within, *command], env=environment, log=log, remove=folder, grace_s=_GRACE_S).start()

    def _server_flags(self, authority: Authority, etcd_port: int) -> list[str]:
        address = self._listener.address
        tls = authority.server("kube-apiserver", [address, _SERVICE_ADDRESS], ["localhost", "kubernetes.default.svc"])
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--bind-address={address}",
            f"--advertise-address={address}",
            *(self._kubelet_flags(authority) if self._listener.serves_pods else _NO_ENDPOINT),
            f"--secure-port={self._port}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={authority.certificate}",
            "--authorization-mode=Node,RBAC",
            # Fluent Bit and the CNI are privileged pods on EKS; the Pod Security level of a namespace is what forbids them.
            "--allow-privileged=true",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={self.token_key.certificate}",
            f"--service-account-signing-key-file={self.token_key.key}",
            "--profiling=false",
        ]

    def _kubelet_flags(self, authority: Authority) -> list[str]:
        """Flags for the API's requests to kubelets: logs of containers, and commands within them."""
        client = authority.client("kube-apiserver-kubelet-client", ["system:masters"])
        return [
            f"--kubelet-client-certificate={client.certificate}",
            f"--kubelet-client-key={client.key}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def write_kubeconfig(self, file: Path, user: str, groups: Sequence[str]) -> Path:
        """Write a kubeconfig with a new client certificate.

        Args:
            file: the kubeconfig's file.
            user: name of the user.
            groups: groups of the user.
        """
        pair = self.authority.client(user, groups)
        cluster = {"server": self.url, "certificate-authority": str(self.authority.certificate)}
        credentials = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
            "current-context": "local",
        }
        # JSON is valid YAML.
        file.write_text(json.dumps(config, indent=2), encoding="utf-8")
        return file

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
        connection = http.client.HTTPSConnection(self._listener.address, self._port, timeout=_ANSWER_S, context=context)
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
