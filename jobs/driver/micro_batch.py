"""One micro-batch: its rows go to the sinks, its record to the checkpoint, the next watermark to the engine."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.calls import journal
from penstock.jobs.blocks.keyed.deduplicate import dropped
from penstock.jobs.driver.gauges import measured, of_query
from penstock.jobs.driver.lag import positions
from penstock.jobs.driver.pulse import Pulse
from penstock.jobs.driver.shares import Share
from penstock.jobs.sinks.sink import FOREVER_MS, Batch, BatchSink
from penstock.jobs.sources.ends import PartitionEnds
from penstock.jobs.sources.records import TOLERATED
from penstock.jobs.spec import QuarantineLimit
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.lease import Lease
from penstock.jobs.stream import skew
from penstock.jobs.stream.event_time.engine import Engine, evaluated, unordered
from penstock.jobs.stream.leaving import Counting, Passed, TagCount
from penstock.jobs.stream.quarantine import hold_limit, side_records
from penstock.jobs.stream.selections import DATA, Step, all_columns_but_marks, applied, mark
from penstock.jobs.stream.side_outputs import TAG, SideRows
from penstock.jobs.stream.streams import NO_SIDE_OUTPUT, Tag
from penstock.jobs.stream.task_context import set_batch_time, set_watermark
from penstock.jobs.stream.task_errors import of_a_task
from penstock.jobs.watermark import InputTime, Seen, Watermarks, WhenIdle

Emit = Callable[[str, Mapping[str, object]], None]


class PartitionsGrew(Exception):
    """A topic has partitions that the running query was not planned for; the query is planned again and reruns the micro-batch."""


class CheckpointAdvanced(Exception):
    """Another driver has committed micro-batches since this one read the checkpoint; the query is planned again from there."""


class Finished(Exception):
    """The input of a bounded run has ended and everything has been closed, so no further micro-batch begins."""


class Stopping(Exception):
    """The job has been asked to stop, so the next micro-batch does not begin."""


@dataclass(frozen=True)
class Route:
    """Data rows on their way to a sink.

    Args:
        name: of the sink.
        sink: where they go.
        chosen: whether it gets only the rows that `routed` marked for it.
        step: makes its rows of a micro-batch's; None: they are written as they are.
        direct: whether the sink may evaluate the query itself, because it does so once, or at least never in part.
        few: whether it may then do so in few tasks, by the records that the micro-batch reads.
    """

    name: str
    sink: BatchSink
    chosen: bool = False
    step: Step | None = None
    direct: bool = False
    few: bool = False


def never(engine: Engine) -> bool:
    """Whether an input without an end ends with a micro-batch."""
    return False


@dataclass
class MicroBatches:
    """The function that Spark calls with every micro-batch.

    Each sink is idempotent by the micro-batch's number or writes at least once, and Spark commits after this returns: a crash anywhere
    inside reruns it.

    Args:
        session: Spark's session.
        engine: the query, seen from inside.
        checkpoint: where the record goes.
        times: input -> its event-time settings, for inputs with event time.
        splits: input -> labels of the splits that its watermark is computed over, as of when the query was planned; for Kafka, its
            partitions.
        routes: the sinks of the data rows, in the order in which they are written.
        side_outputs: tag -> the sink of its rows.
        last: the record of the previous micro-batch.
        emit: reports events to the process that started the driver.
        lease: of the checkpoint.
        strict: see `penstock.jobs.stream.streams.Stream`.
        apart: see `Batch`.
        when_idle: what the watermark does while every input is idle.
        quarantine: how many bad records fail the job; None: no limit.
        input_ended: whether a bounded input ends with the running micro-batch.
        until: topic -> partition -> where a bounded run ends; empty: the query has no end.
        share: of the query, if the job has several; None: it is the only one.
        files: source of files -> URI of their folder; a micro-batch of one reports its partitions.
        counting: of all queries of the session.
        failure: the exception of the last call.
        stopping: once set, no further micro-batch begins.
        pulse: signs of life of the query.
        measured: name of a gauge -> value after the last micro-batch.
        rows_read: micro-batch -> records that it read, until its commit is reported.
        state_bytes: size of the query's state as Spark has last reported it; None: not yet, or no state.
    """

    session: SparkSession
    engine: Engine
    checkpoint: Checkpoint
    times: Mapping[str, InputTime]
    splits: Mapping[str, Sequence[str]]
    routes: Sequence[Route]
    side_outputs: Mapping[str, BatchSink]
    last: BatchRecord
    emit: Emit
    lease: Lease
    strict: bool = True
    apart: bool = False
    when_idle: WhenIdle = "stand"
    quarantine: QuarantineLimit | None = None
    input_ended: Callable[[Engine], bool] = never
    until: PartitionEnds = field(default_factory=dict)
    share: Share | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    counting: Counting = field(default_factory=Counting)
    failure: Exception | None = field(default=None)
    stopping: threading.Event = field(default_factory=threading.Event)
    pulse: Pulse = field(default_factory=Pulse)
    measured: Mapping[str, int] = field(default_factory=dict)
    rows_read: dict[int, int] = field(default_factory=dict)
    state_bytes: int | None = None
    _lost: set[str] = field(default_factory=set)
    _between: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Runs one micro-batch. Its exception is kept in `failure`, because Spark passes on only the text."""
        try:
            with self.pulse.in_micro_batch(), self._between:
                self._run(batch, number)
        except Exception as error:
            self.failure = of_a_task(error) or error
            raise

    def check(self) -> None:
        """Checks whether the sinks can be written to. Raises what they raise."""
        for sink in [*(route.sink for route in self.routes), *self.side_outputs.values()]:
            sink.check()

    def idle(self, now_ms: int) -> None:
        """Lets the sinks close what they hold open while no micro-batch runs.

        Args:
            now_ms: epoch milliseconds by the clock; `FOREVER_MS` closes everything.
        """
        # What a driver holds open is closed by the one that has taken over its checkpoint.
        if self.lease.lost or (now_ms != FOREVER_MS and not self.lease.sure):
            return
        if self._between.acquire(blocking=now_ms == FOREVER_MS):
            try:
                for sink in [*(route.sink for route in self.routes), *self.side_outputs.values()]:
                    sink.idle(now_ms)
            finally:
                self._between.release()

    def _run(self, batch: DataFrame, number: int) -> None:
        if self.stopping.is_set():
            raise Stopping
        if self.last.closed:
            raise Finished
        self.lease.check()
        if number != self.last.batch + 1:
            raise CheckpointAdvanced
        if any(label not in self._labels for label in self.engine.partitions()):
            raise PartitionsGrew
        set_batch_time(self.session, self.engine.batch_time_ms())
        with self.counting.micro_batch(self.session):
            self._write_and_record(batch, number)
        # Spark begins a micro-batch only after the previous one is committed, so its responses are no longer needed.
        journal.clear(self.checkpoint, keep=number)

    def _write_and_record(self, batch: DataFrame, number: int) -> None:
        side_rows = SideRows.of_micro_batch(self.session, self.checkpoint, number, self.share.others if self.share else frozenset())
        direct = [route for route in self.routes if route.direct] if self.quarantine is None else []
        passed, keys = (self._written_directly if direct else self._written)(unordered(batch), side_rows)
        self.lease.check()
        if passed.staged:
            side_rows.delete()
        tags = self._tags(passed)
        self._warn_of_lost_rows(tags)
        self._record(number, tags, passed, keys)

    def _written_directly(self, batch: DataFrame, side_rows: SideRows) -> tuple[Passed, Mapping[str, skew.Keys]]:
        """Writes a micro-batch to its only sink, which evaluates the query; what has left the stream is known afterwards."""
        (route,) = self.routes
        route.sink.write(batch, Batch(side_rows.batch, self.engine.records(), self.engine.batch_time_ms(), few=route.few))
        passed, keys = side_rows.passed(self.session), skew.observed_keys(self.engine)
        self._write_side_outputs(side_rows, passed)
        return passed, keys

    def _written(self, batch: DataFrame, side_rows: SideRows) -> tuple[Passed, Mapping[str, skew.Keys]]:
        """Evaluates the query, then writes the rows to the sinks."""
        batch = batch.persist()
        try:
            evaluated(batch)
            # Before the sinks: rows that are lost with an executor afterwards are observed again by the sinks' jobs, and only they.
            passed, keys = side_rows.passed(self.session), skew.observed_keys(self.engine)
            if self.quarantine:
                bad = passed.by_tag().get(Tag.QUARANTINED, TagCount()).rows
                hold_limit(self.quarantine, side_rows.rows(self.session, passed), bad, sum(self._counted(self._seen(passed)).values()))
            # A driver that was frozen until here writes nothing more: sinks that are written at least once would get its rows too.
            self.lease.check()
            self._write_side_outputs(side_rows, passed)
            self._write(batch, passed.rows.get(DATA, 0), side_rows.batch)
        finally:
            batch.unpersist()
        return passed, keys

    def _write_side_outputs(self, side_rows: SideRows, passed: Passed) -> None:
        rows = side_rows.rows(self.session, passed)
        if rows is None:
            return
        time_ms, counts = self.engine.batch_time_ms(), passed.by_tag()
        # A sink is written to once per micro-batch, by whose number it recognises a replay.
        for sink in {id(sink): sink for sink in self.side_outputs.values()}.values():
            tags = [tag for tag, its in self.side_outputs.items() if its is sink and tag in counts and counts[tag].kept]
            if tags:
                count = sum((counts[tag] for tag in tags), TagCount())
                number = side_rows.batch
                records = side_records(rows.where(F.col(TAG).isin(tags)), number, count, self.share.query if self.share else "")
                sink.write(records, Batch(number, count.rows, time_ms, few=True))

    @cached_property
    def _labels(self) -> frozenset[str]:
        """Of all splits."""
        return frozenset(label for labels in self.splits.values() for label in labels)

    def _tags(self, passed: Passed) -> dict[str, int]:
        """Tag -> its rows, those that only passed included."""
        counts = Counter({tag: count.rows for tag, count in passed.by_tag().items() if tag != TOLERATED})
        counts[Tag.DATA.value] += passed.rows.get(DATA, 0)
        counts[Tag.FILTERED.value] += dropped(passed)
        return {tag: rows for tag, rows in counts.items() if rows}

    def _seen(self, passed: Passed) -> dict[str, dict[str, Seen]]:
        """Source -> split -> what was read from it."""
        return {name: _seen(passed.splits.get(name, {}), labels) for name, labels in self.splits.items()}

    def _counted(self, seen: Mapping[str, Mapping[str, Seen]]) -> dict[str, int]:
        """Source -> records read, of the sources that this query counts."""
        rows = {name: sum(split.rows for split in splits.values()) for name, splits in seen.items()}
        return {name: read for name, read in rows.items() if self.share is None or name in self.share.counted}

    def _warn_of_lost_rows(self, tags: Mapping[str, int]) -> None:
        """Warns once per tag, chosen by a function of the app at run time, that its rows are only counted."""
        for tag in tags.keys() - self.side_outputs.keys() - NO_SIDE_OUTPUT - self._lost:
            self._lost.add(tag)
            warning = f'rows with the tag "{tag}" are counted but not written: add job.side_output(sink, "{tag}"), or correct the tag'
            print(f"WARN {warning}", file=sys.stderr)

    def _write(self, batch: DataFrame, count: int, number: int) -> None:
        time_ms = self.engine.batch_time_ms()
        data = all_columns_but_marks(batch, [route.name for route in self.routes if route.chosen])
        for route in self.routes:
            if route.step is not None:
                self._write_made(route, applied(route.step, data, route.name), number)
            elif route.chosen:
                rows = batch.where(F.col(mark(route.name))).select(data.columns)
                route.sink.write(rows, Batch(number, rows.count() if count else 0, time_ms, few=True, apart=self.apart))
            else:
                route.sink.write(data, Batch(number, count, time_ms, few=True, apart=self.apart))

    def _write_made(self, route: Route, rows: DataFrame, number: int) -> None:
        """Writes what a function of the app has made of a micro-batch; it is evaluated once, for its count and for the sink."""
        rows = rows.persist()
        try:
            time_ms = self.engine.batch_time_ms()
            route.sink.write(rows, Batch(number, rows.count(), time_ms, few=True, apart=self.apart))
        finally:
            rows.unpersist()

    def _record(
        self,
        number: int,
        tags: dict[str, int],
        passed: Passed,
        keys: Mapping[str, skew.Keys],
    ) -> None:
        time_ms, seen = self.engine.batch_time_ms(), self._seen(passed)
        rows_in = self._counted(seen)
        late = {name: passed.tagged(name, Tag.LATE) for name in self.times}
        tolerated = {name: passed.tagged(name, TOLERATED) for name in self.times}
        record = BatchRecord(
            batch=number,
            token=self.checkpoint.token,
            time_ms=time_ms,
            began_with_ms=self.last.watermarks.current_ms,
            watermarks=self._watermarks(seen, time_ms),
            rows_in=rows_in,
            tags=tags,
            tolerated=tolerated,
            total_rows_in=_added(self.last.total_rows_in, rows_in),
            total_tags=_added(self.last.total_tags, tags),
            total_late=_added(self.last.total_late, late),
            total_tolerated=_added(self.last.total_tolerated, tolerated),
            positions=positions(self.engine.ends(), self.engine.latest(), self.until),
            state_bytes=self.state_bytes,
        )
        self.checkpoint.record(record)
        self._advance(record)
        self.rows_read[number] = _rows(seen)
        self.measured = of_query(self.share.query if self.share else "", {**measured(record, seen, self.times), **skew.gauges(keys)})
        fields = record.model_dump(by_alias=True, exclude={"watermarks": {"partitions"}, "positions": True, "state_bytes": True})
        self.emit("batch", {**fields, "keys": {name: counts.model_dump() for name, counts in keys.items()}, **self._partitions()})

    def _partitions(self) -> dict[str, object]:
        """The partitions of what was read from files, and those after the app's repartitions; of Kafka's topics they are known."""
        if not self.files:
            return {}
        executed = self.engine.executed()
        reads = {
            name: {"partitions": scan.partitions, "files": scan.files, "bytes": scan.size_bytes}
            for name, place in self.files.items()
            for scan in executed.scans
            if scan.address.startswith(f"{place}/")
        }
        return {"fileReads": reads, "repartitions": list(executed.repartitions)}

    def _watermarks(self, seen: Mapping[str, Mapping[str, Seen]], time_ms: int) -> Watermarks:
        watermarks = self.last.watermarks.advance(self.times, seen, time_ms, self.when_idle)
        return watermarks.ended() if self.input_ended(self.engine) else watermarks

    def _advance(self, record: BatchRecord) -> None:
        watermarks = record.watermarks
        if watermarks.engine_ms is not None:
            self.engine.set_watermark(watermarks.engine_ms, strict=self.strict)
        set_watermark(self.session, watermarks.current_ms, watermarks.engine_ms)
        self.last = record


def _seen(splits: Mapping[int, tuple[int, int | None]], labels: Sequence[str]) -> dict[str, Seen]:
    counted = (splits.get(number, (0, None)) for number in range(len(labels)))
    return {label: Seen(rows=rows, greatest_ms=greatest_ms) for label, (rows, greatest_ms) in zip(labels, counted, strict=True)}


def _rows(seen: Mapping[str, Mapping[str, Seen]]) -> int:
    """Number of records that a micro-batch read."""
    return sum(split.rows for splits in seen.values() for split in splits.values())


def _added(total: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: total.get(name, 0) + more.get(name, 0) for name in sorted({*total, *more})}
