"""What a driver's JVM asks S3 passes through here, so that the driver can be killed before or after one of Spark's own requests."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.forwarding_s3 import ForwardingS3


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


class S3Gate(ForwardingS3):
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self._trap: Trap | None = None
        self._calls = itertools.count(1)
        # Once the driver is killed, what its JVM may still ask in its last moments is not heard.
        self._shut = threading.Event()

    def open(self, trap: Trap | None) -> None:
        """Lets requests pass, until one goes into the trap."""
        self._trap, self._calls = trap, itertools.count(1)
        self._shut.clear()

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Passes a request on, or springs the trap."""
        trap = self._trapped(handler)
        if trap and not trap.after:
            self._spring(trap)
        if self._shut.is_set():
            handler.close_connection = True
            return
        answer = self.forward(handler, body)
        if trap and trap.after:
            self._spring(trap)
            handler.close_connection = True
            return
        self.send(handler, answer)

    def _trapped(self, handler: BaseHTTPRequestHandler) -> Trap | None:
        trap = self._trap
        written = handler.command == "PUT" and trap and re.search(rf"/{trap.log}/[0-9]+$", urlsplit(handler.path).path)
        return trap if trap and written and next(self._calls) == trap.call else None

    def _spring(self, trap: Trap) -> None:
        self._shut.set()
        trap.kill()
