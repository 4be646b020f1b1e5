"""An emulated S3 whose answers get lost: a proxy in front of it, which also counts the requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

_XML = "<Error><Code>{code}</Code><Message>of a test</Message></Error>"


class Fault(StrEnum):
    """What happens to a PUT."""

    NONE = "it is answered"
    ANSWER_LOST = "S3 executes it, and the answer is lost"
    REQUEST_LOST = "S3 never receives it"
    CONFLICT = "409: another conditional request for the key is in progress"
    UNAVAILABLE = "503"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients break off connections whose answer is lost."""


class FaultyS3:
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of the emulated S3.
    """

    def __init__(self, endpoint: str) -> None:
        self._address = urlsplit(endpoint).netloc
        self.faults: list[Fault] = []
        self.always = Fault.NONE
        # As S3 answers those who may not list the whole bucket.
        self.denies_missing = False
        self.requests: list[tuple[str, str]] = []
        self.before_answer: Callable[[str, str], None] | None = None
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self) -> None:
                proxy._pass(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_any  # noqa: N815

            def log_message(self, format: str, *arguments: Any) -> None:
                """Says nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """Where a client finds it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _pass(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        method, path = handler.command, urlsplit(handler.path).path
        self.requests.append((method, path))
        fault = (self.faults.pop(0) if self.faults else self.always) if method == "PUT" else Fault.NONE
        if fault is Fault.REQUEST_LOST:
            handler.close_connection = True
        elif fault is Fault.CONFLICT:
            _answer(handler, 409, [], _XML.format(code="ConditionalRequestConflict").encode())
        elif fault is Fault.UNAVAILABLE:
            _answer(handler, 503, [], _XML.format(code="ServiceUnavailable").encode())
        else:
            self._forward(handler, body, method, path, lost=fault is Fault.ANSWER_LOST)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes, method: str, path: str, *, lost: bool) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("expect", "connection")}
            connection.request(method, handler.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if self.before_answer:
            self.before_answer(method, path)
        if answer.status == 404 and self.denies_missing and method in ("GET", "HEAD"):
            _answer(handler, 403, [], b"" if method == "HEAD" else _XML.format(code="AccessDenied").encode())
        elif lost:
            handler.close_connection = True
        else:
            _answer(handler, answer.status, answer.getheaders(), content)


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
    handler.send_response_only(status)
    names = {name.lower() for name, _ in headers}
    for name, value in headers:
        if name.lower() not in ("transfer-encoding", "connection") and (name.lower() != "content-length" or not content):
            handler.send_header(name, value)
    if content or "content-length" not in names:
        handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
