"""Events of a running query: commits, idleness, termination."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from penstock.jobs.driver.lag import Gauges, JobLag
from penstock.jobs.driver.listening import LightListener
from penstock.jobs.driver.micro_batch import Emit, MicroBatches
from penstock.jobs.sinks.sink import FOREVER_MS
from penstock.jobs.sources.ends import PartitionEnds
from penstock.jobs.stream.event_time import heartbeat

# Names in Spark 4.3.0's progress: StateStoreSaveExec and SessionWindowStateStoreSaveExec.
_OF_WINDOWS = frozenset({"stateStoreSave", "sessionWindowStateStoreSaveExec"})
# Custom metrics of RocksDBStateStoreProvider and HDFSBackedStateStoreProvider of Spark 4.3.0.
_SIZES = ("rocksdbSstFileSize", "stateOnCurrentVersionSizeBytes")
# Takes topic -> partition, as text -> the next offset to read.
Commit = Callable[[Mapping[str, Mapping[str, int]]], None]


class ProgressListener(LightListener):
    """Reports commits, idleness and termination of one query; a session's listeners hear of all its queries.

    Args:
        query: the query's name.
        ended: set when the query has terminated; others may set it too.
        emit: reports an event.
        gauges: show what a micro-batch measured.
        job_lag: of all queries of the job.
        batches: the micro-batches as they are written.
        commit: commits offsets to the consumer group; None: not configured.
        until: topic -> partition -> where a bounded run ends; empty: the query has no end.
        windows_only: whether time closes all groups of the query's aggregations, so that it is worth saying how many are open.
        close_when_idle: whether sinks close what they hold open as soon as the query is idle.
    """

    def __init__(
        self,
        query: str,
        ended: threading.Event,
        emit: Emit,
        gauges: Gauges,
        job_lag: JobLag,
        batches: MicroBatches,
        commit: Commit | None = None,
        until: PartitionEnds = MappingProxyType({}),
        *,
        windows_only: bool = False,
        close_when_idle: bool = False,
    ) -> None:
        self._query = query
        self._ended = ended
        self._emit = emit
        self._gauges = gauges
        self._job_lag = job_lag
        self._batches = batches
        self._commit = commit
        self._until = until
        self._windows_only = windows_only
        self._close_when_idle = close_when_idle
        batches.pulse.began = self._began
        # Id of the query's run, by which events are known.
        self._run: str | None = None
        # Set only by the query's termination, which Spark reports last.
        self.reported_all = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to report: `reading` already has been. Spark calls this before the query begins."""
        if event.name == self._query:
            self._run = str(event.runId)
            self._batches.pulse.beat()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is committed."""
        progress = event.progress
        if str(progress.runId) != self._run:
            return
        self._batches.pulse.beat()
        self._batches.state_bytes = _state_bytes(progress)
        rows = [source.numInputRows for source in progress.sources if not source.description.startswith(heartbeat.DESCRIPTION)]
        ends = _merged((source.endOffset for source in progress.sources), self._until)
        detail = {
            "batch": progress.batchId,
            # Spark's own count grows with every task that runs again.
            "rows": self._batches.rows_read.pop(progress.batchId, 0),
            "durationMs": progress.durationMs.get("triggerExecution", 0),
            "phasesMs": dict(progress.durationMs),
            "ends": ends,
            **({"openWindows": _open_windows(progress)} if self._windows_only else {}),
            **({"state": _state(progress)} if progress.stateOperators else {}),
        }
        if self._commit is not None:
            self._commit(ends)
        offsets = [(source.endOffset, source.latestOffset) for source in progress.sources]
        behind = self._job_lag.committed(self._query, offsets, self._until)
        self._batches.lease.idle = False
        self._gauges.show(self._batches.measured)
        self._emit("committed", {**detail, "lag": behind, "lagRecords": self._job_lag.records})
        if len(rows) < len(progress.sources) and not any(rows) and not any(behind.values()):
            # With a heartbeat micro-batches continue, and Spark never reports the query as idle.
            self._idle()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """All available input has been processed, including trailing empty micro-batches."""
        if str(event.runId) == self._run:
            self._idle()

    def _began(self) -> None:
        self._job_lag.began(self._query)
        self._batches.lease.idle = False

    def _idle(self) -> None:
        self._batches.pulse.beat()
        behind = self._job_lag.idle(self._query)
        if self._batches.pulse.thread is not None:
            # Spark reports asynchronously: a micro-batch has begun since.
            self._job_lag.began(self._query)
        self._batches.lease.idle = self._job_lag.all_idle
        self._batches.idle(FOREVER_MS if self._close_when_idle else time.time_ns() // 1_000_000)
        self._emit("idle", {"lagRecords": behind})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has terminated, with or without an error."""
        if str(event.runId) == self._run:
            self.reported_all.set()
            self._ended.set()


def _open_windows(progress: StreamingQueryProgress) -> int:
    """Groups in the state of windows, after a micro-batch; only if Spark counts the rows of a state."""
    return sum(operator.numRowsTotal for operator in progress.stateOperators if operator.operatorName in _OF_WINDOWS)


def _state_bytes(progress: StreamingQueryProgress) -> int | None:
    """Size of the state of all operators after a micro-batch; None without any, or if no backend says it."""
    sizes = [operator.customMetrics[name] for operator in progress.stateOperators for name in _SIZES if name in operator.customMetrics]
    return sum(sizes) if sizes else None


def _state(progress: StreamingQueryProgress) -> dict[str, int]:
    """What all operators' state has after a micro-batch, as far as its backend says it, and what the micro-batch has written to it.

    ``rows`` is 0 where Spark does not count them, see `penstock.jobs.driver.session.state_conf`. ``puts`` and ``putBytes`` are of RocksDB:
    rows with their keys, before compression.
    """
    written = {
        field: sum(operator.customMetrics.get(name, 0) for operator in progress.stateOperators)
        for field, name in {"puts": "rocksdbPutCount", "putBytes": "rocksdbTotalBytesWritten"}.items()
    }
    return {"rows": sum(operator.numRowsTotal for operator in progress.stateOperators), "bytes": _state_bytes(progress) or 0, **written}


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
