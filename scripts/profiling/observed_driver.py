"""A driver that is watched: its micro-batches with their CPU seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.scripts.errors import RunTooLong
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.job_progress import JobProgress
from penstock.scripts.process.process_tree import ProcessTree
from penstock.sizing.load.observation import MicroBatch

# The longest time without an event, as in a local run.
STALL_LIMIT_S = 300.0
_LOOK_S = 0.5
_QUARANTINED, _LATE = "quarantined", "late"


@dataclass
class Observed:
    """What a driver has done so far.

    Args:
        batches: that have read rows, with the seconds since the first commit at which each was committed.
        idle: whether all is read.
        first_commit_s: by the monotonic clock; None: not yet.
        state: of the last commit, see `penstock.jobs.driver.progress`; empty of a query without state.
        puts: rows that were written to the state.
        put_bytes: their bytes.
    """

    batches: list[tuple[float, MicroBatch]] = field(default_factory=list)
    idle: bool = False
    first_commit_s: float | None = None
    state: Mapping[str, int] = field(default_factory=dict)
    puts: int = 0
    put_bytes: int = 0

    @property
    def elapsed_s(self) -> float:
        """From the first commit to the last one."""
        return self.batches[-1][0] if self.batches else 0.0

    def after(self, warm_up_s: float) -> list[MicroBatch]:
        """The micro-batches that were committed so long after the first, which warmed up."""
        return [batch for at_s, batch in self.batches[1:] if at_s >= warm_up_s]


class ObservedDriver:
    """A running driver whose events are read as they come. Of a job with several queries the first one's micro-batches are counted, and the
    CPU seconds of all.

    Args:
        driver: a running driver.
        check: raises if something around it has ended.
        stall_limit_s: the longest time without an event, in seconds.
    """

    def __init__(self, driver: LocalDriver, check: Callable[[], None], stall_limit_s: float = STALL_LIMIT_S) -> None:
        self._driver, self._check, self._stall_limit_s = driver, check, stall_limit_s
        self._own, self._all = ProcessTree(driver.pid), ProcessTree(os.getpid())
        self._progress = JobProgress()
        self._last_cpu: tuple[float, float] | None = None
        self._query: str | None = None
        self.observed = Observed()

    def watch(self, done: Callable[[Observed], bool]) -> Observed:
        """Reads events until something is done, or all is read.

        Raises:
            PenstockError: RUN-015, the driver's failure, or that of a component around it.
        """
        while not self.observed.idle and not done(self.observed):
            self._take(self._next())
        return self.observed

    @property
    def quarantined_all(self) -> bool:
        """Whether the job has read records, and has quarantined each of them."""
        read = sum(self._progress.rows_in.values())
        return read > 0 and self._progress.totals[_QUARANTINED] >= read

    @property
    def late_share(self) -> float:
        """Late rows among the records that were read."""
        return self._progress.totals[_LATE] / max(1, sum(self._progress.rows_in.values()))

    def _next(self) -> dict[str, Any]:
        until_s = time.monotonic() + self._stall_limit_s
        while time.monotonic() < until_s:
            self._check()
            event = self._driver.next_event(_LOOK_S)
            if event is not None:
                return event
        need = f"progress of the driver within {self._stall_limit_s:g} s"
        raise RunTooLong(path="driver", need=need, fix=f"check {self._driver.log}")

    def _take(self, event: Mapping[str, Any]) -> None:
        self._progress.take(event)
        if event["event"] == "reading" and self._query is None:
            # The events of the only query have no name.
            self._query = str(event["queries"][0]) if "queries" in event else ""
        elif event["event"] == "committed" and str(event.get("query", "")) == self._query:
            self._committed(event)
        elif event["event"] == "idle" and self._progress.idle and self.observed.batches:
            self.observed.idle = True

    def _committed(self, event: Mapping[str, Any]) -> None:
        now_s, own_s, all_s = time.monotonic(), self._own.cpu_s(), self._all.cpu_s()
        before, self._last_cpu = self._last_cpu, (own_s, all_s - own_s)
        seen = self.observed
        if seen.first_commit_s is None:
            seen.first_commit_s = now_s
        if event.get("state"):
            seen.state = event["state"]
            seen.puts += event["state"]["puts"]
            seen.put_bytes += event["state"]["putBytes"]
        if event["rows"]:
            spent = (None, None) if before is None else (own_s - before[0], max(0.0, all_s - own_s - before[1]))
            batch = MicroBatch(event["rows"], max(event["durationMs"], 1) / 1000, *spent)
            seen.batches.append((now_s - seen.first_commit_s, batch))
