"""The driver's program: ``python -m jobs.runtime CONFIGURATION.json [--events FILE]``.

Runs one job until it is told to stop (SIGTERM or SIGINT, at a micro-batch's end) or fails. What happens is told on standard output, or in a
file or pipe, one JSON object a line with an ``event``: ``starting``, ``reading``, ``batch``, ``committed``, ``idle``, ``stopped``,
``failed``. Spark's log goes to standard error. Exit code 0 after a stop, 5 after a failure.
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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from jobs import session as spark_session
from jobs.brokers import Brokers
from jobs.checkpoint import Checkpoint
from jobs.errors import AppFailed, QueryFailed
from jobs.event_time.engine import Engine, put_in_force
from jobs.event_time.watermark import InputTime
from jobs.job import Job
from jobs.micro_batch import Emit, MicroBatches, PartitionsGrew
from jobs.runtime_configuration import RuntimeConfiguration
from jobs.sinks.files import Files
from jobs.sinks.topics import Topic
from jobs.spec import SpecFile, load
from sizing.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def main(arguments: list[str]) -> int:
    """Runs the job of a configuration file."""
    parser = argparse.ArgumentParser(prog="python -m jobs.runtime")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--events", type=Path, help="a file or pipe for the events; standard output by default")
    parsed = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with parsed.events.open("a", encoding="utf-8") if parsed.events else contextlib.nullcontext(sys.stdout) as out:
        return _run(parsed.configuration, stop, Teller(out))


def _run(configuration: Path, stop: threading.Event, emit: Emit) -> int:
    try:
        Driver(RuntimeConfiguration.read(configuration), stop, emit).run()
    except PenstockError as error:
        # The log keeps the whole story; the event says it in the user's terms.
        traceback.print_exc()
        emit("failed", {"errors": [fault.as_json() for fault in error.errors]})
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        fault = QueryFailed(path="driver", given=f"{type(error).__name__}: {_first_line(error)}", fix="see the driver's log")
        emit("failed", {"errors": [fault.as_json()]})
        return fault.exit_code
    emit("stopped", {})
    return 0


class Teller:
    """Tells whoever started the driver what happens, one JSON object a line.

    Args:
        out: where the lines go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        """Writes one line, whole: the query's own thread and its listener's both tell."""
        with self._lock:
            self._out.write(json.dumps({"event": event, **detail}) + "\n")
            self._out.flush()


