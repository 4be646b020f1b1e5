"""The driver program: ``python -m penstock.jobs.driver.runtime CONFIGURATION.json [--events FILE]``.

Runs one job until it is stopped (SIGTERM or SIGINT, at a micro-batch boundary) or fails. Events go to standard output, or to a file or
pipe, one JSON object per line with an ``event``: ``starting``, ``waiting``, ``generation``, ``restoring``, ``repartitioning``,
``rewinding``, ``saving``, ``saved``, ``reading``, ``batch``, ``committed``, ``idle``, ``finished``, ``stopped``, ``failed``. ``waiting``
is sent if another driver holds the job's lease, with its ``holder``, ``since`` when and ``until`` when. ``generation`` has the ``number``
of the job's generation and its ``checkpoint``; one that begins has ``after``, the number of the generation before, and what is
``changed``. ``restoring`` has the ``savepoint`` that a new checkpoint is filled with, its ``objects`` and ``bytes``, and the last
micro-batch of each query as ``batches``. ``repartitioning`` has that ``checkpoint``, and ``from`` how many ``shufflePartitions`` the state
of a query is repartitioned ``to``. ``rewinding`` has the time ``to`` which the job is rewound, and how many ``records`` of its topics it
reads again. ``saving`` has the ``savepoint`` that is taken before an upgrade, and ``saved`` the same as ``restoring`` of it. ``reading``
has ``parallelism`` if the state in the query's checkpoint has another one than the spec: ``asked`` and ``checkpoint``, the shuffle
partitions of both; the job runs on with those of the checkpoint. ``committed`` and ``idle`` have ``lagRecords``, how far the job is
behind, for alarms; ``committed`` has ``phasesMs``, Spark's phases of the micro-batch, and of a query with state ``state``: its ``rows``,
if Spark counts them, its ``bytes``, and the ``puts`` and ``putBytes`` of the micro-batch. With ``reportOpenWindows``, and if time closes
all groups of the query's aggregations, it has ``openWindows``, how many of these groups are open. ``finished`` is sent once a bounded run
has ended and everything is closed, with the totals of its checkpoint; without it, ``stopped`` is a stop, after which the job can go on.
Events of a job with several queries have ``query``, the name of the one that they are about. Spark's log goes to standard error. Exit code
0 after both, 5 after a failure. A query that hangs is a failure too: JOB-090 (`penstock.jobs.driver.watch`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.databases.connection_secrets import with_credentials
from penstock.jobs.driver import app
from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.another_writer import AnotherWriter, Encounters
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.context import DriverContext
from penstock.jobs.driver.ending import Ending
from penstock.jobs.driver.errors import NoProgress
from penstock.jobs.driver.generations import Generations
from penstock.jobs.driver.given_up import GivenUp, Repetitions
from penstock.jobs.driver.going_on import begun, refuse_a_socket
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.planning import QueryPlan, planned
from penstock.jobs.driver.pod import forget_ready, this_driver
from penstock.jobs.driver.queries import Queries
from penstock.jobs.driver.readiness import Readiness
from penstock.jobs.driver.restarts import Restarts
from penstock.jobs.driver.spark import DriverSpark, OwnSpark
from penstock.jobs.driver.start_offsets import StartOffsets
from penstock.jobs.driver.watch import within
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.credentials import signed_in
from penstock.jobs.kafka.offset_commits import GroupTopics, OffsetCommits
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec import connection_addresses as connections
from penstock.jobs.spec.checkpoint_settings import retention_conf
from penstock.jobs.spec.overriding import load_overridden
from penstock.jobs.spec.stage_settings import stages_conf
from penstock.jobs.storage.lease import Lease
from penstock.sizing.errors import raise_all

# A bucket that hangs as the query does must not keep the process.
_RECORD_S = 20.0


def main(arguments: list[str]) -> int:
    """Runs the job of a configuration file."""
    parser = argparse.ArgumentParser(prog="python -m penstock.jobs.driver.runtime")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--events", type=Path, help="a file or pipe for the events; standard output by default")
    parsed = parser.parse_args(arguments)
    stop = stop_requests()
    with parsed.events.open("a", encoding="utf-8") if parsed.events else contextlib.nullcontext(sys.stdout) as out:
        return _run(parsed.configuration, stop, EventWriter(out))


def stop_requests() -> threading.Event:
    """Set once this process gets SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _run(configuration: Path, stop: threading.Event, emit: Emit) -> int:
    spark = OwnSpark()
    ending = Ending(emit, spark)
    try:
        Driver(RuntimeConfiguration.read(configuration), stop, emit, ending.abort, spark).run()
    except Exception as error:
        return ending.failed(error)
    return ending.stopped()


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
        hung: called with the error of a query that hangs, by a thread that does not wait for it.
        spark: of the driver.
    """

    def __init__(
        self,
        configuration: RuntimeConfiguration,
        stop: threading.Event,
        emit: Emit,
        hung: Callable[[NoProgress], None],
        spark: DriverSpark | None = None,
    ) -> None:
        self._configuration = configuration
        self._spark = spark or OwnSpark()
        self._stop = stop
        self._abort = hung
        self._spec: SpecFile = load_overridden(Path(configuration.spec), configuration.parallelism)
        self._restarts = Restarts(configuration.job_folder, self._spec.job.spec.restart)
        self._readiness = Readiness(first=self._restarts.reading)
        self._emit = self._readiness.watching(self._restarts.counting(emit))
        self._generations = Generations(configuration, self._spec, self._emit, lambda: self._kafka)
        self._checkpoint = self._generations.first
        # Set when a query has ended, or the queries are to end.
        self._ended = threading.Event()
        self._bounded: BoundedRun | None = None
        self._offsets: StartOffsets

    def run(self) -> None:
        """Starts Spark and runs the job until it is stopped.

        Raises:
            PenstockError: JOB-001 to JOB-009, JOB-020 to JOB-023, JOB-050 to JOB-063, JOB-070, JOB-080 to JOB-086,
                JOB-092 to JOB-099, JOB-101, JOB-105 to JOB-111, JOB-125.
                A query that hangs ends the driver by `hung`.
        """
        forget_ready()
        app.importable((*self._configuration.app_path, *self._configuration.package_path))
        self._emit("starting", {"job": self._spec.job.metadata.name, "master": self._configuration.master})
        _ = self._connections, self._kafka
        with self._leased() as lease:
            if lease is None:
                return
            # The brokers first: unreachable brokers are reported before Spark's start has cost ten seconds.
            self._offsets.find(begun=self._offsets.by_group and self._begun)
            session = self._session()
            try:
                self._run_in(session, lease)
            finally:
                self._spark.stop(session)

    def run_in(self, session: SparkSession) -> None:
        """Runs the job in an existing session. Raises as `run`."""
        with self._leased() as lease:
            if lease is not None:
                self._run_in(session, lease)

    def _run_in(self, session: SparkSession, lease: Lease) -> None:
        refuse_a_socket(self._spec.job.spec, self._checkpoint)
        context = DriverContext(
            configuration=self._configuration,
            spec=self._spec,
            session=session,
            checkpoint=self._checkpoint,
            lease=lease,
            connections=self._connections,
            kafka=self._kafka,
            emit=self._emit,
            gauges=Gauges(session, self._spark.gauges),
            hung=self._hung,
            readiness=self._readiness,
            bounded=self._bounded,
        )
        # Besides their own termination, two things end queries: a stop request and a lost lease. A thread waits for each; none is polled.
        for cause in (self._stop, lease.over):
            threading.Thread(target=self._end_after, args=(cause,), daemon=True).start()
        context, again = self._repartitioned(context), True
        encounters, repetitions = Encounters(lease, self._checkpoint.uri), Repetitions()
        while again and not self._stop.is_set():
            try:
                again = self._planned_and_run(context)
            except AnotherWriter as met:
                encounters.again(met)
            except GivenUp as given_up:
                repetitions.again(given_up)

    def _repartitioned(self, context: DriverContext) -> DriverContext:
        """The context with the checkpoint that the queries start with, whose state has the parallelism of the spec, if it can have it."""
        if not self._generations.may_repartition(context.session):
            return context
        checkpoint = self._generations.repartitioned(self._planned(context), context.session, context.lease.token)
        if checkpoint is None:
            return context
        self._checkpoint = checkpoint
        return dataclasses.replace(context, checkpoint=checkpoint)

    @contextlib.contextmanager
    def _leased(self) -> Iterator[Lease | None]:
        """Holds the job's lease; None if the job is stopped while it waits for it.

        The lease is released after a failure too: the query has ended by then, and the next driver need not wait.
        """
        holder = this_driver()
        lease = self._generations.lease(holder, self._stop)
        if lease is None:
            yield None
            return
        try:
            self._restarts.begin(lease.token, holder, self._generations.fingerprint)
            self._checkpoint = self._generations.decide(lease)
            if self._spec.job.spec.bounded:
                self._bounded = BoundedRun(self._spec.job.spec, self._checkpoint, self._configuration.output_bucket)
            self._offsets = StartOffsets(self._spec.job.spec, self._brokers, self._generations, self._bounded, self._emit)
            yield lease
            self._restarts.ended(None)
        except Exception as error:
            self._restarts.ended(error)
            raise
        finally:
            lease.release()

    def _hung(self, fault: NoProgress) -> None:
        within(_RECORD_S, lambda: self._restarts.ended(fault))
        self._abort(fault)

    @cached_property
    def _connections(self) -> Mapping[str, str]:
        """Name -> URL of every connection that the spec names, credentials included."""
        given = with_credentials(self._configuration.connections, self._configuration.secrets)
        connections.check(self._spec, given)
        return given

    @cached_property
    def _kafka(self) -> KafkaAccess:
        """How the brokers are reached, with user and password if they ask for them and the job has topics."""
        spec, access = self._spec.job.spec, self._configuration.kafka
        return signed_in(access) if spec.kafka_sources or spec.kafka_sinks else access

    def _session(self) -> SparkSession:
        job = self._spec.job
        given = {
            **spark_session.state_conf(job.spec.state),
            **stages_conf(job.spec.stages),
            **retention_conf(job.spec),
            **self._configuration.spark_conf,
        }
        conf = {**given, **spark_session.counting_conf(open_windows=self._configuration.report_open_windows)}
        return self._spark.session(job, self._configuration, conf)

    @property
    def _begun(self) -> bool:
        """Whether a query of the job has committed a micro-batch."""
        return bool(begun(self._checkpoint))

    def _brokers(self, group: str | None = None) -> Brokers:
        return Brokers(self._kafka, group=group or f"penstock.{self._spec.job.metadata.name}")

    def _planned_and_run(self, context: DriverContext) -> bool:
        """The job's queries, until they terminate.

        Returns:
            Whether they must be planned and started again, see `Queries.run`.
        """
        plans = self._planned(context)
        self._refuse_gone(plans)
        self._generations.begin(plans, context.session.version, context.lease.token)
        ended = self._ended = threading.Event()
        if self._stop.is_set() or context.lease.over.is_set():
            ended.set()
        commits = self._commits(plans[0].job.offsets, context.lease)
        try:
            return Queries(context, plans, self._stop, ended, commits, changed=self._generations.changed_since(plans)).run()
        finally:
            if commits is not None:
                commits.close()

    def _planned(self, context: DriverContext) -> list[QueryPlan]:
        goes_on = self._offsets.by_group and self._begun
        plans = planned(context, self._offsets.find(begun=goes_on))
        if goes_on and any(plan.batches.last.batch < 0 for plan in plans):
            # A new query of a job that runs already begins where the job's consumer group is.
            return planned(context, self._offsets.find())
        return plans

    def _refuse_gone(self, plans: Sequence[QueryPlan]) -> None:
        """Rejects a checkpoint whose next records Kafka has deleted: Spark would say that some may have been lost, without saying which."""
        next_: dict[str, dict[int, int]] = {}
        for plan in plans:
            for topic, positions in plan.batches.last.positions.items():
                if topic in plan.topics:
                    known = next_.setdefault(topic, {})
                    # The one that has read least: what it has still to read must be there.
                    known.update({number: min(one.next, known.get(number, one.next)) for number, one in positions.items()})
        # A bounded run reads up to its ends, and has none but those records to read.
        if next_ and self._bounded is None:
            with contextlib.closing(self._brokers()) as brokers:
                raise_all(brokers.gone(next_))

    def _end_after(self, cause: threading.Event) -> None:
        cause.wait()
        # That of the queries that run by then.
        self._ended.set()

    def _commits(self, offsets: Mapping[str, Offsets], lease: Lease) -> OffsetCommits | None:
        """The committer of offsets to consumer groups, for the sources that ask for it."""
        topics: dict[str | None, set[str]] = {}
        for name, source in self._spec.job.spec.kafka_sources.items():
            if source.commit_offsets:
                topics.setdefault(source.group_id, set()).update(offsets.get(name, {}))
        groups = [GroupTopics(self._brokers(group), frozenset(some)) for group, some in topics.items() if some]
        return OffsetCommits(groups, lambda: lease.sure) if groups else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
