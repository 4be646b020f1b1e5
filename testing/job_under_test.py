"""A job that reads hand-made micro-batches: the driver's own queries, with files in the place of sources and lists in that of sinks."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import no_services
from penstock.jobs.driver.context import DriverContext
from penstock.jobs.driver.errors import NoProgress
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.planning import QueryPlan, planned
from penstock.jobs.driver.queries import Queries
from penstock.jobs.driver.readiness import Readiness
from penstock.jobs.driver.session import give_workers, session_of
from penstock.jobs.spec import SpecFile, load, named_connections
from penstock.jobs.spec.job import Stages
from penstock.scripts.local.servers.starting import LocalServers, without_server
from penstock.sizing.errors import PenstockError, raise_all
from penstock.testing.differences import same_rows
from penstock.testing.errors import WrongInput
from penstock.testing.kept_rows import KeptRows
from penstock.testing.local_checkpoint import FILE_MANAGER, LocalCheckpoint, OnlyDriver
from penstock.testing.output import MicroBatch, Output
from penstock.testing.records import HandMade, Replayed, Value, Values

_BUCKET = "penstock-testing"
# Fields of a spec with connections that a job asks itself; those of sources and sinks are not used.
_ASKED = ("connections", "tables")
# A shuffle that is one, and no more: a few rows need no tasks.
_SHUFFLE_PARTITIONS = 2
# To generate and compile code takes longer than to interpret a few rows.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


class _Killed(Exception):
    """The driver dies, after the sinks have written a micro-batch and before Spark has committed it."""


@dataclass
class _Run:
    """What is written while a job reads some micro-batches.

    Args:
        crashes: micro-batches that are not committed when they are first written, counted from 0.
        rows: URI of the query's checkpoint, and micro-batch -> sink -> its rows, one list for each time that it was written.
        done: query -> micro-batches that it has committed, or is about to.
        crashed: query, and micro-batch whose driver has died.
        batches: what the driver has reported of each.
        killed: whether the driver has just died.
    """

    crashes: set[int]
    rows: dict[tuple[str, int], dict[str, list[list[Any]]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    done: Counter[str] = field(default_factory=Counter)
    crashed: set[tuple[str, int]] = field(default_factory=set)
    batches: list[Mapping[str, Any]] = field(default_factory=list)
    killed: bool = False

    def keep(self, checkpoint: str, sink: str, number: int, rows: list[Any]) -> None:
        """Keeps the rows of a sink."""
        self.rows[checkpoint, number][sink].append(rows)

    def hear(self, event: str, detail: Mapping[str, object]) -> None:
        """Hears the driver's events; ``batch`` comes after the sinks have written and before Spark commits."""
        if event != "batch":
            return
        query = _query(detail)
        place = (query, self.done[query])
        if place[1] in self.crashes and place not in self.crashed:
            self.crashed.add(place)
            self.killed = True
            raise _Killed
        self.done[query] += 1
        self.batches.append(detail)


