from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.kube.certificates import Authority
from penstock.scripts.provisioning.api_server import ClusterAddress, cluster_address, reach
from penstock.scripts.provisioning.errors import ApiServerNotReached


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClusterAddress]:
    """A server with a certificate of its own CA; it sends nothing but the TLS handshake."""
    authority = Authority(tmp_path / "keys")
    pair = authority.server("server", ["127.0.0.1"], [])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) as connection:
                        connection.recv(1)
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield ClusterAddress("penstock-x", f"https://127.0.0.1:{listener.getsockname()[1]}", authority.certificate.read_text())
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _opened_to(*cidrs: str) -> Environment:
    environment = load("production")
    assert environment.spec.eks is not None
    eks = environment.spec.eks.model_copy(update={"public_access_cidrs": list(cidrs)})
    return environment.model_copy(update={"spec": environment.spec.model_copy(update={"eks": eks})})


def test_an_api_server_with_a_certificate_of_its_authority_is_reached(server: ClusterAddress) -> None:
    reach(server, load("production"))


def test_a_server_with_another_certificate_is_not_the_cluster(server: ClusterAddress, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other").certificate.read_text()
    with pytest.raises(ApiServerNotReached) as raised:
        reach(ClusterAddress(server.name, server.endpoint, other), load("production"))
    assert "certificate" in raised.value.given


def test_a_server_that_never_responds_is_reported_within_the_timeout_with_two_solutions() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = ClusterAddress("penstock-x", f"https://127.0.0.1:{mute.getsockname()[1]}", "")
        with pytest.raises(ApiServerNotReached) as raised:
            reach(address, load("production"), limit_s=0.5)
    assert "no response within 0.5 s" in raised.value.given or "timed out" in raised.value.given
    assert "publicAccessCidrs" in raised.value.fix
    assert "its endpoint is private" in raised.value.fix
    assert "from within the VPC, over a VPN or from a runner that is peered" in raised.value.fix
    assert raised.value.exit_code == 5


def test_an_endpoint_that_is_open_to_others_says_to_whom() -> None:
    with pytest.raises(ApiServerNotReached) as raised:
        reach(ClusterAddress("penstock-x", "https://127.0.0.1:1", ""), _opened_to("203.0.113.0/24"))
    assert "limited to 203.0.113.0/24" in raised.value.fix


def test_the_address_is_that_of_the_cluster_stacks_outputs_once_they_are_there() -> None:
    assert cluster_address({"cluster_name": "penstock-x"}) is None
    ca = base64.b64encode(b"-----BEGIN").decode()
    outputs = {"cluster_name": "penstock-x", "cluster_endpoint": "https://x", "cluster_ca": ca, "oidc_issuer": "y"}
    assert cluster_address(outputs) == ClusterAddress("penstock-x", "https://x", "-----BEGIN")
