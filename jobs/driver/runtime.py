"""The driver program: ``python -m penstock.jobs.driver.runtime CONFIGURATION.json [--events FILE]``.

Runs one job until it is stopped (SIGTERM or SIGINT, at a micro-batch boundary) or fails. Events go to standard output, or to a file or
pipe, one JSON object per line with an ``event``: ``starting``, ``waiting``, ``reading``, ``batch``, ``committed``, ``idle``, ``stopped``,
``failed``. ``waiting`` is sent if another driver holds the checkpoint's lease, with its ``holder``, ``since`` when and ``until`` when.
``committed`` and ``idle`` have ``lagRecords``, how far the job is behind, for alarms; ``committed`` has ``phasesMs``, Spark's phases of the
micro-batch. Spark's log goes to standard error. Exit code 0 after a stop, 5 after a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.blocks.keyed.backend import on_the_heap
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.databases.connection_secrets import with_credentials
from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.another_writer import AnotherWriter, Encounters, noticed, noticing, raise_if_lost
from penstock.jobs.driver.determinism import is_stateful, refuse_unrepeatable, refuse_unrepeatable_state, runs_python
from penstock.jobs.driver.given_up import GivenUp, Repetitions, is_given_up
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.micro_batch import Emit, MicroBatches, PartitionsGrew, Route, Stopping, routed
from penstock.jobs.driver.pod import forget_ready, pod_conf, reported_ready, this_driver
from penstock.jobs.driver.progress import ProgressListener
from penstock.jobs.driver.sql_app import declare
from penstock.jobs.errors import AppFailed, QueryFailed, SocketHasNoPast
from penstock.jobs.job import Job
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.offset_commits import OffsetCommits
from penstock.jobs.sinks.building import build, writes_directly
from penstock.jobs.sinks.sink import FOREVER_MS, BatchSink, SinkContext
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.sources.splits import splits
from penstock.jobs.spec import FromSocket, SpecFile, load
from penstock.jobs.spec import connection_addresses as connections
from penstock.jobs.spec.app_module import find, is_sql
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.stage_settings import stages_conf
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.conditional import undecided_write
from penstock.jobs.storage.lease import Lease, LeaseFile
from penstock.jobs.stream import leaving
from penstock.jobs.stream.declaration import building
from penstock.jobs.stream.event_time import heartbeat
from penstock.jobs.stream.event_time.engine import Engine, ending_with_its_input
from penstock.jobs.stream.side_outputs import SideRows
from penstock.jobs.stream.task_context import set_checkpoint, set_watermark
from penstock.jobs.stream.task_errors import of_a_task
from penstock.jobs.watermark import InputTime
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# How long a terminated query may take to report its last events: an offset commit that hangs must not keep the job from exiting.
_LAST_NEWS_S = 30.0


def main(arguments: list[str]) -> int:
    """Runs the job of a configuration file."""
    parser = argparse.ArgumentParser(prog="python -m penstock.jobs.driver.runtime")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--events", type=Path, help="a file or pipe for the events; standard output by default")
    parsed = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with parsed.events.open("a", encoding="utf-8") if parsed.events else contextlib.nullcontext(sys.stdout) as out:
        return _run(parsed.configuration, stop, EventWriter(out))


def _run(configuration: Path, stop: threading.Event, emit: Emit) -> int:
    try:
        Driver(RuntimeConfiguration.read(configuration), stop, emit).run()
    except PenstockError as error:
        # The log has the full traceback; the event has the message for users.
        traceback.print_exc()
        emit("failed", {"errors": [fault.as_json() for fault in error.errors]})
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        fault = QueryFailed(path="driver", given=f"{type(error).__name__}: {_first_line(error)}", fix="check the driver's log")
        emit("failed", {"errors": [fault.as_json()]})
        return fault.exit_code
    emit("stopped", {})
    return 0


class EventWriter:
    """Writes events for the process that started the driver, one JSON object per line.

    Args:
        out: where the lines go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        """Writes one line atomically: both the query's thread and its listener write."""
        with self._lock:
            self._out.write(json.dumps({"event": event, **detail}) + "\n")
            self._out.flush()


