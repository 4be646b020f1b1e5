"""An emulated S3 whose answers get lost: a proxy in front of it, which also counts the requests."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.forwarding_s3 import Answer, ForwardingS3

_XML = "<Error><Code>{code}</Code><Message>of a test</Message></Error>"


class Fault(StrEnum):
    """What happens to a PUT."""

    NONE = "it is answered"
    ANSWER_LOST = "S3 executes it, and the answer is lost"
    REQUEST_LOST = "S3 never receives it"
    CONFLICT = "409: another conditional request for the key is in progress"
    UNAVAILABLE = "503"
    DENIED = "403"


class FaultyS3(ForwardingS3):
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of the emulated S3.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self.faults: list[Fault] = []
        self.always = Fault.NONE
        # As S3 answers those who may not list the whole bucket.
        self.denies_missing = False
        self.requests: list[tuple[str, str]] = []
        self.before_answer: Callable[[str, str], None] | None = None

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Lets a fault happen to a PUT."""
        method, path = handler.command, urlsplit(handler.path).path
        self.requests.append((method, path))
        fault = (self.faults.pop(0) if self.faults else self.always) if method == "PUT" else Fault.NONE
        if fault is Fault.REQUEST_LOST:
            handler.close_connection = True
        elif fault is Fault.CONFLICT:
            self.send(handler, _error(409, "ConditionalRequestConflict"))
        elif fault is Fault.UNAVAILABLE:
            self.send(handler, _error(503, "ServiceUnavailable"))
        elif fault is Fault.DENIED:
            self.send(handler, _error(403, "AccessDenied"))
        else:
            self._answer(handler, body, path, lost=fault is Fault.ANSWER_LOST)

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes, path: str, *, lost: bool) -> None:
        method, answer = handler.command, self.forward(handler, body)
        if self.before_answer:
            self.before_answer(method, path)
        if answer.status == 404 and self.denies_missing and method in ("GET", "HEAD"):
            self.send(handler, Answer(403, [], b"") if method == "HEAD" else _error(403, "AccessDenied"))
        elif lost:
            handler.close_connection = True
        else:
            self.send(handler, answer)


def _error(status: int, code: str) -> Answer:
    return Answer(status, [], _XML.format(code=code).encode())
