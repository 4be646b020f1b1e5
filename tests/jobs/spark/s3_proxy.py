"""Between Spark and the emulated S3: notes each request, and answers some in S3's place as a test wants."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

# A connection that is closed without an answer: before S3 has the request, or after it has acted on it.
CUT_BEFORE, CUT_AFTER = -1, -2
_ERRORS = {409: "ConditionalRequestConflict", 503: "SlowDown"}


class Request(NamedTuple):
    """What was asked.

    Args:
        method: such as ``PUT``.
        path: bucket and key, without the query.
        query: of the address.
        conditional: whether it has ``If-None-Match: *``.
    """

    method: str
    path: str
    query: str
    conditional: bool


# A request -> the status to answer with, `CUT_BEFORE` or `CUT_AFTER`; None: S3 answers.
Rule = Callable[[Request], int | None]


class S3Proxy:
    """A proxy in front of S3; a context manager.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        self._address = urlsplit(endpoint).netloc
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.rule: Rule = lambda request: None
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_any(self) -> None:
                proxy._handle(self)

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
        """What Spark takes for S3."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def seen(self, method: str, ending: str = "") -> list[Request]:
        """The requests of a method whose path ends so."""
        with self._lock:
            return [request for request in self.requests if request.method == method and request.path.endswith(ending)]

    def clear(self) -> None:
        """Forgets the requests so far."""
        with self._lock:
            self.requests.clear()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        parts = urlsplit(handler.path)
        request = Request(handler.command, parts.path, parts.query, handler.headers.get("If-None-Match") == "*")
        with self._lock:
            self.requests.append(request)
        answer = self.rule(request)
        if answer is not None and answer != CUT_AFTER:
            self._answer_itself(handler, answer)
            return
        status, headers, content = self._forward(handler, body)
        if answer == CUT_AFTER:
            handler.close_connection = True
        else:
            self._send(handler, status, headers, content)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("expect", "connection")}
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer_itself(self, handler: BaseHTTPRequestHandler, status: int) -> None:
        if status == CUT_BEFORE:
            handler.close_connection = True
            return
        content = f"<Error><Code>{_ERRORS[status]}</Code><Message>said by the proxy</Message></Error>".encode()
        self._send(handler, status, [("Content-Type", "application/xml")], content)

    def _send(self, handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        handler.send_response_only(status)
        lengths = [value for name, value in headers if name.lower() == "content-length"]
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                handler.send_header(name, value)
        # The length that a HEAD is answered with is the object's.
        if handler.command == "HEAD" and lengths:
            handler.send_header("Content-Length", lengths[0])
        elif status != 204:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that a test or Spark breaks off is no fault."""
