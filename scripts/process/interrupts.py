"""Ctrl-C and SIGTERM as exceptions that end a verb in order, and that no library can swallow.

Python raises an interrupt between any two instructions of the main thread, a library's among them, and some have a bare ``except``: the
standard library's ``copyreg._slotnames``, which every ``copy.copy`` of a dictionary calls, has one. An interrupt that arrives there is
gone, and the verb goes on as if nobody had asked it to end. One that arrives just before a wait is not lost either:
`penstock.scripts.process.waking`.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn

from penstock.scripts.process.waking import woken_by_signals


class _Token:
    """What an interrupt carries, and nobody else: it is gone when the interrupt is. KeyboardInterrupt itself has no weak references."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __str__(self) -> str:
        return signal.Signals(self._number).name


class _Watched(weakref.ref[_Token]):
    """The token of an interrupt, and the number of its signal."""

    number: int


# The interrupt that is on its way to who ends the verb.
_on_its_way: _Watched | None = None
# Those that are gone before they got there; None ends who waits for them. Python ignores what is raised in the callback of a reference, so
# that is the queue's `put`, in which no signal is handled, and the signal is sent again from another thread.
_swallowed: SimpleQueue[_Watched | None] = SimpleQueue()


@contextmanager
def heard() -> Iterator[None]:
    """While a verb runs, Ctrl-C raises a KeyboardInterrupt, again if it was swallowed; SIGTERM does after `end_in_order`.

    Elsewhere than in the main thread, where Python takes no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    again = threading.Thread(target=_send_again, name="interrupts", daemon=True)
    again.start()
    # A shell without job control starts what it runs in the background with SIGINT ignored, and that is to stay so.
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        with woken_by_signals():
            yield
    finally:
        taken()
        for number, handler in before.items():
            signal.signal(number, handler)
        _swallowed.put(None)
        again.join()


def end_in_order() -> None:
    """Handle SIGTERM like Ctrl-C: what runs is stopped as it would be then, and Terraform writes its state."""
    signal.signal(signal.SIGTERM, _interrupt)


def taken() -> None:
    """For who catches an interrupt and does not pass it on: it has done its work."""
    global _on_its_way
    _on_its_way = None


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # In no variable of this frame, which the traceback keeps: a circle of references would outlive who swallows it.
    raise _watched(number)


def _watched(number: int) -> KeyboardInterrupt:
    global _on_its_way
    token = _Token(number)
    _on_its_way = _Watched(token, _swallowed.put)
    _on_its_way.number = number
    return KeyboardInterrupt(token)


def _send_again() -> None:
    while (swallowed := _swallowed.get()) is not None:
        if swallowed is _on_its_way:
            os.kill(os.getpid(), swallowed.number)
