"""One query of a job: started, run until it terminates, and stopped at a boundary of its micro-batches."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.errors import AnalysisException, StreamingQueryException

from penstock.jobs.driver.another_writer import AnotherWriter, noticed, noticing, raise_if_lost
from penstock.jobs.driver.app import own_code
from penstock.jobs.driver.context import DriverContext
from penstock.jobs.driver.failure import as_fault
from penstock.jobs.driver.given_up import GivenUp, is_given_up
from penstock.jobs.driver.lag import JobLag
from penstock.jobs.driver.micro_batch import Finished, MicroBatches, PartitionsGrew, Stopping
from penstock.jobs.driver.planning import QueryPlan
from penstock.jobs.driver.progress import Commit, ProgressListener
from penstock.jobs.driver.pulse import Pulse
from penstock.jobs.driver.unsupported import unsupported
from penstock.jobs.sinks.sink import FOREVER_MS
from penstock.jobs.stream.analyzed_plan import has_windows_only
from penstock.jobs.stream.event_time.engine import ending_with_its_input
from penstock.jobs.stream.side_outputs import SideRows
from penstock.jobs.stream.task_context import set_checkpoint, set_watermark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# How long a terminated query may take to report its last events: an offset commit that hangs must not keep the job from exiting.
_LAST_NEWS_S = 30.0
# Between two looks whether a query that is to stop is between two micro-batches: one without input is for some milliseconds, one that
# writes may take minutes.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0


class Query:
    """A planned query from its start to its end.

    Args:
        context: the driver's.
        plan: of the query.
        ended: set when a query of the driver has ended or is to end.
        job_lag: of all queries of the driver.
        commit: commits offsets to consumer groups; None: not configured.
    """

    def __init__(
        self, context: DriverContext, plan: QueryPlan, ended: threading.Event, job_lag: JobLag, commit: Commit | None = None
    ) -> None:
        self._context = context
        self._plan = plan
        self._first = plan.batches.last.batch
        self._query: StreamingQuery | None = None
        self._starting: int | None = None
        self._closed = self._stopped = False
        self._listener = ProgressListener(
            plan.name,
            ended,
            plan.emit,
            context.gauges,
            job_lag,
            plan.batches,
            commit,
            plan.bounded.run.ends.by_topic() if plan.bounded else {},
            windows_only=context.configuration.report_open_windows and has_windows_only(plan.stream.frame),
            close_when_idle=context.configuration.close_when_idle,
        )

    @property
    def over(self) -> bool:
        """Whether the query has terminated."""
        return self._listener.reported_all.is_set()

    @property
    def finished(self) -> bool:
        """Whether the query has terminated because it has read what was available when it started, or the end of its input."""
        if not self.over or not self._of_available_data or self._query is None:
            return False
        return self._query.exception() is None or isinstance(self._plan.batches.failure, Finished)

    @property
    def has_closed(self) -> bool:
        """Whether nothing is open that the next run of a finished query would close."""
        return self._plan.bounded is None or self._plan.batches.last.watermarks.at_end

    @property
    def stopped(self) -> bool:
        """Whether the query was stopped, and has not terminated by itself."""
        return self._stopped or self._query is None

    @property
    def path(self) -> str:
        """What errors call the query."""
        app = self._context.spec.job.spec.app
        return f"{app}, query {self._plan.name}" if self._plan.share.query else app

    @property
    def pulse(self) -> Pulse:
        """The query's signs of life."""
        return self._plan.batches.pulse

    @property
    def batch(self) -> int:
        """Number of the micro-batch that runs, or comes next."""
        return self._plan.batches.last.batch + 1

    @property
    def starting(self) -> int | None:
        """Id of the thread that starts the query, while it does."""
        return self._starting

    @property
    def running(self) -> StreamingQuery | None:
        """Spark's query; None before it is started and once it has terminated."""
        return None if self.over else self._query

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """Context in which the query's events are reported, from before its start until after its end."""
        streams = self._context.session.streams
        streams.addListener(self._listener)
        try:
            yield
        finally:
            if self._query is not None:
                # Spark reports its last micro-batch on a separate thread, and a removed listener receives nothing more.
                self._listener.reported_all.wait(_LAST_NEWS_S)
            streams.removeListener(self._listener)

    def check(self) -> None:
        """Checks whether the sinks can be written to. Raises what they raise."""
        self._plan.batches.check()

    def announce(self, queries: Sequence[str]) -> None:
        """Reports what the query reads and writes, and a parallelism that its checkpoint can't have.

        Args:
            queries: names of all queries of the driver.
        """
        if self._plan.fixed is not None:
            print(f"WARN {self._plan.name}: {self._plan.fixed}", file=sys.stderr)
        self._plan.emit("reading", self._description(queries))

    def start(self) -> None:
        """Starts the query.

        Raises:
            AnotherWriter: another driver, whose lease this one has taken over, has written to Spark's logs.
        """
        self._set_properties()
        session, stream = self._context.session, self._plan.stream
        mode = "update" if stream.updates else "append"
        writer = stream.frame.writeStream.queryName(self._plan.name).outputMode(mode).foreachBatch(self._plan.batches)
        bounded, last = self._plan.bounded, self._plan.batches.last
        # Where it is known in a micro-batch that the input has ended, `Finished` ends the query.
        by_itself = self._of_available_data and not (bounded and bounded.ends_in_a_micro_batch(last))
        with noticing(), ending_with_its_input(session, stream.frame) if by_itself else contextlib.nullcontext():
            try:
                self._starting = threading.get_ident()
                self._query = self._triggered(writer).option("checkpointLocation", self._plan.batches.checkpoint.uri).start()
            except AnalysisException as error:
                raise unsupported(error) from error
            finally:
                self._starting = None

    def stopping(self) -> None:
        """Lets the query begin no further micro-batch."""
        self._plan.batches.stopping.set()

    def stop(self) -> None:
        """Stops the query at a boundary of its micro-batches; one that has terminated is left alone."""
        if self._query is not None and not self.over:
            self._stopped = True
            stop_between_micro_batches(self._query, self._plan.batches)

    def close(self) -> None:
        """Lets the sinks close what they hold open, once the query has terminated without a failure."""
        if not self._closed:
            self._plan.batches.idle(FOREVER_MS)
            self._closed = True

    def report_finished(self) -> None:
        """Reports the totals of the query's checkpoint, once a bounded run has finished."""
        self._plan.emit("finished", self._plan.batches.last.model_dump(by_alias=True, include={"batch", "total_rows_in", "total_tags"}))

    def result(self) -> bool:
        """Waits for the end of the query.

        Returns:
            Whether it must be planned and started again: a topic got more partitions, or a bounded input has been read and what is open
            is to be closed.

        Raises:
            AnotherWriter: another driver, whose lease this one has taken over, has written to Spark's logs.
            GivenUp: a micro-batch that another executor may be able to run.
            PenstockError: the query has failed.
        """
        query, batches = self._query, self._plan.batches
        if query is None:
            return False
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        error = query.exception()
        batches.lease.check()
        # The last micro-batch may have failed after the stop request. One that did not begin, or is to be planned again, has not failed.
        if error is not None and not isinstance(batches.failure, (Finished, PartitionsGrew, Stopping)):
            self._refuse(batches.failure or error, error)
        if isinstance(batches.failure, PartitionsGrew):
            return True
        # Spark has nothing more to do, unless it was stopped.
        return self._plan.bounded is not None and not self.stopped and self._plan.bounded.goes_on(batches.last)

    @property
    def _of_available_data(self) -> bool:
        return self._context.spec.job.spec.trigger == "availableNow"

    def _set_properties(self) -> None:
        """What the query's tasks need to know: its thread inherits this from the one that starts it."""
        session, batches = self._context.session, self._plan.batches
        set_watermark(session, batches.last.watermarks.current_ms, batches.last.watermarks.engine_ms)
        set_checkpoint(session, batches.checkpoint.uri, batches.checkpoint.token, map(str, batches.side_outputs))
        SideRows(batches.checkpoint, run="", batch=0).delete()

    def _description(self, queries: Sequence[str]) -> dict[str, object]:
        """What the query reads and writes, for the process that started the driver."""
        job, share, ui = self._plan.job, self._plan.share, self._context.session.sparkContext.uiWebUrl
        offsets = {name: topics for name, topics in job.offsets.items() if name in share.sources}
        side_outputs = {str(tag): name for tag, name in job.side_outputs.items()}
        described = {"offsets": offsets, "outputs": [route.name for route in self._plan.batches.routes], "sideOutputs": side_outputs}
        several = {"queries": list(queries)} if len(queries) > 1 else {}
        fixed = {"parallelism": self._plan.fixed._asdict()} if self._plan.fixed else {}
        return {**described, **several, **fixed, "checkpoint": self._plan.batches.checkpoint.uri, "ui": ui}

    def _triggered(self, writer: Any) -> Any:
        trigger = self._context.spec.job.spec.trigger
        return writer.trigger(availableNow=True) if trigger == "availableNow" else writer.trigger(processingTime=f"{trigger} milliseconds")

    def _refuse(self, failure: Exception, error: Exception) -> NoReturn:
        batches = self._plan.batches
        if noticed(failure) or noticed(error):
            # The last record's micro-batch is not committed yet.
            raise AnotherWriter(committed=max(0, batches.last.batch - self._first - 1)) from error
        raise_if_lost(batches.lease)
        fault = as_fault(failure, self.path, own_code(self._context.spec, self._context.configuration.app_path))
        if is_given_up(failure) or is_given_up(error):
            raise GivenUp(batches.last.batch, fault, self._plan.name) from error
        raise fault from error


def stop_between_micro_batches(query: StreamingQuery, batches: MicroBatches) -> None:
    """Lets the running micro-batch finish. Spark's own stop would abort it, and it would have to be rerun."""
    batches.stopping.set()
    pause_s = _FIRST_PAUSE_S
    with contextlib.suppress(StreamingQueryException):
        while query.isActive and query.status["isTriggerActive"]:
            # It takes parts of a second too.
            query.awaitTermination(pause_s)  # type: ignore[arg-type]
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        query.stop()
