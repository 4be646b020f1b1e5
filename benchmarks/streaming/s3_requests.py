"""How many requests a contestant sends to S3: a proxy in front of the emulated one, which is the same for all."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

from tests.forwarding_s3 import ForwardingS3


class CountedS3(ForwardingS3):
    """A proxy that counts; a context manager.

    Args:
        endpoint: of S3.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self._lock = threading.Lock()
        self._requests = 0

    @property
    def requests(self) -> int:
        """So far."""
        return self._requests

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Counts a request and lets S3 answer it."""
        with self._lock:
            self._requests += 1
        super().handle(handler, body)