class Driver:
    """One job from its configuration to its end.

    Args:
        configuration: what the driver was started with.
        stop: set from outside to stop the job.
        emit: reports an event.
    """

    def __init__(self, configuration: RuntimeConfiguration, stop: threading.Event, emit: Emit) -> None:
        self._configuration = configuration
        self._stop = stop
        self._emit = emit
        self._spec: SpecFile = load(Path(configuration.spec))
        self._checkpoint = Checkpoint(configuration.checkpoint)
        # Set when the current query has ended or is to end.
        self._ended = threading.Event()

    def run(self) -> None:
        """Starts Spark and runs the job until it is stopped.

        Raises:
            PenstockError: JOB-001 to JOB-009, JOB-020, JOB-050 to JOB-063, JOB-070, JOB-080 to JOB-085.
        """
        forget_ready()
        _importable(self._configuration.app_path)
        self._emit("starting", {"job": self._spec.job.metadata.name, "master": self._configuration.master})
        _ = self._connections
        with self._leased() as lease:
            if lease is None:
                return
            # The brokers first: unreachable brokers are reported before Spark's start has cost ten seconds.
            self._offsets()
            session = self._session()
            try:
                self._run_in(session, lease)
            finally:
                _stop(session)

    def run_in(self, session: SparkSession) -> None:
        """Runs the job in an existing session. Raises as `run`."""
        with self._leased() as lease:
            if lease is not None:
                self._run_in(session, lease)

    def _run_in(self, session: SparkSession, lease: Lease) -> None:
        self._refuse_a_socket_that_goes_on()
        gauges, encounters, repetitions = Gauges(session), Encounters(lease, self._checkpoint.uri), Repetitions()
        # Besides its own termination, two things end a query: a stop request and a lost lease. A thread waits for each, so none is polled.
        for cause in (self._stop, lease.over):
            threading.Thread(target=self._end_after, args=(cause,), daemon=True).start()
        again = True
        while again and not self._stop.is_set():
            try:
                again = self._query(session, lease, self._offsets(), gauges)
            except AnotherWriter as met:
                encounters.again(met)
            except GivenUp as given_up:
                repetitions.again(given_up)

    @contextlib.contextmanager
    def _leased(self) -> Iterator[Lease | None]:
        """Holds the checkpoint's lease; None if the job is stopped while it waits for it.

        The lease is released after a failure too: the query has ended by then, and the next driver need not wait.
        """
        file = LeaseFile(self._checkpoint.uri, this_driver(), self._configuration.lease_s)

        def waiting(lease: Mapping[str, object]) -> None:
            self._emit("waiting", lease)

        lease = file.take(lambda: self._checkpoint.greatest_token() + 1, self._stop, waiting)
        if lease is None:
            yield None
            return
        self._checkpoint = Checkpoint(self._configuration.checkpoint, lease.token)
        try:
            yield lease
        finally:
            lease.release()

    @cached_property
    def _connections(self) -> Mapping[str, str]:
        """Name -> URL of every connection that the spec names, credentials included."""
        given = with_credentials(self._configuration.connections, self._configuration.secrets)
        connections.check(self._spec, given)
        return given

    def _session(self) -> SparkSession:
        job = self._spec.job
        conf = {**spark_session.state_conf(job.spec.state), **stages_conf(job.spec.stages), **self._configuration.spark_conf, **pod_conf()}
        session = spark_session.build(job.metadata.name, self._configuration.master, conf)
        session.sparkContext.setLogLevel("WARN")
        return session

    def _offsets(self) -> Mapping[str, Offsets]:
        sources = self._spec.job.spec.kafka_sources
        if not sources:
            return {}
        by_group = any(source.starting_offsets.startswith("committed") for source in sources.values())
        begun = by_group and self._checkpoint.last_record().batch >= 0
        brokers = self._brokers()
        try:
            return brokers.starts(sources, begun=begun)
        finally:
            brokers.close()

    def _brokers(self) -> Brokers:
        return Brokers(self._configuration.kafka, group=f"penstock.{self._spec.job.metadata.name}")

    def _refuse_a_socket_that_goes_on(self) -> None:
        sockets = [name for name, source in self._spec.job.spec.sources.items() if isinstance(source, FromSocket)]
        if sockets and self._checkpoint.last_record().batch >= 0:
            fix = "give the job a new metadata.name to start with an empty checkpoint; to resume without data loss, read from Kafka"
            raise SocketHasNoPast(path=f"spec.sources.{sockets[0]}.socket", given=self._checkpoint.uri, need="no checkpoint", fix=fix)

    def _commits(self, offsets: Mapping[str, Offsets], lease: Lease) -> OffsetCommits | None:
        """The committer of offsets to consumer groups, for the sources that ask for it."""
        asking = [name for name, source in self._spec.job.spec.kafka_sources.items() if source.commit_offsets]
        topics = frozenset(topic for name in asking for topic in offsets.get(name, {}))
        return OffsetCommits(self._brokers(), topics, lambda: lease.sure) if topics else None

    def _query(self, session: SparkSession, lease: Lease, offsets: Mapping[str, Offsets], gauges: Gauges) -> bool:
        """Plans and runs the query until it terminates.

        Returns:
            Whether it must be planned and started again, because a topic got more partitions, or because another driver, whose lease this
            one has taken over, has written to Spark's logs.
        """
        configuration = self._configuration
        bucket, schemas = configuration.output_bucket, avro_schemas(self._spec)
        job = Job(self._spec.job, session, configuration.kafka, offsets, self._connections, bucket, schemas)
        app = _build(self._spec, self._configuration.app_path, job)
        stream, routes = job.declared()
        # Side outputs too: their rows are computed with the rest. Of the conditions, only those of such a sink.
        outputs = dict.fromkeys([*routes, *job.side_outputs.values()])
        exactly_once = {name: routes.get(name) for name in outputs if self._spec.job.spec.sinks[name].exactly_once}
        refuse_unrepeatable(routed(stream.frame, exactly_once), list(exactly_once))
        stream = replace(stream, frame=routed(stream.frame, routes))
        if on_the_heap(session):
            refuse_unrepeatable_state(stream.frame)
        batches = self._batches(session, lease, job, app)
        ended = self._ended = threading.Event()
        if self._stop.is_set() or lease.over.is_set():
            ended.set()
        commits = self._commits(offsets, lease)
        listener = ProgressListener(ended, self._emit, gauges, batches, commits, close_when_idle=configuration.close_when_idle)
        session.streams.addListener(listener)
        try:
            batches.check()
            set_watermark(session, batches.last.watermarks.current_ms, batches.last.watermarks.engine_ms)
            set_checkpoint(session, self._configuration.checkpoint, self._checkpoint.token, map(str, job.side_outputs))
            leaving.forget(session)
            SideRows(self._checkpoint, run="", batch=0).delete()
            if heartbeat.needed(self._spec.job.spec):
                stream = heartbeat.added(session, stream)
            mode = "update" if stream.updates else "append"
            writer = stream.frame.writeStream.queryName(self._spec.job.metadata.name).outputMode(mode).foreachBatch(batches)
            # The start offsets are decided; reported before the query starts, so that this comes before any event of the query.
            self._emit("reading", self._description(job, list(routes), session.sparkContext.uiWebUrl))
            bounded = self._spec.job.spec.trigger == "availableNow"
            with noticing(), ending_with_its_input(session, stream.frame) if bounded else contextlib.nullcontext():
                query = self._triggered(writer).option("checkpointLocation", self._configuration.checkpoint).start()
            with reported_ready():
                try:
                    return self._until_the_end(query, batches, ended)
                finally:
                    # Spark reports its last micro-batch on a separate thread, and a removed listener receives nothing more.
                    listener.reported_all.wait(_LAST_NEWS_S)
        finally:
            session.streams.removeListener(listener)
            if commits is not None:
                commits.close()

    def _description(self, job: Job, outputs: list[str], ui: str | None) -> dict[str, object]:
        """What the query reads and writes, for the process that started the driver."""
        side_outputs = {str(tag): name for tag, name in job.side_outputs.items()}
        described = {"offsets": job.offsets, "outputs": outputs, "sideOutputs": side_outputs}
        return {**described, "checkpoint": self._configuration.checkpoint, "ui": ui}

    def _batches(self, session: SparkSession, lease: Lease, job: Job, app: ModuleType | None) -> MicroBatches:
        spec = self._spec.job.spec
        stream, routes = job.declared()
        timed = {name: source.time for name, source in spec.sources.items() if source.time}
        # For any sink: an existing directory keeps s3a from probing its parents, to which a job has no access.
        context = SinkContext(
            job=self._spec.job.metadata.name,
            session=session,
            kafka=self._configuration.kafka,
            output_bucket=self._configuration.output_bucket,
            identity=self._checkpoint.identity(),
            checkpoint=self._checkpoint,
            connections=self._connections,
            app=app,
            updates=stream.updates,
        )
        sinks = {name: build(name, spec.sinks[name], context) for name in {*routes, *job.side_outputs.values()}}
        return MicroBatches(
            session=session,
            engine=Engine(session, self._spec.job.metadata.name),
            checkpoint=self._checkpoint,
            times={name: InputTime.of(time) for name, time in timed.items()},
            splits={name: splits(name, job.offsets.get(name, {})) for name in spec.sources},
            routes=[self._route(name, condition, sinks[name], stream.frame, alone=len(routes) == 1) for name, condition in routes.items()],
            side_outputs={tag: sinks[name] for tag, name in job.side_outputs.items()},
            last=self._checkpoint.last_record(),
            emit=self._emit,
            lease=lease,
            strict=stream.strict,
            when_idle=spec.when_idle,
            quarantine=spec.quarantine,
        )

    def _route(self, name: str, condition: str | None, sink: BatchSink, frame: DataFrame, *, alone: bool) -> Route:
        spec = self._spec.job.spec
        # Files are written by few tasks, by the number of records. A stateful operator needs as many as its state has partitions, and
        # steps in Python, such as calls, need as many as read.
        by_records = len(spec.kafka_sources) == len(spec.sources) and not (is_stateful(frame) or runs_python(frame))
        direct = alone and condition is None and writes_directly(spec.sinks[name], by_records=by_records)
        return Route(name, sink, chosen=condition is not None, direct=direct)

    def _triggered(self, writer: Any) -> Any:
        trigger = self._spec.job.spec.trigger
        return writer.trigger(availableNow=True) if trigger == "availableNow" else writer.trigger(processingTime=f"{trigger} milliseconds")

    def _until_the_end(self, query: StreamingQuery, batches: MicroBatches, ended: threading.Event) -> bool:
        first = batches.last.batch
        ended.wait()
        if self._stop.is_set():
            batches.lease.stopping()
        if self._stop.is_set() or batches.lease.lost:
            _stop_between_micro_batches(query, batches)
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        error = query.exception()
        batches.lease.check()
        # The last micro-batch may have failed after the stop request. One that did not begin, or is to be planned again, has not failed.
        if error is not None and not isinstance(batches.failure, (Stopping, PartitionsGrew)):
            self._refuse(batches.failure or error, error, batches, first)
        if isinstance(batches.failure, PartitionsGrew) and not self._stop.is_set():
            return True
        batches.idle(FOREVER_MS)
        return False

    def _end_after(self, cause: threading.Event) -> None:
        cause.wait()
        # That of the query that runs by then.
        self._ended.set()

    def _refuse(self, failure: Exception, error: Exception, batches: MicroBatches, first: int) -> NoReturn:
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
        return QueryFailed(path=self._spec.job.spec.app, given=_first_line(failure), fix="check the driver's log")


