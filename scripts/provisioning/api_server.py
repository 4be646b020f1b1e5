"""Check that this machine reaches the cluster's API server, before any chart is applied: Helm would wait for minutes."""

from __future__ import annotations

import base64
import binascii
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from penstock.infra.environment import Environment
from penstock.scripts.provisioning.errors import ApiServerNotReached

# A private endpoint drops packets from outside of the VPC; the client gets no response at all.
REACH_LIMIT_S = 8.0


@dataclass(frozen=True)
class ClusterAddress:
    """A cluster's API server.

    Args:
        name: name of the cluster.
        endpoint: its URL.
        ca_pem: certificate of its CA.
    """

    name: str
    endpoint: str
    ca_pem: str


def cluster_address(outputs: Mapping[str, Any]) -> ClusterAddress | None:
    """Return the API server named in the cluster stack's outputs; None if the stack is not applied."""
    named = [outputs.get(name) for name in ("cluster_name", "cluster_endpoint", "cluster_ca")]
    if not all(named):
        return None
    name, endpoint, ca = (str(value) for value in named)
    try:
        return ClusterAddress(name, endpoint, base64.b64decode(ca).decode("utf-8"))
    except (binascii.Error, UnicodeDecodeError):
        return ClusterAddress(name, endpoint, "")


def reach(address: ClusterAddress, environment: Environment, limit_s: float = REACH_LIMIT_S) -> None:
    """Connect to the API server by TCP and verify that its certificate is signed by the cluster's CA.

    Args:
        address: the API server.
        environment: name of the environment, for the message.
        limit_s: timeout in seconds.

    Raises:
        ApiServerNotReached: DEP-007, with two solutions.
    """
    url = urlsplit(address.endpoint)
    host, port = url.hostname or "", url.port or 443
    try:
        context = ssl.create_default_context(cadata=address.ca_pem or None)
        with socket.create_connection((host, port), timeout=limit_s) as plain, context.wrap_socket(plain, server_hostname=host):
            return
    except ssl.SSLCertVerificationError as error:
        why = f"its certificate does not match the cluster's: {error.verify_message}"
    except TimeoutError:
        why = f"no response within {limit_s:g} s"
    except (OSError, ValueError) as error:
        why = str(error)
    raise _not_reached(address, environment, why)


def _not_reached(address: ClusterAddress, environment: Environment, why: str) -> ApiServerNotReached:
    eks = environment.spec.eks
    if eks is not None and eks.existing is not None:
        fix = "have the cluster's owners admit this machine's address, or run this from within the VPC, over a VPN or from a runner in it"
        return ApiServerNotReached(path=address.endpoint, given=why, need=f"a reachable API server of {address.name}", fix=fix)
    cidrs = ", ".join(eks.public_access_cidrs) if eks else ""
    open_to = f"access is limited to {cidrs}, which does not include this machine" if cidrs else "its endpoint is private"
    fix = (
        f"either add this machine's address to spec.eks.publicAccessCidrs ({open_to}) and deploy the stack cluster,\n"
        "       or run this from within the VPC, over a VPN or from a runner that is peered with it"
    )
    return ApiServerNotReached(path=address.endpoint, given=why, need=f"a reachable API server of {address.name}", fix=fix)
