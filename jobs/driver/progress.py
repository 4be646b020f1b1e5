"""Events of a running query: commits, idleness, termination."""

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

from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.lag import Gauges, lag
from penstock.jobs.driver.micro_batch import Emit, MicroBatches
from penstock.jobs.kafka.offset_commits import OffsetCommits
from penstock.jobs.sinks.sink import FOREVER_MS
from penstock.jobs.sources.ends import PartitionEnds
from penstock.jobs.stream.event_time import heartbeat


class ProgressListener(StreamingQueryListener):
    """Reports commits, idleness and termination.

    Args:
        ended: set when the query has terminated; others may set it too.
        emit: reports an event.
        gauges: shows the lag and what a micro-batch measured.
        batches: the micro-batches as they are written.
        commits: commits offsets to the consumer group; None: not configured.
        bounded: the bounded run that the query is part of; None: it has no end.
        close_when_idle: whether sinks close what they hold open as soon as the query is idle.
    """

    def __init__(
        self,
        ended: threading.Event,
        emit: Emit,
        gauges: Gauges,
        batches: MicroBatches,
        commits: OffsetCommits | None = None,
        bounded: BoundedRun | None = None,
        *,
        close_when_idle: bool = False,
    ) -> None:
        self._ended = ended
        self._emit = emit
        self._gauges = gauges
        self._batches = batches
        self._commits = commits
        self._bounded = bounded
        self._close_when_idle = close_when_idle
        # Set only by the query's termination, which Spark reports last.
        self.reported_all = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to report: `reading` already has been."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is committed."""
        progress = event.progress
        rows = [source.numInputRows for source in progress.sources if not source.description.startswith(heartbeat.DESCRIPTION)]
        until = self._bounded.ends.by_topic() if self._bounded else {}
        ends = _merged((source.endOffset for source in progress.sources), until)
        detail = {
            "batch": progress.batchId,
            # Spark's own count grows with every task that runs again.
            "rows": self._batches.rows_read.pop(progress.batchId, 0),
            "durationMs": progress.durationMs.get("triggerExecution", 0),
            "phasesMs": dict(progress.durationMs),
            "ends": ends,
        }
        if self._commits is not None:
            self._commits.committed(ends)
        behind = lag(((source.endOffset, source.latestOffset) for source in progress.sources), until)
        self._gauges.behind(sum(behind.values()))
        self._gauges.show(self._batches.measured)
        self._emit("committed", {**detail, "lag": behind, "lagRecords": sum(behind.values())})
        if len(rows) < len(progress.sources) and not any(rows) and not any(behind.values()):
            # With a heartbeat micro-batches continue, and Spark never reports the query as idle.
            self._idle()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """All available input has been processed, including trailing empty micro-batches."""
        self._idle()

    def _idle(self) -> None:
        self._gauges.behind(0)
        self._batches.idle(FOREVER_MS if self._close_when_idle else time.time_ns() // 1_000_000)
        self._emit("idle", {"lagRecords": 0})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has terminated, with or without an error."""
        self.reported_all.set()
        self._ended.set()


def _merged(offsets: Iterable[str | None], until: PartitionEnds) -> dict[str, dict[str, int]]:
    """Topic -> partition -> offset; sources other than Kafka report something else, which is left out.

    Args:
        offsets: of each source, as JSON.
        until: where a bounded run ends; Spark may read on a little, and those records are not the job's.
    """
    merged: dict[str, dict[str, int]] = {}
    for text in offsets:
        document = json.loads(text) if text and text.startswith("{") else {}
        for topic, partitions in document.items():
            if isinstance(partitions, dict):
                ends = until.get(topic, {})
                merged[topic] = {number: min(offset, ends.get(int(number), offset)) for number, offset in partitions.items()}
    return merged
