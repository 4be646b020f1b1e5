from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.emulation.errors import LocalStackNotReached, OldLocalStack
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE, SERVICES, LocalStack
from penstock.scripts.emulation.localstack_python import VARIABLE
from penstock.scripts.errors import MissingTool
from penstock.sizing.errors import PenstockError


@contextmanager
def _health(document: dict[str, Any]) -> Iterator[str]:
    """A server that says this of its health, as LocalStack does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(document).encode()
            self.send_response(200 if self.path == "/_localstack/health" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_without_its_python_the_error_names_it_and_the_ways_out(tmp_path: Path) -> None:
    own = LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={VARIABLE: str(tmp_path / "nothing")})
    with pytest.raises(MissingTool) as raised:
        own.start()
    assert raised.value.exit_code == 4
    assert "3.13" in raised.value.need
    assert VARIABLE in raised.value.fix
    assert ENDPOINT_VARIABLE in raised.value.fix


def test_a_named_endpoint_where_nobody_listens_is_an_error_and_none_is_started(tmp_path: Path) -> None:
    own = LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={ENDPOINT_VARIABLE: "http://127.0.0.1:9"})
    with pytest.raises(LocalStackNotReached) as raised:
        own.start()
    assert (raised.value.path, raised.value.exit_code) == ("http://127.0.0.1:9", 5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "states", "error"),
    [
        ("4.13.2", dict.fromkeys(SERVICES, "available"), OldLocalStack),
        ("4.9.0", dict.fromkeys(SERVICES, "available"), OldLocalStack),
        ("4.14.1.dev3", {service: "available" for service in SERVICES if service != "sqs"}, LocalStackNotReached),
        # Its EC2 is not used.
        ("4.14.0", {service: "available" for service in SERVICES if service != "ec2"}, None),
        ("2026.3.0", dict.fromkeys(SERVICES, "running"), None),
    ],
)
def test_the_release_and_the_services_of_a_named_one_are_checked(
    tmp_path: Path, version: str, states: dict[str, str], error: type[PenstockError] | None
) -> None:
    with _health({"version": version, "services": states}) as endpoint:
        own = LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={ENDPOINT_VARIABLE: endpoint})
        if error is None:
            assert own.start().services == {service: endpoint for service in SERVICES if service != "ec2"}
            return
        with pytest.raises(error) as raised:
            own.start()
        assert raised.value.path == endpoint
        assert ("4.14.0 or later" if error is OldLocalStack else "sqs") in raised.value.render()


def test_an_address_is_asked_for_too_early(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has not been started"):
        _ = LocalStack(folder=tmp_path, log=tmp_path / "log").services