class Driver:
    """One job from its configuration to its end.

    Args:
        configuration: what the driver was started with.
        stop: set from outside when the job has to stop.
        emit: tells what happens.
    """

    def __init__(self, configuration: RuntimeConfiguration, stop: threading.Event, emit: Emit) -> None:
        self._configuration = configuration
        self._stop = stop
        self._emit = emit
        self._spec: SpecFile = load(Path(configuration.spec))
        self._checkpoint = Checkpoint(configuration.checkpoint)

    def run(self) -> None:
        """Starts Spark and runs the job until it is stopped.

        Raises:
            PenstockError: JOB-001 to JOB-009.
        """
        _importable(self._configuration.app_path)
        self._emit("starting", {"job": self._spec.job.metadata.name, "master": self._configuration.master})
        # The brokers first: an answer that never comes is told before Spark's start has cost ten seconds.
        self._offsets()
        session = self._session()
        try:
            self.run_in(session)
        finally:
            session.stop()

    def run_in(self, session: SparkSession) -> None:
        """Runs the job in a session that is there already. Raises as `run`."""
        while not self._stop.is_set() and self._query(session, self._offsets()):
            pass

    def _session(self) -> SparkSession:
        job = self._spec.job
        conf = {**spark_session.state_conf(job.spec.state), **self._configuration.spark_conf}
        session = spark_session.build(job.metadata.name, self._configuration.master, conf)
        session.sparkContext.setLogLevel("WARN")
        return session

    def _offsets(self) -> dict[str, dict[int, int]]:
        sources = self._spec.job.spec.sources
        brokers = Brokers(self._configuration.brokers, group=f"penstock.{self._spec.job.metadata.name}")
        try:
            partitions = brokers.partitions(source.kafka.topic for source in sources.values())
            return {name: brokers.starting_offsets(source.kafka, partitions[source.kafka.topic]) for name, source in sources.items()}
        finally:
            brokers.close()

    def _query(self, session: SparkSession, offsets: Mapping[str, Mapping[int, int]]) -> bool:
        """Plans and runs the query until it ends.

        Returns:
            Whether it has to be planned and started again, because a topic got more partitions.
        """
        job = Job(self._spec.job, session, self._configuration.brokers, offsets)
        _build(self._spec.job.spec.app, job)
        stream, sink = job.declared()
        batches = self._batches(session, job, sink)
        ended = threading.Event()
        listener = _Listener(ended, self._emit)
        session.streams.addListener(listener)
        try:
            put_in_force(session, batches.last.watermarks.in_force_ms)
            writer = stream.frame.writeStream.queryName(self._spec.job.metadata.name).outputMode("append").foreachBatch(batches)
            # Where the query begins is decided; told before it starts, so that it comes before anything that the query tells.
            self._emit("reading", self._told(job, sink, session.sparkContext.uiWebUrl))
            query = self._triggered(writer).option("checkpointLocation", self._configuration.checkpoint).start()
            return self._until_the_end(query, batches, ended)
        finally:
            session.streams.removeListener(listener)

    def _told(self, job: Job, sink: str, ui: str | None) -> dict[str, object]:
        """What the query reads and writes, for whoever started the driver."""
        side_outputs = {tag.value: name for tag, name in job.side_outputs.items()}
        return {"offsets": job.offsets, "output": sink, "sideOutputs": side_outputs, "checkpoint": self._configuration.checkpoint, "ui": ui}

    def _batches(self, session: SparkSession, job: Job, sink: str) -> MicroBatches:
        spec = self._spec.job.spec
        timed = {name: source.time for name, source in spec.sources.items() if source.time}
        return MicroBatches(
            session=session,
            engine=Engine(session, self._spec.job.metadata.name),
            checkpoint=self._checkpoint,
            times={name: InputTime(bound_ms=time.out_of_orderness, idleness_ms=time.idleness) for name, time in timed.items()},
            partitions={name: len(offsets) for name, offsets in job.offsets.items()},
            output=self._sink(sink),
            side_outputs={tag: self._topic(name) for tag, name in job.side_outputs.items()},
            last=self._checkpoint.last_record(),
            emit=self._emit,
        )

    def _sink(self, name: str) -> Files | Topic:
        sink = self._spec.job.spec.sinks[name]
        if sink.files is None:
            return self._topic(name)
        return Files(name, sink.files, self._configuration.output_bucket, self._checkpoint.identity(), self._checkpoint)

    def _topic(self, name: str) -> Topic:
        sink = self._spec.job.spec.sinks[name].kafka
        assert sink is not None
        return Topic(sink.topic, self._configuration.brokers)

    def _triggered(self, writer: Any) -> Any:
        trigger = self._spec.job.spec.trigger
        return writer.trigger(availableNow=True) if trigger == "availableNow" else writer.trigger(processingTime=f"{trigger} milliseconds")

    def _until_the_end(self, query: StreamingQuery, batches: MicroBatches, ended: threading.Event) -> bool:
        # Two things end a query: its own end and a request to stop. One waits in a thread for each, so that neither is polled for.
        threading.Thread(target=self._end_with_a_stop, args=(ended,), daemon=True).start()
        ended.wait()
        if self._stop.is_set():
            _stop_between_micro_batches(query, batches)
            return False
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if isinstance(batches.failure, PartitionsGrew):
                return True
            if isinstance(batches.failure, PenstockError):
                raise batches.failure from error
            given = _first_line(batches.failure or error)
            raise QueryFailed(path=self._spec.job.spec.app, given=given, fix="see the driver's log") from error
        return False

    def _end_with_a_stop(self, ended: threading.Event) -> None:
        self._stop.wait()
        ended.set()


def _stop_between_micro_batches(query: StreamingQuery, batches: MicroBatches) -> None:
    """Lets the micro-batch that runs come to its end. Spark's own stop would cut it off, which costs running it again."""
    batches.stopping.set()
    with contextlib.suppress(StreamingQueryException):
        while query.isActive and query.status["isTriggerActive"]:
            query.awaitTermination(1)
        query.stop()


class _Listener(StreamingQueryListener):
    """Tells of commits, of having nothing to do, and of the end."""

    def __init__(self, ended: threading.Event, emit: Emit) -> None:
        self._ended = ended
        self._emit = emit

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to tell: `reading` has been."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is committed."""
        progress = event.progress
        ends = {_topic_of(source.endOffset): source.endOffset for source in progress.sources}
        duration_ms = progress.durationMs.get("triggerExecution", 0)
        self._emit(
            "committed",
            {"batch": progress.batchId, "rows": progress.numInputRows, "durationMs": duration_ms, "ends": _merged(ends.values())},
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """All that there is has been processed, empty micro-batches after it included."""
        self._emit("idle", {})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query is over, well or not."""
        self._ended.set()


def _topic_of(offsets: str) -> str:
    return next(iter(json.loads(offsets)), "") if offsets and offsets != "null" else ""


def _merged(offsets: Any) -> dict[str, dict[str, int]]:
    merged: dict[str, dict[str, int]] = {}
    for text in offsets:
        merged.update(json.loads(text) if text and text != "null" else {})
    return merged


def _importable(folders: tuple[str, ...]) -> None:
    """Puts the app's folders first on the path, for this process and for the Python workers that Spark starts."""
    for folder in reversed(folders):
        sys.path.insert(0, folder)
    known = [*folders, str(Path(__file__).parent.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(known))


def _build(app: str, job: Job) -> None:
    """Imports the app and lets it declare the job."""
    try:
        build = importlib.import_module(app).build
        build(job)
    except PenstockError:
        raise
    except Exception as error:
        given = f"{type(error).__name__}: {_first_line(error)}"
        raise AppFailed(path=app, given=given, need="a module with a function build(job)", fix="see the driver's log") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
