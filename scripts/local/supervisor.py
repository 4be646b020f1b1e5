"""Restarts the driver of a job that runs on this machine, as the kubelet restarts the container of a pod.

Whether a job may start again is decided where it is decided in a pod: by the driver at its start, and by the recorded runs
(`penstock.jobs.driver.restart_policy`). Here is only when it starts, and that nothing of the last driver is left by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Protocol

from penstock.jobs.driver.backoff import Backoff
from penstock.jobs.driver.errors import JobStopped
from penstock.jobs.stream.streams import Tag
from penstock.scripts.background.readiness import ready
from penstock.scripts.errors import DriverDied
from penstock.scripts.local.read_partitions import ReadPartitions
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

# How soon a request to stop is noticed.
_LOOK_S = 0.5


class Driver(Protocol):
    """A running driver; see `penstock.scripts.local.driver.LocalDriver`."""

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """Its next event. Raises its failure."""

    def stop(self) -> None:
        """Ends it at a micro-batch boundary, with its process group."""

    def kill(self) -> None:
        """Kills it with its process group."""


class Supervisor:
    """Runs a job's driver until it is stopped, has finished, or is not to be started again.

    Args:
        job: its name.
        started: starts a driver, whose process group is gone when the context ends.
        why_over: why a job is not started again, of a driver that has failed since a time; None if it is.
        steps: receives a line for each start, failure and restart.
        backoff: the waits.
    """

    def __init__(
        self,
        job: str,
        started: Callable[[], AbstractContextManager[Driver]],
        why_over: Callable[[datetime], str | None],
        steps: Steps,
        backoff: Backoff | None = None,
    ) -> None:
        self._job = job
        self._started = started
        self._why_over = why_over
        self._steps = steps
        self._backoff = backoff or Backoff()
        self._driver: Driver | None = None
        self._asked = False
        self._killed = False
        # Of the running driver.
        self._read = ReadPartitions()

    def interrupt(self) -> None:
        """Stops the job at a micro-batch boundary; a second call kills its driver. Takes no lock, so a signal handler may call it."""
        if self._asked and self._driver is not None:
            self._killed = True
            self._driver.kill()
        self._asked = True

    def run(self) -> None:
        """Returns when the job was stopped, or has finished.

        Raises:
            PenstockError: the failure after which the job is not started again.
            KeyboardInterrupt: the driver was killed by a second interrupt.
        """
        waited_s = 0.0
        while not self._asked:
            since, began_s = datetime.now(UTC), time.monotonic()
            failure = self._failure()
            if failure is None:
                return
            if self._killed:
                raise KeyboardInterrupt
            self._refuse_restart(failure, since)
            waited_s = self._backoff.wait_s(waited_s, time.monotonic() - began_s)
            self._steps.line("restart", f"in {waited_s:g} s, after {_cause(failure)}")
            self._wait(waited_s)

    def _failure(self) -> PenstockError | None:
        """Runs a driver to its end. Returns its failure; None after a graceful stop."""
        try:
            with self._started() as driver:
                self._driver, self._read = driver, ReadPartitions()
                self._watch(driver)
        except PenstockError as error:
            return error
        except OSError as error:
            # Such as a full disk, which another process may empty.
            return DriverDied(path="driver", given=str(error), need="a driver that starts", fix="check this machine's disks and limits")
        finally:
            self._driver = None
        return None

    def _watch(self, driver: Driver) -> None:
        """Returns when the driver has ended gracefully. Raises its failure."""
        while not self._asked:
            if (event := driver.next_event(_LOOK_S)) is not None and self._told(event):
                return
        with self._steps.at("stop", f"{self._job} finishes its micro-batch") as step:
            driver.stop()
            # What it has said since, which ends with `stopped` or a failure.
            while (event := driver.next_event(0)) is None or not self._told(event):
                pass
            step.said = f"{self._job} has stopped"

    def _told(self, event: Mapping[str, Any]) -> bool:
        """Shows an event; whether it is a driver's last one."""
        name = event["event"]
        if name == "batch":
            self._read.take(event)
        elif name == "reading":
            self._steps.line("run", f"{event.get('query') or self._job} reads its sources; Spark UI at {event['ui']}")
            ready()
        elif name == "waiting":
            self._steps.line("wait", f"for the lease of {self._job}, held by {event['holder']}, until {event['until']}")
        elif name == "finished":
            self._steps.line("finished", f"{event.get('query') or self._job} has read all of its bounded input: {_counted(event)}")
            if self._read.sentences:
                self._steps.line("partitions", "\n".join(self._read.sentences))
        return bool(name == "stopped")

    def _refuse_restart(self, failure: PenstockError, since: datetime) -> None:
        """Raises a failure after which the job is not started again, or which comes from stopping it."""
        if self._asked or isinstance(failure, JobStopped):
            raise failure
        if (why := self._why_over(since)) is not None:
            self._steps.line("stopped", f"{self._job} is not started again as it is: {why}")
            raise failure

    def _wait(self, wait_s: float) -> None:
        until_s = time.monotonic() + wait_s
        while not self._asked and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left_s))


def _counted(finished: Mapping[str, Any]) -> str:
    """The totals of a bounded run, of all its drivers: ``3,000 records in, 746 rows out``."""
    records, tags = sum(finished["totalRowsIn"].values()), finished["totalTags"]
    aside = ", ".join(f"{rows:,} {tag}" for tag, rows in sorted(tags.items()) if rows and tag != Tag.DATA)
    return f"{records:,} records in, {tags.get(Tag.DATA, 0):,} rows out{f'; {aside}' if aside else ''}"


def _cause(failure: PenstockError) -> str:
    """In a line: the log of a driver that died without a word is left out."""
    first = failure.errors[0]
    at = f" at {first.at}" if first.at else ""
    given = first.given.partition("; the end of")[0].partition("\n")[0]
    return f"{first.code}{at}: {first.title}{f': {given}' if given else ''}"