def _stop(session: SparkSession) -> None:
    """Stops Spark. If its JVM has died, this fails too, and must not replace the failure that it died of."""
    with contextlib.suppress(Py4JError, OSError):
        session.stop()


def _stop_between_micro_batches(query: StreamingQuery, batches: MicroBatches) -> None:
    """Lets the running micro-batch finish. Spark's own stop would abort it, and it would have to be rerun."""
    batches.stopping.set()
    with contextlib.suppress(StreamingQueryException):
        while query.isActive and query.status["isTriggerActive"]:
            query.awaitTermination(1)
        query.stop()


def _importable(folders: tuple[str, ...]) -> None:
    """Puts the app's folders first on sys.path, for this process and for the Python workers that Spark starts."""
    for folder in reversed(folders):
        sys.path.insert(0, folder)
    known = [*folders, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(known))


def _build(spec: SpecFile, app_path: Sequence[str], job: Job) -> ModuleType | None:
    """Calls the app's ``build``.

    Returns:
        Its module; None for an app in SQL.
    """
    app = spec.job.spec.app
    with building() as names:
        job.tags = names.tags
        if is_sql(app):
            declare(find(app, spec.path.parent, [Path(folder) for folder in app_path]), job)
            return None
        return _declared_by(app, job)


def _declared_by(app: str, job: Job) -> ModuleType:
    try:
        module = importlib.import_module(app)
        module.build(job)
        return module
    except PenstockError:
        raise
    except Exception as error:
        given = f"{type(error).__name__}: {_first_line(error)}"
        raise AppFailed(path=app, given=given, need="a module with a function build(job)", fix="check the driver's log") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