class JobUnderTest:
    """A job that reads what a test gives it.

    Args:
        spec: path of its spec.
        session: has Spark.
        folder: for its input and its checkpoint; need not exist.
        app_path: folders of its app, besides that of the spec.
        partitions: of each topic that it reads.
        held: holds the servers of its connections, until the test ends.

    Raises:
        PenstockError: what is wrong in the spec.
    """

    def __init__(
        self, spec: Path, session: SparkSession, folder: Path, *, app_path: Sequence[Path] = (), partitions: int = 1, held: ExitStack
    ) -> None:
        self._spec = _without_an_end(load(spec))
        self._folders = tuple(str(one.resolve()) for one in (spec.parent, *app_path))
        self._session = session
        self._checkpoint = LocalCheckpoint(folder / "checkpoint")
        self._folder, self._held = folder, held
        self._urls: Mapping[str, str] | None = None
        self._sources: dict[str, HandMade] = {}
        for name, source in self._spec.job.spec.sources.items():
            (folder / "input" / name).mkdir(parents=True)
            self._sources[name] = HandMade(name, source, folder / "input" / name, partitions)

    def run(self, *batches: Values | Replayed) -> Output:
        """Starts the job, lets it read these micro-batches, and stops it. A second call starts it again from its checkpoint.

        Args:
            batches: values of the only source, or source -> values, of each micro-batch; `replayed` for one whose driver dies.

        Returns:
            What it has written since it was started.

        Raises:
            AssertionError: a replay has written other rows.
            PenstockError: TEST-001, SPEC-005 for a connection without a local server; whatever the job fails with.
        """
        values = [self._by_source(batch.values if isinstance(batch, Replayed) else batch) for batch in batches]
        for batch in values:
            for name, source in self._sources.items():
                source.write(batch.get(name, ()))
        run = _Run({number for number, batch in enumerate(batches) if isinstance(batch, Replayed)})
        with self._importable():
            while self._start(run):
                pass
        return self._output(run)

    def _by_source(self, batch: Values) -> Mapping[str, Sequence[Value]]:
        if not isinstance(batch, Mapping):
            if len(self._sources) != 1:
                need = f"source -> values; the job's sources are {', '.join(self._sources)}"
                raise WrongInput(path="micro_batches", given="values without a source", need=need, fix="name the source")
            batch = dict.fromkeys(self._sources, batch)
        for name, values in batch.items():
            if name not in self._sources:
                need = f"a source of the spec: {', '.join(self._sources)}"
                raise WrongInput(path="micro_batches", given=f'source "{name}"', need=need, fix="correct the name")
            self._sources[name].check(values)
        return batch

    def _start(self, run: _Run) -> bool:
        """Runs the job until it has read everything.

        Returns:
            Whether its driver has died, so that it must be started again.
        """
        context = self._context(run)
        run.killed = False
        try:
            plans = self._planned(context)
            again = Queries(context, plans, threading.Event(), threading.Event(), None, changed=False).run()
        except PenstockError:
            if not run.killed:
                raise
        return run.killed or again

    def _planned(self, context: DriverContext) -> list[QueryPlan]:
        offsets = {
            name: {topic: dict.fromkeys(range(source.partitions), 0) for topic in source.topics}
            for name, source in self._sources.items()
            if name in self._spec.job.spec.kafka_sources
        }
        return planned(context, offsets)

    def _context(self, run: _Run) -> DriverContext:
        session = session_of(self._spec.job, self._session)
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        session.conf.set("spark.sql.shuffle.partitions", _SHUFFLE_PARTITIONS)
        for key, value in _INTERPRETED.items():
            session.conf.set(key, value)
        configuration = RuntimeConfiguration(
            spec=str(self._spec.path),
            app_path=self._folders,
            master=self._session.sparkContext.master or "",
            brokers=no_services.BROKERS,
            job_folder=f"s3a://{_BUCKET}/{self._spec.job.metadata.name}",
            output_bucket=_BUCKET,
        )
        return DriverContext(
            configuration=configuration,
            kafka=configuration.kafka,
            spec=self._spec,
            session=session,
            checkpoint=self._checkpoint,
            connections={**no_services.urls(self._spec.job.spec), **self._connections()},
            records={name: source.frame(session) for name, source in self._sources.items()},
            build_sink=partial(KeptRows.of, keep=run.keep),
            lease=OnlyDriver(),
            emit=run.hear,
            gauges=Gauges(session),
            hung=_raise,
            readiness=Readiness(),
        )

    def _connections(self) -> Mapping[str, str]:
        """Connection -> URL of the servers for what the app calls and looks up, started once."""
        if self._urls is None:
            needed = {one.name for one in named_connections(self._spec.job.spec) if one.place[1] in _ASKED}
            raise_all(without_server(self._spec, needed))
            servers = LocalServers(_with_servers(self._spec, needed), [*map(Path, self._folders)], self._folder / "connections")
            self._urls = self._held.enter_context(servers).urls if needed else {}
        return self._urls

    @contextmanager
    def _importable(self) -> Iterator[None]:
        """Context in which this process and Spark's Python workers import from the job's folders first. Each folder is there once: Spark
        starts other workers for another environment.
        """
        path, environment = list(sys.path), self._session.sparkContext.environment
        before = dict(environment)
        sys.path[:0] = [folder for folder in self._folders if folder not in sys.path]
        known = before.get("PYTHONPATH", "").split(os.pathsep)
        give_workers(self._session, [folder for folder in self._folders if folder not in known])
        try:
            yield
        finally:
            # Another job may have modules of the same names.
            sys.path[:] = path
            environment.clear()
            environment.update(before)

    def _output(self, run: _Run) -> Output:
        found = []
        for event in run.batches:
            query, number = _query(event), int(event["batch"])
            written = run.rows[self._checkpoint.of_query(query).uri, number]
            for sink, (first, *others) in written.items():
                for again in others:
                    _refuse_others(first, again, sink, number)
            watermark_ms = event["watermarks"]["inForceMs"]
            watermark = None if watermark_ms is None else datetime.fromtimestamp(watermark_ms / 1000, UTC)
            found.append(MicroBatch(number, {sink: rows[-1] for sink, rows in written.items()}, event["tags"], watermark, query))
        return Output(found)


def _query(event: Mapping[str, Any]) -> str:
    """The query of an event among those of its job: the driver calls it ``job.query``, and the first one ``job``."""
    return str(event.get("query", "")).partition(".")[2]


def _without_an_end(spec: SpecFile) -> SpecFile:
    """The job as it reads what is available, in few tasks."""
    job = spec.job.spec.model_copy(update={"trigger": "availableNow", "bounded": False, "stages": Stages()})
    return spec.model_copy(update={"job": spec.job.model_copy(update={"spec": job})})


def _with_servers(spec: SpecFile, names: Collection[str]) -> SpecFile:
    """The job with no other local servers."""
    local = spec.job.spec.local
    kept = local.model_copy(update={"connections": {name: asked for name, asked in local.connections.items() if name in names}})
    return spec.model_copy(update={"job": spec.job.model_copy(update={"spec": spec.job.spec.model_copy(update={"local": kept})})})


def _refuse_others(first: Sequence[Any], again: Sequence[Any], sink: str, number: int) -> None:
    try:
        same_rows(again, first)
    except AssertionError as error:
        raise AssertionError(f"the replay of micro-batch {number} writes other rows to {sink} than its first run:{error}") from None


def _raise(fault: NoProgress) -> None:
    raise fault
