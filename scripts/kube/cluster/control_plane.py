"""The control plane: the API, the scheduler, the controllers and the DNS of the cluster, in namespaces of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer, Listener
from penstock.scripts.kube.binaries import Progress
from penstock.scripts.kube.cluster import network
from penstock.scripts.kube.cluster.namespaces import Namespaces
from penstock.scripts.process.supervised import SupervisedProcess

# Every change of a node's or a pod's state is acted on at once, as far as it can be set; production's defaults wait for 5 s to minutes.
_CONTROLLERS = ("--leader-elect=false", "--bind-address=127.0.0.1", "--use-service-account-credentials=true")
CLUSTER_DOMAIN = "cluster.local"

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
    """

    namespaces: Namespaces
    folder: Path
    progress: Progress
    programs: dict[str, SupervisedProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listener = Listener(network.CONTROL_PLANE, self.namespaces.within)
        self.api = ApiServer(folder=self.folder / "api", logs=self.folder, progress=self.progress, listener=listener)

    def start(self) -> None:
        """Start everything, the API first. Raises as `ApiServer.start`, and NodeCommandFailed: KUBE-024."""
        files = {program.name: binaries.built(program, self.progress) for program in binaries.CLUSTER_PROGRAMS}
        self.api.start()
        scheduler, controllers = (self._kubeconfig(f"system:{name}") for name in ("kube-scheduler", "kube-controller-manager"))
        self._run(files["kube-scheduler"], f"--kubeconfig={scheduler}", "--leader-elect=false", "--bind-address=127.0.0.1")
        tokens = (f"--root-ca-file={self.api.authority.certificate}", f"--service-account-private-key-file={self.api.token_key.key}")
        self._run(files["kube-controller-manager"], f"--kubeconfig={controllers}", *_CONTROLLERS, *tokens)
        dns = self.api.write_kubeconfig(self.folder / "coredns.kubeconfig", "coredns", ["system:masters"])
        corefile = self.folder / "Corefile"
        text = _COREFILE.format(address=network.CONTROL_PLANE, domain=CLUSTER_DOMAIN, kubeconfig=dns)
        corefile.write_text(text, encoding="utf-8")
        self._run(files["coredns"], "-conf", str(corefile))

    def check(self) -> None:
        """Raise if a program has exited. Raises as `ApiServer.check`; ComponentDied: KUBE-025."""
        self.api.check()

    def stop(self) -> None:
        """Stop everything; a second call does nothing."""
        for program in self.programs.values():
            program.stop()
        self.api.stop()

    def _kubeconfig(self, user: str) -> Path:
        return self.api.write_kubeconfig(self.folder / f"{user.partition(':')[2]}.kubeconfig", user, [])

    def _run(self, program: Path, *flags: str) -> None:
        self.programs[program.name] = self.namespaces.process(self.folder / f"{program.name}.log", program, *flags)
