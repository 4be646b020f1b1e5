"""Finds a query that hangs: a task that never ends, a call that is never answered, a source that does not reply.

A query shows progress by a micro-batch that begins, is written or is committed, by a trigger that finds no input, by waiting for its next
trigger, and by its Spark jobs: one that starts or ends, a task that starts, ends or fails, and what running tasks report with their
executor's heartbeats (records read and shuffled, bytes spilled). A query without any of these for the whole limit hangs. What tasks report
alone would not do: while a Python function has a batch of rows, none of it changes.

Time during which this process did not run, frozen or suspended, does not count. A watch that the JVM does not answer goes on measuring; one
whose JVM has died ends, because that is another failure. Queries that a stop request lets finish are not judged: the pod's grace period is.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from penstock.jobs.driver.errors import NoProgress
from penstock.jobs.driver.pulse import Pulse
from penstock.jobs.driver.sight import Sight, Sights

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# The limit is measured to a twentieth, and no finer than needed: a look costs some calls to the JVM.
_LOOKS_PER_LIMIT = 20
_LONGEST_PAUSE_S = 10.0
# What a look at Spark may take once a query hangs: the JVM may hang too.
_DETAILS_S = 10.0
_TIME = "%Y-%m-%dT%H:%M:%SZ"

Result = TypeVar("Result")


class Watched(Protocol):
    """A query as the watch knows it."""

    @property
    def path(self) -> str:
        """What errors call it."""

    @property
    def pulse(self) -> Pulse:
        """Its signs of life."""

    @property
    def batch(self) -> int:
        """Number of the micro-batch that runs, or comes next."""

    @property
    def starting(self) -> int | None:
        """Id of the thread that starts it, while it does."""

    @property
    def running(self) -> StreamingQuery | None:
        """Spark's query; None before it is started and once it has terminated."""


@dataclass
class _Silence:
    """How long a query has shown no progress.

    Args:
        since: the time of the last progress, by the clock; for people.
        passed_s: seconds since then during which this process ran.
        shown: the evidence at that time.
    """

    since: datetime
    passed_s: float = 0.0
    shown: tuple[int, Sight | None] | None = None


class Watch:
    """Watches queries from the moment they are started; a context.

    Args:
        queries: of the driver.
        sights: looks at them in Spark.
        limit_s: seconds without progress after which a query hangs.
        stop: set when the job is to stop: nothing is reported from then on.
        hung: called once, by a thread of the watch, with the error of the first query that hangs.
    """

    def __init__(
        self, queries: Sequence[Watched], sights: Sights, limit_s: float, stop: threading.Event, hung: Callable[[NoProgress], None]
    ) -> None:
        self._queries = queries
        self._sights = sights
        self._limit_s = limit_s
        self._stop = stop
        self._hung = hung
        self._pause_s = min(_LONGEST_PAUSE_S, limit_s / _LOOKS_PER_LIMIT)
        self._over = threading.Event()
        # By the place of the query.
        self._seen: dict[int, Sight] = {}
        self._silences: dict[int, _Silence] = {}

    def __enter__(self) -> Self:
        # The look may never return, so another thread measures the time.
        for work in (self._look, self._measure):
            threading.Thread(target=work, name=f"penstock-watch{work.__name__}", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()

    def _look(self) -> None:
        while not self._over.wait(self._pause_s):
            for place, watched in enumerate(self._queries):
                query = watched.running
                try:
                    if query is not None:
                        self._seen[place] = self._sights.of(query)
                except (Py4JNetworkError, OSError):
                    # The JVM has died.
                    self._over.set()
                    return
                except (Py4JError, PySparkException):
                    # A stage whose data Spark has dropped meanwhile, or a query that terminates.
                    continue

    def _measure(self) -> None:
        before = time.monotonic()
        while not self._over.wait(self._pause_s):
            now = time.monotonic()
            passed_s, before = min(now - before, 2 * self._pause_s), now
            for place, query in enumerate(self._queries):
                if self._hangs(place, query, passed_s) and not self._stop.is_set():
                    self._over.set()
                    self._hung(self._fault(place, query))
                    return

    def _hangs(self, place: int, query: Watched, passed_s: float) -> bool:
        if query.running is None and query.starting is None:
            self._silences.pop(place, None)
            return False
        silence = self._silences.setdefault(place, _Silence(datetime.now(UTC)))
        shown = (query.pulse.beats, self._seen.get(place))
        if shown != silence.shown:
            self._silences[place] = _Silence(datetime.now(UTC), shown=shown)
            return False
        silence.passed_s += passed_s
        return silence.passed_s >= self._limit_s

    def _fault(self, place: int, query: Watched) -> NoProgress:
        silence = self._silences[place]
        doing, stacks = self._details(self._seen.get(place), query)
        stream = within(_DETAILS_S, lambda: self._sights.stream(query.running)) or ""
        print(f"{stacks}\n{stream}\n", file=sys.stderr, flush=True)
        return NoProgress(
            path=query.path,
            given=f"micro-batch {query.batch}, without progress since {silence.since:{_TIME}} ({silence.passed_s:.0f} s): {doing}",
            need=f"a micro-batch, a trigger without input or a task that ends, within progressTimeout, {self._limit_s:g} s",
            fix="see the stacks in this log and in the executors' for what blocks; if tasks take longer, raise spec.progressTimeout",
        )

    def _details(self, sight: Sight | None, query: Watched) -> tuple[str, str]:
        """What the query does, in one line, and the stacks of the threads that do it."""
        if query.starting is not None:
            return "Spark does not get to the end of its start", _text(_stack(query.starting))
        own = _stack(query.pulse.thread)
        if sight is None:
            return f"Spark does not answer{_at(own)}", _text(own)
        running = [stage for stage in sight.stages if stage.running]
        if not running:
            waiting = [str(stage) for stage in sight.stages if stage.ended + stage.failed < stage.tasks]
            return "; ".join(waiting) or f"{sight.doing}; no Spark job runs{_at(own)}", _text(own)
        executors = within(_DETAILS_S, lambda: self._sights.executors(running[0])) or []
        stacks = within(_DETAILS_S, lambda: "\n".join(self._sights.threads(executor) for executor in executors)) or ""
        where = f", on executor {', '.join(executors)}" if executors else ""
        return f"{'; '.join(map(str, running))}{where}", f"{_text(own)}\n{stacks}"


def within(limit_s: float, ask: Callable[[], Result]) -> Result | None:
    """What a call returns that may never end; None if it does not in time, or fails.

    Args:
        limit_s: seconds that it gets; then its thread is left behind.
        ask: the call.
    """
    results: list[Result] = []

    def run() -> None:
        with suppress(Py4JError, PySparkException, OSError):
            results.append(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    return results[0] if results else None


def _stack(thread: int | None) -> traceback.StackSummary:
    frame = sys._current_frames().get(thread) if thread is not None else None
    return traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()


def _at(stack: traceback.StackSummary) -> str:
    return f", the driver is in {stack[-1].name}, {stack[-1].filename}:{stack[-1].lineno}" if stack else ""


def _text(stack: traceback.StackSummary) -> str:
    return "".join(stack.format())
