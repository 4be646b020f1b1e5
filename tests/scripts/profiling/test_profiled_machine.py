from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.scripts.profiling import machine


@contextmanager
def metadata(answers: dict[tuple[str, str], str]) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """An instance metadata service, version 2: its URL, and what it was asked: method, path and token."""
    asked: list[tuple[str, str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append((self.command, self.path, self.headers.get("X-aws-ec2-metadata-token")))
            text = answers.get((self.command, self.path))
            self.send_response(200 if text is not None else 404)
            self.end_headers()
            self.wfile.write((text or "").encode())

        do_GET = do_PUT = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


TOKEN, TYPE = ("PUT", "/latest/api/token"), ("GET", "/latest/meta-data/instance-type")


def test_an_instance_is_named_by_its_type_which_is_asked_for_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED", raising=False)
    with metadata({TOKEN: "t-1", TYPE: "m7g.xlarge"}) as (url, asked):
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        assert machine.name() == "m7g.xlarge"
    assert asked == [(*TOKEN, None), (*TYPE, "t-1")]


@pytest.mark.parametrize("answers", [{}, {TOKEN: "t-1"}, {TOKEN: "t-1", TYPE: "<html>sign in</html>"}])
def test_any_other_machine_is_named_by_its_cpu(monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, str], str]) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED", raising=False)
    with metadata(answers) as (url, _):
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        assert machine.instance_type() is None
        assert machine.name()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
    # Nobody listens there any more.
    assert machine.instance_type() is None


def test_the_service_is_not_asked_where_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with metadata({TOKEN: "t-1", TYPE: "m7g.xlarge"}) as (url, asked):
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        assert machine.instance_type() is None
    assert asked == []
    assert machine.cores() >= 1
