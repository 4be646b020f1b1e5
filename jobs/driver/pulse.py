"""What a query tells of itself while it runs, without a look at Spark: a sign of life, and where its micro-batch is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Pulse:
    """Signs of life of a query.

    Args:
        beats: number of signs so far: a micro-batch that began, was written or committed, and a trigger without input.
        thread: id of the thread that runs the micro-batch's part in the driver; None: no thread does.
        began: called when a micro-batch has begun.
    """

    beats: int = 0
    thread: int | None = None
    began: Callable[[], None] = lambda: None

    def beat(self) -> None:
        """Gives a sign of life."""
        self.beats += 1

    @contextmanager
    def in_micro_batch(self) -> Iterator[None]:
        """Context in which this thread runs the micro-batch's part in the driver."""
        self.thread = threading.get_ident()
        self.began()
        self.beat()
        try:
            yield
        finally:
            self.thread = None
            self.beat()
