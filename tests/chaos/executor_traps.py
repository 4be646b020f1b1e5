"""The test's side of `tests.chaos.doomed_executor`: arms a point, and learns which worker was caught there."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05


@dataclass(frozen=True)
class Caught:
    """Where a worker stands.

    Args:
        worker: its process id.
        executor: process id of its executor.
    """

    worker: int
    executor: int


class Traps:
    """The traps of one cluster, one armed at a time.

    Args:
        folder: an existing folder that the executors' environment names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ids = (f"trap-{number}" for number in itertools.count(1))
        self._id = ""

    def arm(self, point: str, call: int) -> None:
        """Chooses a point, in the place of any chosen before, and at which of its calls from now on, from 1."""
        self._id = next(self._ids)
        temporary = self.folder / f"{self._id}.arming"
        temporary.write_text(json.dumps({"id": self._id, "point": point, "call": call}), encoding="utf-8")
        temporary.rename(self.folder / "armed")

    def caught(self) -> Caught | None:
        """The worker that stands in the trap, or has stood there."""
        file = self.folder / f"{self._id}.caught"
        if not file.exists():
            return None
        known = json.loads(file.read_text(encoding="utf-8"))
        return Caught(known["worker"], known["executor"])

    def release(self) -> None:
        """Lets the caught worker go on, if it is still there."""
        (self.folder / f"{self._id}.released").touch()

    @property
    def done(self) -> bool:
        """Whether the caught worker has gone on, and done what it was about to do."""
        return (self.folder / f"{self._id}.done").exists()

    @property
    def overtaken(self) -> bool:
        """Whether another attempt of the caught worker's task has come as far since."""
        return (self.folder / f"{self._id}.overtaken").exists()


def until(true: Callable[[], bool], limit_s: float, what: str) -> None:
    """Waits until something is so.

    Raises:
        AssertionError: it is not, within the limit.
    """
    end_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end_s, f"not within {limit_s:g} s: {what}"
        time.sleep(POLL_S)
