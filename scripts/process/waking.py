"""Wakes the main thread for a signal that does not do so by itself.

Python runs the handlers of signals in the main thread, between two of its instructions. A signal that arrives just before the main thread
waits for something, or in another thread, ends no wait: its handler runs once the wait is over, which may be never.
Source: Python's documentation, "signal", "Execution of Python signal handlers" and ``set_wakeup_fd``.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# How often the main thread is woken until it has run its handlers, in seconds.
_AGAIN_S = 0.05
# By default it does nothing. Its handler runs after those of lower numbers, which Ctrl-C and SIGTERM have.
_WAKE = signal.SIGURG


class _Waking:
    """Wakes the main thread after each signal that has a handler in Python, which writes its number to a socket."""

    def __init__(self) -> None:
        self._arrived, self._written = socket.socketpair()
        # Python's handler of the C level must never wait.
        self._written.setblocking(False)
        self._awake = False
        self._over = False
        self._thread = threading.Thread(target=self._wake_after_each, name="waking", daemon=True)

    def begin(self) -> None:
        self._handler = signal.signal(_WAKE, self._woken)
        self._descriptor = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        self._thread.start()

    def end(self) -> None:
        self._over = True
        signal.set_wakeup_fd(self._descriptor)
        self._written.close()
        self._thread.join()
        self._arrived.close()
        signal.signal(_WAKE, self._handler)

    def _woken(self, number: int, frame: FrameType | None) -> None:
        self._awake = True

    def _wake_after_each(self) -> None:
        while numbers := self._arrived.recv(1024):
            self._awake = set(numbers) == {_WAKE}
            while not (self._awake or self._over):
                signal.pthread_kill(threading.main_thread().ident or 0, _WAKE)
                # Not until an event is set: a handler runs in the midst of anything, and may take no lock.
                time.sleep(_AGAIN_S)


@contextmanager
def woken_by_signals() -> Iterator[None]:
    """Meanwhile each signal with a handler ends a wait of the main thread for as long as the handler runs, and for good if that raises.

    Elsewhere than in the main thread, where Python takes no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waking = _Waking()
    waking.begin()
    try:
        yield
    finally:
        waking.end()
