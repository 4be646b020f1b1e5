"""An HTTP server in front of an emulated S3 that passes requests on; what tests do to some of them is in its subclasses."""

from __future__ import annotations

import http.client
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

# The server sets its own.
_OF_THE_CONNECTION = ("transfer-encoding", "connection", "content-length")


class Answer(NamedTuple):
    """A response of S3."""

    status: int
    headers: list[tuple[str, str]]
    content: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed, or whose answer is dropped, breaks off its connection; anything else is reported."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ForwardingS3:
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        self._address = urlsplit(endpoint).netloc
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # An answer is several writes. They are not buffered either: a client waits a second for a "100 Continue" that is.
            disable_nagle_algorithm = True

            def do_any(self) -> None:
                proxy.handle(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_any  # noqa: N815

            def log_message(self, format: str, *arguments: Any) -> None:
                """Says nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """What clients take for S3."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answers a request as S3 does."""
        self.send(handler, self.forward(handler, body))

    def forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        """What S3 answers."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("expect", "connection")}
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        """Answers a request."""
        handler.send_response_only(answer.status)
        lengths = [value for name, value in answer.headers if name.lower() == "content-length"]
        for name, value in answer.headers:
            if name.lower() not in _OF_THE_CONNECTION:
                handler.send_header(name, value)
        # The length that a HEAD is answered with is the object's.
        if handler.command == "HEAD" and lengths:
            handler.send_header("Content-Length", lengths[0])
        elif answer.status != 204:
            handler.send_header("Content-Length", str(len(answer.content)))
        handler.end_headers()
        handler.wfile.write(answer.content)
