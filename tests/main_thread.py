"""What the main thread does, for tests in which another one interrupts it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType, FrameType

# For what nothing here takes as long as.
_LIMIT_S = 30


def until_it_waits() -> None:
    """Returns once the main thread waits for something, other than for a thread that it starts."""
    until_s = time.monotonic() + _LIMIT_S
    while not _waits(list(_stack())):
        assert time.monotonic() < until_s, "the main thread does not wait"


def _waits(stack: list[CodeType]) -> bool:
    return stack[0] is threading.Condition.wait.__code__ and threading.Thread.start.__code__ not in stack


def _stack() -> Iterator[CodeType]:
    """The innermost function first."""
    frame: FrameType | None = sys._current_frames()[threading.main_thread().ident or 0]
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back
