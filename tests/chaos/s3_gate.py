"""What a driver's JVM asks S3 passes through here, so that the driver can be killed before or after one of Spark's own requests."""

from __future__ import annotations

import http.client
import itertools
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Trap:
    """Where the driver is killed.

    Args:
        log: of Spark's that is written, ``offsets`` or ``commits``.
        call: at which of the writes since the driver began, from 1.
        after: whether S3 has the log's entry by then.
        kill: ends the driver.
    """

    log: str
    call: int
    after: bool
    kill: Callable[[], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed driver breaks off its connections; anything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class S3Gate:
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        self._address = urlsplit(endpoint).netloc
        self._trap: Trap | None = None
        self._calls = itertools.count(1)
        # Once the driver is killed, what its JVM may still ask in its last moments is not heard.
        self._shut = threading.Event()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self) -> None:
                gate._pass(self)

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
        """Where the driver finds S3."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def open(self, trap: Trap | None) -> None:
        """Lets requests pass, until one goes into the trap."""
        self._trap, self._calls = trap, itertools.count(1)
        self._shut.clear()

    def _pass(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        trap = self._trapped(handler)
        if trap and not trap.after:
            self._spring(trap)
        if self._shut.is_set():
            handler.close_connection = True
            return
        answer, content = self._forward(handler, body)
        if trap:
            self._spring(trap)
            handler.close_connection = True
            return
        self._answer(handler, answer, content)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """What S3 answers."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("expect", "connection")}
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def _trapped(self, handler: BaseHTTPRequestHandler) -> Trap | None:
        trap = self._trap
        written = handler.command == "PUT" and trap and re.search(rf"/{trap.log}/[0-9]+$", urlsplit(handler.path).path)
        return trap if trap and written and next(self._calls) == trap.call else None

    def _spring(self, trap: Trap) -> None:
        self._shut.set()
        trap.kill()

    def _answer(self, handler: BaseHTTPRequestHandler, answer: http.client.HTTPResponse, content: bytes) -> None:
        handler.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length") or (
                name.lower() == "content-length" and not content
            ):
                handler.send_header(name, value)
        if content or answer.getheader("Content-Length") is None:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
