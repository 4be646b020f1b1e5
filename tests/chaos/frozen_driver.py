"""A driver that is frozen, all of its processes, and woken later: what a suspended machine or a partitioned node makes of it."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

from penstock.sizing.errors import PenstockError
from tests.chaos.killed_job import LIMIT_S, DoomedDriver
from tests.chaos.processes import send, tree
from tests.chaos.s3_gate import S3Gate, Trap


def freeze(pid: int) -> None:
    """Stops a process and all that it has started."""
    send(signal.SIGSTOP, tree(pid))


def wake(pid: int) -> None:
    """Lets them go on, the process itself last: it finds its JVM awake."""
    send(signal.SIGCONT, reversed(tree(pid)))


def is_frozen(pid: int) -> bool:
    """Whether a process is stopped."""
    # Source: proc_pid_stat(5): the state follows the name, which is in parentheses.
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "T"


def failure(driver: DoomedDriver) -> str:
    """Waits until a driver has failed by itself; the code of its error."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            driver.next_event(1)
        except PenstockError as error:
            return error.errors[0].code
    raise AssertionError(f"the driver did not fail; see {driver.log}")


class FreezingGate(S3Gate):
    """A gate that freezes the driver at a request of its JVM, which is served or loses its answer when the driver is woken."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self.sprung = threading.Event()
        self._woken = threading.Event()

    def open(self, trap: Trap | None) -> None:
        """Lets requests pass, until one goes into the trap."""
        self.sprung.clear()
        self._woken.clear()
        super().open(trap)

    def resume(self) -> None:
        """Lets the request pass."""
        self._woken.set()

    def _spring(self, trap: Trap) -> None:
        trap.kill()
        self.sprung.set()
        self._woken.wait(2 * LIMIT_S)
