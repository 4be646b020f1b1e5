"""One query of a job: started, run until it terminates, and stopped at a boundary of its micro-batches."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.errors import AnalysisException, StreamingQueryException

from penstock.jobs.driver.another_writer import AnotherWriter, noticed, noticing, raise_if_lost
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.given_up import GivenUp, is_given_up
from penstock.jobs.driver.micro_batch import Finished, MicroBatches, PartitionsGrew, Stopping
from penstock.jobs.driver.planning import DriverContext, QueryPlan
from penstock.jobs.driver.pod import reported_ready
from penstock.jobs.driver.progress import ProgressListener
from penstock.jobs.errors import BadDeclaration, QueryFailed
from penstock.jobs.kafka.offset_commits import OffsetCommits
from penstock.jobs.sinks.sink import FOREVER_MS
from penstock.jobs.storage.conditional import undecided_write
from penstock.jobs.stream import leaving
from penstock.jobs.stream.event_time.engine import ending_with_its_input
from penstock.jobs.stream.side_outputs import SideRows
from penstock.jobs.stream.task_context import set_checkpoint, set_watermark
from penstock.jobs.stream.task_errors import first_line, of_a_task
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# How long a terminated query may take to report its last events: an offset commit that hangs must not keep the job from exiting.
_LAST_NEWS_S = 30.0


class Query:
    """A planned query from its start to its end.

    Args:
        context: the driver's.
        plan: of the query.
        stop: set from outside to stop the job.
        ended: set when the query has ended or is to end.
    """

    def __init__(self, context: DriverContext, plan: QueryPlan, stop: threading.Event, ended: threading.Event) -> None:
        self._context = context
        self._plan = plan
        self._stop = stop
        self._ended = ended

    def run(self, commits: OffsetCommits | None) -> bool:
        """Runs the query until it terminates.

        Args:
            commits: commits offsets to consumer groups.

        Returns:
            Whether it must be planned and started again: a topic got more partitions, or a bounded input has been read and what is open
            is to be closed.

        Raises:
            AnotherWriter: another driver, whose lease this one has taken over, has written to Spark's logs.
            GivenUp: a micro-batch that another executor may be able to run.
            PenstockError: the query has failed.
        """
        context, batches, session = self._context, self._plan.batches, self._context.session
        close_when_idle = context.configuration.close_when_idle
        bounded = context.bounded
        listener = ProgressListener(self._ended, context.emit, context.gauges, batches, commits, bounded, close_when_idle=close_when_idle)
        session.streams.addListener(listener)
        try:
            batches.check()
            self._set_properties()
            # The start offsets are decided; reported before the query starts, so that this comes before any event of the query.
            context.emit("reading", self._description())
            query = self._started()
            with reported_ready():
                try:
                    return self._until_the_end(query)
                finally:
                    # Spark reports its last micro-batch on a separate thread, and a removed listener receives nothing more.
                    listener.reported_all.wait(_LAST_NEWS_S)
        finally:
            session.streams.removeListener(listener)

    def _set_properties(self) -> None:
        """What the query's tasks need to know, and nothing of a query before it."""
        session, checkpoint, watermarks = self._context.session, self._context.checkpoint, self._plan.batches.last.watermarks
        set_watermark(session, watermarks.current_ms, watermarks.engine_ms)
        set_checkpoint(session, self._context.configuration.checkpoint, checkpoint.token, map(str, self._plan.job.side_outputs))
        leaving.forget(session)
        SideRows(checkpoint, run="", batch=0).delete()

    def _description(self) -> dict[str, object]:
        """What the query reads and writes, for the process that started the driver."""
        job, ui = self._plan.job, self._context.session.sparkContext.uiWebUrl
        side_outputs = {str(tag): name for tag, name in job.side_outputs.items()}
        described = {"offsets": job.offsets, "outputs": [route.name for route in self._plan.batches.routes], "sideOutputs": side_outputs}
        return {**described, "checkpoint": self._context.configuration.checkpoint, "ui": ui}

    def _started(self) -> StreamingQuery:
        session, stream, spec = self._context.session, self._plan.stream, self._context.spec.job
        bounded, last = self._context.bounded, self._plan.batches.last
        mode = "update" if stream.updates else "append"
        writer = stream.frame.writeStream.queryName(spec.metadata.name).outputMode(mode).foreachBatch(self._plan.batches)
        # Where it is known in a micro-batch that the input has ended, `Finished` ends the query.
        by_itself = spec.spec.trigger == "availableNow" and not (bounded and bounded.ends_in_a_micro_batch(last))
        with noticing(), ending_with_its_input(session, stream.frame) if by_itself else contextlib.nullcontext():
            query: StreamingQuery
            try:
                query = self._triggered(writer).option("checkpointLocation", self._context.configuration.checkpoint).start()
            except AnalysisException as error:
                raise _unsupported(error) from error
            return query

    def _triggered(self, writer: Any) -> Any:
        trigger = self._context.spec.job.spec.trigger
        return writer.trigger(availableNow=True) if trigger == "availableNow" else writer.trigger(processingTime=f"{trigger} milliseconds")

    def _until_the_end(self, query: StreamingQuery) -> bool:
        batches = self._plan.batches
        first = batches.last.batch
        self._ended.wait()
        if self._stop.is_set():
            batches.lease.stopping()
        if self._stop.is_set() or batches.lease.lost:
            stop_between_micro_batches(query, batches)
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        error = query.exception()
        batches.lease.check()
        # The last micro-batch may have failed after the stop request. One that did not begin, or is to be planned again, has not failed.
        if error is not None and not isinstance(batches.failure, (Finished, PartitionsGrew, Stopping)):
            self._refuse(batches.failure or error, error, first)
        if isinstance(batches.failure, PartitionsGrew) and not self._stop.is_set():
            return True
        # Spark has nothing more to do, unless it was stopped.
        done = self._context.bounded if not batches.stopping.is_set() else None
        if done is not None and done.goes_on(batches.last):
            return True
        batches.idle(FOREVER_MS)
        if done is not None:
            self._finish(done)
        return False

    def _finish(self, bounded: BoundedRun) -> None:
        """Ends the bounded run, once its sinks have closed everything."""
        batches = self._plan.batches
        batches.lease.check()
        bounded.finish()
        record = batches.last.model_dump(by_alias=True, include={"batch", "total_rows_in", "total_tags"})
        self._context.emit("finished", record)

    def _refuse(self, failure: Exception, error: Exception, first: int) -> NoReturn:
        batches = self._plan.batches
        if noticed(failure) or noticed(error):
            # The last record's micro-batch is not committed yet.
            raise AnotherWriter(committed=max(0, batches.last.batch - first - 1)) from error
        raise_if_lost(batches.lease)
        fault = self._as_fault(failure)
        if is_given_up(failure) or is_given_up(error):
            raise GivenUp(batches.last.batch, fault) from error
        raise fault from error

    def _as_fault(self, failure: Exception) -> PenstockError:
        # A failure before the micro-batch is handed over has not been examined yet.
        failure = of_a_task(failure) or undecided_write(failure) or failure
        if isinstance(failure, PenstockError):
            return failure
        return QueryFailed(path=self._context.spec.job.spec.app, given=first_line(failure), fix="check the driver's log")


def _unsupported(error: AnalysisException) -> BadDeclaration:
    """What Spark refuses when it starts a query: an operator that streams can't have, or not in this output mode or place."""
    message = (error.getMessage() or str(error)).split(";\n")[0].split(" SQLSTATE")[0]
    fix = "change the query; Spark's Structured Streaming guide lists unsupported operations"
    return BadDeclaration(path="job.write", given=" ".join(message.split()), need="what Structured Streaming supports", fix=fix)


def stop_between_micro_batches(query: StreamingQuery, batches: MicroBatches) -> None:
    """Lets the running micro-batch finish. Spark's own stop would abort it, and it would have to be rerun."""
    batches.stopping.set()
    with contextlib.suppress(StreamingQueryException):
        while query.isActive and query.status["isTriggerActive"]:
            query.awaitTermination(1)
        query.stop()
