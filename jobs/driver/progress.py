"""What a running query tells of itself: commits, having nothing to do, its end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from penstock.jobs.driver.lag import Gauges, lag
from penstock.jobs.driver.micro_batch import Emit, MicroBatches
from penstock.jobs.kafka.offset_commits import OffsetCommits
from penstock.jobs.sinks.sink import FOREVER_MS
from penstock.jobs.stream.event_time import heartbeat


class ProgressListener(StreamingQueryListener):
    """Tells of commits, of having nothing to do, and of the end.

    Args:
        ended: set when the query is over; others may set it too.
        emit: tells what happens.
        gauges: shows the lag and what a micro-batch measured.
        batches: the micro-batches as they are written.
        commits: tells the consumer group how far the job has read; None: nobody asks.
        close_when_idle: whether what sinks hold open is closed as soon as there is nothing to do.
    """

    def __init__(
        self,
        ended: threading.Event,
        emit: Emit,
        gauges: Gauges,
        batches: MicroBatches,
        commits: OffsetCommits | None = None,
        *,
        close_when_idle: bool = False,
    ) -> None:
        self._ended = ended
        self._emit = emit
        self._gauges = gauges
        self._batches = batches
        self._commits = commits
        self._close_when_idle = close_when_idle
        # Set by the query's end alone, which Spark tells last.
        self.told_all = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to tell: `reading` has been."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is committed."""
        progress = event.progress
        rows = [source.numInputRows for source in progress.sources if not source.description.startswith(heartbeat.DESCRIPTION)]
        ends = _merged(source.endOffset for source in progress.sources)
        detail = {
            "batch": progress.batchId,
            "rows": sum(rows),
            "durationMs": progress.durationMs.get("triggerExecution", 0),
            "ends": ends,
        }
        if self._commits is not None:
            self._commits.committed(ends)
        behind = lag((source.endOffset, source.latestOffset) for source in progress.sources)
        self._gauges.behind(sum(behind.values()))
        self._gauges.show(self._batches.measured)
        self._emit("committed", {**detail, "lag": behind, "lagRecords": sum(behind.values())})
        if len(rows) < len(progress.sources) and not any(rows) and not any(behind.values()):
            # With a heartbeat micro-batches go on, and Spark never tells that it has nothing to do.
            self._idle()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """All that there is has been processed, empty micro-batches after it included."""
        self._idle()

    def _idle(self) -> None:
        self._gauges.behind(0)
        self._batches.idle(FOREVER_MS if self._close_when_idle else time.time_ns() // 1_000_000)
        self._emit("idle", {"lagRecords": 0})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query is over, well or not."""
        self.told_all.set()
        self._ended.set()


def _merged(offsets: Iterable[str | None]) -> dict[str, dict[str, int]]:
    """Topic -> partition -> offset; sources that are not Kafka's tell other things, which are left out."""
    merged: dict[str, dict[str, int]] = {}
    for text in offsets:
        told = json.loads(text) if text and text.startswith("{") else {}
        merged.update({topic: partitions for topic, partitions in told.items() if isinstance(partitions, dict)})
    return merged
