"""The control plane: the API, the scheduler, the controllers and the DNS of the cluster, in namespaces of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer, Listener
from penstock.scripts.kube.binaries import Progress
from penstock.scripts.kube.cluster import network
from penstock.scripts.kube.cluster.namespaces import Namespaces
from penstock.scripts.kube.cluster.programs import Programs

# There is one of each, which nothing outside of the control plane asks for anything.
_CONTROLLERS = ("--leader-elect=false", "--bind-address=127.0.0.1", "--use-service-account-credentials=true")
CLUSTER_DOMAIN = "cluster.local"
# As on EKS: network policies that allow a pod HTTPS see the port that the one of the service `kubernetes` is translated into.
API_PORT = 443

_COREFILE = """\
.:53 {{
    errors
    ready {address}:8181
    kubernetes {domain} {{
        kubeconfig {kubeconfig} local
    }}
}}
"""


@dataclass
class ControlPlane:
    """A running control plane.

    Args:
        namespaces: where it runs, started and linked to this machine.
        folder: existing folder for its data and logs.
        progress: called with a line from time to time while a program is built.
        api_port: of the API.
    """

    namespaces: Namespaces
    folder: Path
    progress: Progress
    api_port: int = API_PORT

    def __post_init__(self) -> None:
        self._programs = Programs(self.namespaces, self.folder)
        listener = Listener(network.CONTROL_PLANE, self.namespaces.within, self.api_port)
        self.api = ApiServer(folder=self.folder / "api", logs=self.folder, progress=self.progress, listener=listener)

    def start(self) -> None:
        """Start everything, the API first. Raises as `ApiServer.start`, and NodeCommandFailed: KUBE-024."""
        files = {program.name: binaries.built(program, self.progress) for program in binaries.CLUSTER_PROGRAMS}
        self.api.start()
        scheduler, controllers = (self._kubeconfig(f"system:{name}") for name in ("kube-scheduler", "kube-controller-manager"))
        self._programs.start(files["kube-scheduler"], f"--kubeconfig={scheduler}", "--leader-elect=false", "--bind-address=127.0.0.1")
        tokens = (f"--root-ca-file={self.api.authority.certificate}", f"--service-account-private-key-file={self.api.token_key.key}")
        self._programs.start(files["kube-controller-manager"], f"--kubeconfig={controllers}", *_CONTROLLERS, *tokens)
        dns = self.api.write_kubeconfig(self.folder / "coredns.kubeconfig", "coredns", ["system:masters"])
        corefile = self.folder / "Corefile"
        text = _COREFILE.format(address=network.CONTROL_PLANE, domain=CLUSTER_DOMAIN, kubeconfig=dns)
        corefile.write_text(text, encoding="utf-8")
        self._programs.start(files["coredns"], "-conf", str(corefile))

    def check(self) -> None:
        """Raise if a program has exited. Raises as `ApiServer.check`; ComponentDied: KUBE-025."""
        self.api.check()
        self._programs.check()

    def stop(self) -> None:
        """Stop everything; a second call does nothing."""
        self.api.stop()
        self._programs.stop()

    def _kubeconfig(self, user: str) -> Path:
        return self.api.write_kubeconfig(self.folder / f"{user.partition(':')[2]}.kubeconfig", user, [])
