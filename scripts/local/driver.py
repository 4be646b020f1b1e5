"""The driver of one job as a local process, and its events."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.errors import QueryFailed
from penstock.scripts.error_classes import error_classes
from penstock.scripts.errors import DriverDied
from penstock.scripts.layout import python_path
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.sizing.errors import PenstockError, Place, raise_all

# A stopping driver has a micro-batch to finish.
DRIVER_GRACE_S = 60
# An empty line, which no event is.
_END = b"\n"


class LocalDriver:
    """A running driver.

    Args:
        configuration: the driver's configuration.
        folder: an existing folder for its configuration and its events.
        log: the file for Spark's log.
        environment: variables in addition to this process's.
        grace_s: seconds that it gets to finish its micro-batch.
    """

    def __init__(
        self,
        configuration: RuntimeConfiguration,
        *,
        folder: Path,
        log: Path,
        environment: Mapping[str, str],
        grace_s: float = DRIVER_GRACE_S,
    ) -> None:
        self.log = log
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pipe = folder / "events"
        file = folder / "runtime.json"
        configuration.write(file)
        env = {**os.environ, **environment, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", "penstock.jobs.driver.runtime", str(file), "--events", str(self._pipe)]
        # The driver asks its JVM to finish the micro-batch and closes what it holds open, so the JVM must outlive the signal.
        self._supervised = SupervisedProcess(command, env=env, log=log, cwd=folder, grace_s=grace_s, led=True)

    def __enter__(self) -> Self:
        os.mkfifo(self._pipe)
        # Opened for reading and writing, the pipe neither waits for the driver nor closes with it.
        self._events = os.open(self._pipe, os.O_RDWR)
        self._listening.start()
        try:
            self._supervised.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The driver's process id."""
        return self._supervised.pid

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The driver's next event; None if there is none within the timeout.

        Raises:
            PenstockError: the driver's failure.
            DriverDied: RUN-014, it exited without an event.
        """
        # Checked before the queue: the last events of a dying driver are in the queue by then.
        alive = self._supervised.alive()
        try:
            event = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            if alive:
                return None
            given = f"code {self._supervised.returncode}; the end of {self.log}:\n{self._supervised.tail()}"
            raise DriverDied(path="driver", given=given, need="a driver that runs until it is stopped", fix="check its log") from None
        if event["event"] == "failed":
            raise_all(reported_error(error) for error in event["errors"])
        return event

    def kill(self) -> None:
        """Kills it with its JVM."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Lets the driver finish its micro-batch and ends it, with its process group; all of its events have been read then. Idempotent."""
        self._supervised.stop()
        if self._listening.is_alive():
            # The first ends a line that may have no end.
            os.write(self._events, _END * 2)
            self._listening.join()

    def _listen(self) -> None:
        with os.fdopen(self._events, "rb") as events:
            for line in events:
                if line == _END:
                    return
                # A line that the driver was killed in is no JSON.
                with contextlib.suppress(json.JSONDecodeError):
                    self._queue.put(json.loads(line))


def reported_error(reported: Mapping[str, Any]) -> PenstockError:
    """The error that a driver reported, reconstructed.

    Args:
        reported: one of the errors of its event ``failed``.
    """
    known = {kind.code: kind for kind in error_classes("penstock.jobs")}
    at = Place(file=reported["file"], line=reported["line"], column=reported["column"]) if reported["file"] else None
    kind: type[PenstockError] = known.get(reported["code"], QueryFailed)
    return kind(path=reported["path"], given=reported["given"], need=reported["need"], fix=reported["fix"], at=at)
