"""An S3 that answers some requests with errors, or lets a write wait until its client has given it up."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.forwarding_s3 import Answer, ForwardingS3

_REFUSED = "<Error><Code>{code}</Code><Message>of the test</Message></Error>"


class RefusingS3(ForwardingS3):
    """Answers 503 Slow Down to a share of all requests and 500 Internal Error to another one.

    Args:
        endpoint: of S3.
        seed: of what is refused.
        slow_down: share of the requests, 0 to 1.
        internal_error: share of the requests, 0 to 1.
    """

    def __init__(self, endpoint: str, seed: int, slow_down: float, internal_error: float) -> None:
        super().__init__(endpoint)
        self.answers: Counter[str] = Counter()
        self._shares = {"503 SlowDown": slow_down, "500 InternalError": internal_error}
        self._random, self._lock = random.Random(seed), threading.Lock()

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Passes a request on, or refuses it."""
        with self._lock:
            chosen = self._chosen(self._random.random())
            self.answers[chosen or "passed"] += 1
        if chosen is None:
            self.send(handler, self.forward(handler, body))
            return
        status, code = chosen.split()
        text = b"" if handler.command == "HEAD" else _REFUSED.format(code=code).encode()
        self.send(handler, Answer(int(status), [("Content-Type", "application/xml")], text))

    def _chosen(self, number: float) -> str | None:
        for answer, share in self._shares.items():
            if number < share:
                return answer
            number -= share
        return None


class HangingS3(ForwardingS3):
    """Lets writes wait: the n-th of each kind reaches S3 only some time after its client has given it up, and is answered by nobody.

    Args:
        endpoint: of S3.
        hangs_s: how long.
        kinds: name -> the path of an object that is of this kind.
    """

    def __init__(self, endpoint: str, hangs_s: float, kinds: dict[str, str]) -> None:
        super().__init__(endpoint)
        self.hung: list[str] = []
        self._hangs_s, self._kinds = hangs_s, kinds
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Passes a request on, at once or late."""
        if self._hangs(handler):
            time.sleep(self._hangs_s)
            self.forward(handler, body)
            handler.close_connection = True
            return
        self.send(handler, self.forward(handler, body))

    def _hangs(self, handler: BaseHTTPRequestHandler) -> bool:
        """Whether it is the second write of its kind."""
        path = urlsplit(handler.path).path
        kind = next((kind for kind, pattern in self._kinds.items() if re.search(pattern, path)), None)
        if handler.command != "PUT" or kind is None:
            return False
        with self._lock:
            self._seen[kind] += 1
            hangs = self._seen[kind] == 2
            self.hung += [kind] if hangs else []
        return hangs
