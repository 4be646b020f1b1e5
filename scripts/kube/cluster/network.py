"""The network of a cluster on this machine: a bridge in the control plane's namespaces, to which this machine and the nodes are linked.

```
this machine 10.250.0.2 --- 10.250.0.1 control plane, bridge --- 10.250.0.11 node-1, its pods in 10.244.1.0/24
                                                             \\-- 10.250.0.12 node-2, its pods in 10.244.2.0/24
```
Links end with the namespaces of their other end, and routes with their links, so nothing stays behind. This machine forwards no packets and
has no rule of its own: pods reach it, each other and the API, and nothing else.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess

from penstock.scripts.kube.cluster.namespaces import Namespaces, environment
from penstock.scripts.kube.errors import AddressesTaken, NodeCommandFailed

_MACHINES = ipaddress.ip_network("10.250.0.0/24")
PODS = ipaddress.ip_network("10.244.0.0/16")
CONTROL_PLANE, HOST = "10.250.0.1", "10.250.0.2"
_FIRST_NODE = 10
BRIDGE = "nodes"
HOST_LINK = "penstock-nodes"


def node_address(number: int) -> str:
    """A node's address; the first has number 1."""
    return str(_MACHINES[_FIRST_NODE + number])


def pods_of(number: int) -> str:
    """The addresses of a node's pods, as a CIDR block."""
    return str(list(PODS.subnets(new_prefix=24))[number])


def refuse_taken_addresses() -> None:
    """Raise if this machine has a route to addresses of the cluster.

    Raises:
        AddressesTaken: KUBE-022.
    """
    for route in json.loads(_ip("-json", "route", "show", "table", "all") or "[]"):
        block = _network(route.get("dst", ""))
        if block is not None and (block.overlaps(_MACHINES) or block.overlaps(PODS)):
            need = f"no route to addresses in {_MACHINES} or {PODS}, which the nodes and their pods have"
            fix = "remove the route, or run the tests on a cluster of yours: set KUBECONFIG"
            raise AddressesTaken(path=f"route {route['dst']} via {route.get('dev', '')}", given=str(block), need=need, fix=fix)


def remove_host_link() -> None:
    """Remove the link of an ended cluster, with its routes: the kernel does that by itself, but only some time after the last process.

    Raises:
        NodeCommandFailed: KUBE-024.
    """
    try:
        _ip("link", "delete", HOST_LINK)
    except NodeCommandFailed:
        # The kernel may have been faster; a link that is still there is an error.
        if HOST_LINK in {link["ifname"] for link in json.loads(_ip("-json", "link", "show"))}:
            raise


def connect_host(control_plane: Namespaces) -> None:
    """Create the bridge, and link this machine to it.

    Raises:
        NodeCommandFailed: KUBE-024.
    """
    _ip("link", "add", HOST_LINK, "type", "veth", "peer", "name", "host", "netns", str(control_plane.pid))
    control_plane.run("ip", "link", "add", BRIDGE, "type", "bridge")
    control_plane.run("ip", "address", "add", f"{CONTROL_PLANE}/{_MACHINES.prefixlen}", "dev", BRIDGE)
    control_plane.run("ip", "link", "set", BRIDGE, "up")
    control_plane.run("ip", "link", "set", "host", "master", BRIDGE, "up")
    control_plane.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    _ip("address", "add", f"{HOST}/{_MACHINES.prefixlen}", "dev", HOST_LINK)
    _ip("link", "set", HOST_LINK, "up")
    _ip("route", "add", str(PODS), "via", CONTROL_PLANE)


def connect_node(control_plane: Namespaces, node: Namespaces, number: int) -> None:
    """Link a node to the bridge. Raises as `connect_host`.

    Args:
        control_plane: where the bridge is.
        node: the node's namespaces.
        number: of the node, from 1.
    """
    address = node_address(number)
    # From this machine, whose process ids both know.
    ends = ("netns", str(control_plane.pid), "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
    _ip("link", "add", node.name, *ends)
    control_plane.run("ip", "link", "set", node.name, "master", BRIDGE, "up")
    node.run("ip", "address", "add", f"{address}/{_MACHINES.prefixlen}", "dev", "eth0")
    node.run("ip", "link", "set", "eth0", "up")
    node.run("ip", "route", "add", "default", "via", CONTROL_PLANE)
    node.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    control_plane.run("ip", "route", "add", pods_of(number), "via", address)


def cni_configuration(number: int) -> str:
    """The configuration of a node's CNI plugins, in JSON.

    Args:
        number: of the node, from 1.
    """
    addresses = {"type": "host-local", "ranges": [[{"subnet": pods_of(number)}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}, indent=2)


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        # "default", or an IPv6 address.
        return None


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], env=environment(), capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        fix = "check the message; `ip link` shows this machine's links"
        raise NodeCommandFailed(path=f"ip {' '.join(arguments)}", given=done.stderr.strip(), need="a command that succeeds", fix=fix)
    return done.stdout
