"""When the pod of a driver is ready: Helm waits for that, and rolls a release back whose driver does not get there.

A driver is ready while its queries read. One whose job has changed has shown by then that its app can be planned and fits the state, but
not that its functions work: it is ready once each query has committed a micro-batch, or has found nothing to read.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping

from penstock.jobs.configuration.runtime import READY_AFTER_S
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.pod import reported_ready

# Of a query that has done what was there to do.
_DONE = ("committed", "idle")


class Readiness:
    """Reports that the pod is ready.

    Args:
        after_s: seconds after which the driver of a changed job is ready in any case: its first micro-batch may have hours of records.
        first: called once, when it is ready for the first time, by a thread that the queries do not wait for.
    """

    def __init__(self, after_s: float = READY_AFTER_S, first: Callable[[], object] | None = None) -> None:
        self._after_s = after_s
        self._first = first
        # Names of the queries that have; of a job with one query the event has no name.
        self._done: set[str] = set()
        self._changed = threading.Condition()

    def watching(self, emit: Emit) -> Emit:
        """Reports events, and takes note of the queries that have done what was there to do."""

        def watched(event: str, detail: Mapping[str, object]) -> None:
            emit(event, detail)
            if event in _DONE:
                with self._changed:
                    self._done.add(str(detail.get("query", "")))
                    self._changed.notify_all()

        return watched

    @contextlib.contextmanager
    def reported(self, queries: int, *, changed: bool) -> Iterator[None]:
        """Context in which queries read.

        Args:
            queries: how many.
            changed: whether the job has changed since its last micro-batch.
        """
        if not changed:
            with self._ready():
                yield
            return
        over = False
        with contextlib.ExitStack() as ready:

            def report() -> None:
                with self._changed:
                    self._changed.wait_for(lambda: over or len(self._done) >= queries, self._after_s)
                    if not over:
                        ready.enter_context(self._ready())

            thread = threading.Thread(target=report, name="penstock-readiness", daemon=True)
            thread.start()
            try:
                yield
            finally:
                with self._changed:
                    over = True
                    self._changed.notify_all()
                thread.join()

    @contextlib.contextmanager
    def _ready(self) -> Iterator[None]:
        first, self._first = self._first, None
        if first is not None:
            threading.Thread(target=first, name="penstock-reading", daemon=True).start()
        with reported_ready():
            yield
