"""Between Spark and the emulated S3: notes each request, and answers some in S3's place as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.forwarding_s3 import Answer, ForwardingS3

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


class S3Proxy(ForwardingS3):
    """A proxy in front of S3; a context manager.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.rule: Rule = lambda request: None

    def seen(self, method: str, ending: str = "") -> list[Request]:
        """The requests of a method whose path ends so."""
        with self._lock:
            return [request for request in self.requests if request.method == method and request.path.endswith(ending)]

    def clear(self) -> None:
        """Forgets the requests so far."""
        with self._lock:
            self.requests.clear()

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Notes a request and answers it by the rule."""
        parts = urlsplit(handler.path)
        request = Request(handler.command, parts.path, parts.query, handler.headers.get("If-None-Match") == "*")
        with self._lock:
            self.requests.append(request)
        wanted = self.rule(request)
        answer = self.forward(handler, body) if wanted in (None, CUT_AFTER) else None
        if wanted in (CUT_BEFORE, CUT_AFTER):
            handler.close_connection = True
        else:
            self.send(handler, answer or _error(wanted or 0))


def _error(status: int) -> Answer:
    content = f"<Error><Code>{_ERRORS[status]}</Code><Message>said by the proxy</Message></Error>".encode()
    return Answer(status, [("Content-Type", "application/xml")], content)
