"""Network policies on a node: kube-network-policies decides on each new connection from and to its pods.

The node's firewall puts a connection's first packet into a queue, where it waits for the program's verdict; without the program it is
dropped. The program's own rule does the same by nftables, which needs a kernel with NFT_QUEUE; where there is none, it reports that and
goes on. Source: kube-network-policies 0.8.0, pkg/networkpolicy/controller.go.
"""

from __future__ import annotations

from pathlib import Path

from penstock.scripts.kube import binaries
from penstock.scripts.kube.cluster.namespaces import Namespaces
from penstock.scripts.kube.cluster.programs import Programs

_QUEUE = 100
# After the translation of a service's address, so that policies see the pod behind it.
_CHAIN = ("--table", "mangle", "--append", "FORWARD")
_NEW = ("--match", "conntrack", "--ctstate", "NEW")


def enforce(namespaces: Namespaces, programs: Programs, kubeconfig: Path, node: str) -> None:
    """Enforce the policies; the node has no pods yet.

    Args:
        namespaces: of the node.
        programs: of the node.
        kubeconfig: of a user who may watch pods, namespaces and policies.
        node: its name in the API.

    Raises:
        NodeCommandFailed: KUBE-024.
    """
    # Pods of one node reach each other over its bridge, which the firewall does not see otherwise.
    namespaces.run("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1")
    namespaces.run("iptables", *_CHAIN, *_NEW, "--jump", "NFQUEUE", "--queue-num", str(_QUEUE))
    program = binaries.built(binaries.NETWORK_POLICIES)
    programs.start(program, f"--kubeconfig={kubeconfig}", f"--node={node}", f"--queue={_QUEUE}")
