"""What executors ask S3 passes through here, so that one of them can be killed or frozen at one of its requests."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.chaos import processes
from tests.forwarding_s3 import ForwardingS3


@dataclass
class RequestTrap:
    """Where an executor is stopped.

    Args:
        request: regular expression of method and path, ``PUT .*/state/``.
        call: at which of such requests of executors, from 1.
        after: whether S3 has answered by then.

    Attributes:
        executor: process id of the one that was caught.
    """

    request: str
    call: int = 1
    after: bool = False
    executor: int | None = None
    forward: bool = True
    _calls: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _caught: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    @property
    def caught(self) -> bool:
        """Whether an executor waits in it, or has waited."""
        return self._caught.is_set()

    def release(self, *, forward: bool) -> None:
        """Lets the request go on, to S3 or back to its executor; or drops it."""
        self.forward = forward
        self._released.set()

    def counts(self, text: str) -> bool:
        """Whether a request is the one."""
        return bool(re.search(self.request, text)) and next(self._calls) == self.call

    def hold(self, executor: int) -> bool:
        """Waits until it is released; whether the request goes on."""
        self.executor = executor
        self._caught.set()
        self._released.wait()
        return self.forward


class ExecutorGate(ForwardingS3):
    """A proxy in front of an emulated S3.

    Args:
        endpoint: of S3.
        executors: tells the process ids of the executors.
    """

    def __init__(self, endpoint: str, executors: Callable[[], Sequence[int]]) -> None:
        super().__init__(endpoint)
        self._executors = executors
        self._armed: RequestTrap | None = None
        self._one = threading.Lock()

    def arm(self, trap: RequestTrap | None) -> None:
        """Chooses a request, in the place of any chosen before."""
        self._armed = trap

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Passes a request on, or holds it in the trap."""
        trap, executor = self._caught(handler)
        if trap and not trap.after and not trap.hold(executor):
            handler.close_connection = True
            return
        answer = self.forward(handler, body)
        if trap and trap.after and not trap.hold(executor):
            handler.close_connection = True
            return
        self.send(handler, answer)

    def _caught(self, handler: BaseHTTPRequestHandler) -> tuple[RequestTrap | None, int]:
        trap, text = self._armed, f"{handler.command} {urlsplit(handler.path).path}"
        if trap is None or trap.caught or not re.search(trap.request, text):
            return None, 0
        executor = self._executor(handler.client_address[1])
        with self._one:
            return (trap, executor) if executor is not None and trap.counts(text) else (None, 0)

    def _executor(self, port: int) -> int | None:
        """The executor that a connection comes from, its Python workers included."""
        peer = self._server.server_address[1]
        return next((pid for pid in self._executors() if processes.owner(port, int(peer), processes.tree(pid)) is not None), None)
