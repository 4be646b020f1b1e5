"""Plans the queries of a job: builds the app, checks what it declares, and opens the sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType, ModuleType
from typing import Self

from pyspark.sql import DataFrame

from penstock.jobs.blocks.keyed.backend import on_the_heap
from penstock.jobs.driver import app
from penstock.jobs.driver.bounded import BoundedQuery, refuse_after_the_end
from penstock.jobs.driver.context import DriverContext, PlanningContext
from penstock.jobs.driver.determinism import refuse_unrepeatable, refuse_unrepeatable_state
from penstock.jobs.driver.fixed_parallelism import FixedParallelism, fixed_parallelism
from penstock.jobs.driver.micro_batch import Emit, MicroBatches, Route, never
from penstock.jobs.driver.places import DeclaredPlaces
from penstock.jobs.driver.shares import Share, names, shares
from penstock.jobs.driver.structure import Structure, counters_of, refuse_query, refuse_structure
from penstock.jobs.driver.unsupported import refuse_unsupported
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.job import Job, Output
from penstock.jobs.sinks.building import formatted, writes_directly
from penstock.jobs.sinks.sink import BatchSink, SinkContext
from penstock.jobs.sources.files import address
from penstock.jobs.sources.opening import Offsets, divided
from penstock.jobs.sources.splits import splits
from penstock.jobs.spec import FromSocket
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.job import JobSpec
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.lease import Lease
from penstock.jobs.storage.query_record import OutputMode, QueryRecord, SinkRecord, SourceRecord
from penstock.jobs.stream.analyzed_plan import confuses_state, runs_python
from penstock.jobs.stream.event_time import heartbeat
from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.leaving import Counting
from penstock.jobs.stream.selections import Selection, Step, routed, tried
from penstock.jobs.stream.state_schemas import state_schemas
from penstock.jobs.stream.streams import TIME, Stream
from penstock.jobs.watermark import InputTime


@dataclass(frozen=True)
class QueryPlan:
    """A query that can be started.

    Args:
        name: of the query, unique in the session.
        job: as its app has declared it.
        share: what it reads, writes and counts of the job's sources.
        record: of its sources and of its stateful operators, for the generation.
        stream: what the query computes.
        batches: what is done with each of its micro-batches.
        emit: reports an event of the query.
        bounded: the query in a bounded run; None: it has no end.
        fixed: a parallelism that its checkpoint can't have; None: it has the spec's.
    """

    name: str
    job: Job
    share: Share
    record: QueryRecord
    stream: Stream
    batches: MicroBatches
    emit: Emit
    bounded: BoundedQuery | None = None
    fixed: FixedParallelism | None = None

    @property
    def topics(self) -> frozenset[str]:
        """Topics that the query reads."""
        return frozenset(topic for name in self.share.sources for topic in self.job.offsets.get(name, {}))


def planned(context: DriverContext, offsets: Mapping[str, Offsets]) -> list[QueryPlan]:
    """Builds a job's app and plans its queries, in the order of its outputs.

    The first query has the checkpoint and the name of the job, so that an app that gets a second output goes on with its state.

    Args:
        context: the driver's.
        offsets: source -> topic -> partition -> start offset of a query without a checkpoint; Kafka sources only.

    Raises:
        PenstockError: JOB-003, JOB-004, JOB-022, JOB-062, JOB-085, and those of the sources and sinks.
    """
    counting = Counting()
    return [query.plan(context, counting) for query in analyzed(context, offsets)]


def analyzed(context: PlanningContext, offsets: Mapping[str, Offsets]) -> list[AnalyzedQuery]:
    """Builds a job's app and analyzes its queries, in the order of its outputs. Nothing runs, and no sink is written to.

    Args:
        context: of the job.
        offsets: as for `planned`.

    Raises:
        PenstockError: as `planned`.
    """
    job, module, last = _built(context, offsets)
    places, outputs = _places(context, job, module), job.declared()
    counters = counters_of(job.sources)
    structures = [_structure(output, job, counters, places) for output in outputs]
    with places.located():
        refuse_structure(context.spec, app.source(context.spec, context.configuration.app_path, module), job, structures, counters)
        parts = shares(outputs, structures, counters)
        _refuse_shared_sockets(context.spec.job.spec, parts)
    found = []
    for output, structure, share in zip(outputs, structures, parts, strict=True):
        with places.located(output):
            query = AnalyzedQuery(context, job, module, output, structure, share, counters, last[share.query], len(outputs) > 1)
            found.append(query.analyze())
    return found


def _structure(output: Output, job: Job, counters: Mapping[str, str], places: DeclaredPlaces) -> Structure:
    with places.located(output):
        structure = Structure.of(output.stream.frame)
        refuse_query(job, structure, counters)
    return structure


def _built(context: PlanningContext, offsets: Mapping[str, Offsets]) -> tuple[Job, ModuleType | None, dict[str, BatchRecord]]:
    """The job as its app has declared it, the app's module, and the last record of each query, by its name among those of the job."""
    further = context.checkpoint.queries()
    last = _last_records(context, ["", *further])
    job, module = _declared(context, offsets, read=_all_read(context, last))
    with _places(context, job, module).located():
        outputs = job.declared()
    _refuse_another_order(context.checkpoint, further, outputs)
    last = _last_records(context, names(outputs), last)
    if job.read != _all_read(context, last):
        # A query that is new has read nothing; one that the app has no more does not count.
        job, module = _declared(context, offsets, read=not job.read)
    return job, module, last


def _declared(context: PlanningContext, offsets: Mapping[str, Offsets], *, read: bool) -> tuple[Job, ModuleType | None]:
    spec, configuration = context.spec, context.configuration
    schemas = avro_schemas(spec)
    limits = divided(configuration.max_offsets_per_trigger, offsets)
    place = (context.session, context.kafka, offsets, context.connections, configuration.output_bucket)
    job = Job(spec.job, *place, schemas, limits, open_table=context.open_table, records=context.records)
    if context.bounded is not None:
        job.ends, job.read = context.bounded.ends, read
    return job, app.build(spec, configuration.app_path, job)


def _places(context: PlanningContext, job: Job, module: ModuleType | None) -> DeclaredPlaces:
    return DeclaredPlaces.of(job, module, context.spec, context.configuration.app_path)


def _last_records(
    context: PlanningContext, queries: Iterable[str], known: Mapping[str, BatchRecord] = MappingProxyType({})
) -> dict[str, BatchRecord]:
    """Query -> the record of its last committed micro-batch.

    Raises:
        BoundedRunOver: JOB-022, the job goes on, and the input of one has ended.
    """
    last = {name: known[name] if name in known else context.checkpoint.of_query(name).last_record() for name in queries}
    if context.bounded is None:
        for name, record in last.items():
            refuse_after_the_end(record, context.checkpoint.of_query(name))
    return last


def _all_read(context: PlanningContext, last: Mapping[str, BatchRecord]) -> bool:
    """Whether the input of a bounded run has been read by all queries."""
    return context.bounded is not None and all(context.bounded.read(name, record) for name, record in last.items())


def _refuse_shared_sockets(spec: JobSpec, parts: list[Share]) -> None:
    for name, source in spec.sources.items():
        if isinstance(source, FromSocket) and sum(name in share.sources for share in parts) > 1:
            need = "one query that reads a socket: each would have a connection with other lines"
            fix = "write to several sinks in one job.write, or read from Kafka"
            raise BadDeclaration(path=f'job.source("{name}")', need=need, fix=fix)


def _refuse_another_order(checkpoint: Checkpoint, further: Sequence[str], outputs: Sequence[Output]) -> None:
    """The first query has the job's checkpoint. One that has had a checkpoint of its own must not take that of another."""
    first = next(iter(outputs[0].routes))
    if first in further:
        raise BadDeclaration(
            path=f'job.write(..., "{first}")',
            given="the first job.write",
            need=f"the order of the checkpoint, in which {first} was not the first: {checkpoint.uri}/queries/{first}",
            fix="restore the order of the job.write calls, or set upgradeMode: stateless to start with an empty checkpoint",
        )


@dataclass(frozen=True)
class AnalyzedQuery:
    """A query of a job that Spark has analyzed.

    Args:
        context: of the job.
        job: as its app has declared it.
        module: of the app; None for an app in SQL.
        output: the query's.
        structure: the query's.
        share: the query's.
        counters: of the job's sources, see `penstock.jobs.driver.structure.counters_of`.
        last: the record of its last committed micro-batch.
        several: whether the job has other queries.
    """

    context: PlanningContext
    job: Job
    module: ModuleType | None
    output: Output
    structure: Structure
    share: Share
    counters: Mapping[str, str]
    last: BatchRecord
    several: bool

    def analyze(self) -> Self:
        """Finds what can't run.

        Returns:
            The query.

        Raises:
            PenstockError: JOB-004, JOB-062, JOB-085, and those of the sinks.
        """
        self._refuse_unrepeatable()
        if on_the_heap(self.context.session):
            refuse_unrepeatable_state(self._computed.frame)
        refuse_unsupported(self._computed)
        _ = self._sinks
        return self

    def plan(self, context: DriverContext, counting: Counting) -> QueryPlan:
        """The query, ready to be started.

        Args:
            context: the driver's.
            counting: of all queries.
        """

        def emit(event: str, detail: Mapping[str, object]) -> None:
            context.emit(event, {"query": self._name, **detail} if self.several else detail)

        batches = self._batches(context.lease, emit, counting)
        stream = self._with_a_heartbeat(self._computed)
        return QueryPlan(self._name, self.job, self.share, self.record, stream, batches, emit, self._bounded, self._fixed)

    @property
    def record(self) -> QueryRecord:
        """Its sources, its stateful operators with the state that they keep, and its sinks."""
        names = [operator.name for operator in self.structure.operators]
        mode: OutputMode = "update" if self.output.stream.updates else "append"
        known = state_schemas(self._computed.frame)
        return QueryRecord.of(self.share.sources, names, known, list(self._reads()), list(self._writes()), mode)

    def _reads(self) -> Iterator[SourceRecord]:
        """Its sources, in the order of Spark's plan."""
        for counter in self.structure.reads:
            name = self.counters[counter]
            yield SourceRecord.of(name, self._spec.sources[name])

    def _writes(self) -> Iterator[SinkRecord]:
        """Its sinks, those of its side outputs last."""
        for name in dict.fromkeys([*self.output.routes, *self._side_outputs.values()]):
            yield SinkRecord.of(name, self._spec.sinks[name])

    @cached_property
    def _computed(self) -> Stream:
        """What the query computes, in the form that its sink takes."""
        stream = self.output.stream
        return replace(stream, frame=self._formatted(routed(stream.frame, self.output.routes)))

    def _formatted(self, frame: DataFrame) -> DataFrame:
        (name, selection), *others = self.output.routes.items()
        alone = selection is None and not others
        return formatted(self._spec.sinks[name], frame, updates=self.output.stream.updates) if alone else frame

    def _with_a_heartbeat(self, stream: Stream) -> Stream:
        """The output, with the micro-batches that the query needs and its input does not cause."""
        session = self.context.session
        if self._bounded is not None:
            return heartbeat.once_at_start(session, stream)
        return heartbeat.added(session, stream) if self._spec.follows_clock else stream

    @cached_property
    def _bounded(self) -> BoundedQuery | None:
        run = self.context.bounded
        return None if run is None else BoundedQuery(run, self.share.query, files=bool(self._spec.file_sources))

    @property
    def _fixed(self) -> FixedParallelism | None:
        return fixed_parallelism(self.context.session, self._checkpoint) if self.structure.operators else None

    @property
    def _spec(self) -> JobSpec:
        """The job's, with the sources that the query reads."""
        spec = self.context.spec.job.spec
        return spec.model_copy(update={"sources": {name: source for name, source in spec.sources.items() if name in self.share.sources}})

    @property
    def _name(self) -> str:
        job = self.context.spec.job.metadata.name
        return f"{job}.{self.share.query}" if self.share.query else job

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        return self.context.checkpoint.of_query(self.share.query)

    @property
    def _side_outputs(self) -> Mapping[str, str]:
        """Tag -> sink, for a query from which rows may leave that no other one writes."""
        return self.job.side_outputs if self.share.leaving else {}

    def _refuse_unrepeatable(self) -> None:
        """Exactly-once sinks get the same rows from a replay: the query's, and what their functions make of them."""
        routes, known = self.output.routes, self._spec.sinks
        # Side outputs too: their rows are computed with the rest. Of the conditions, only those of such a sink.
        outputs = dict.fromkeys([*routes, *self._side_outputs.values()])
        exactly_once = {name: routes.get(name) for name in outputs if known[name].exactly_once}
        refuse_unrepeatable(routed(self.output.stream.frame, exactly_once), list(exactly_once))
        for name, selection in routes.items():
            if callable(selection):
                made = tried(self._without_empty_time(selection), self.output.stream.frame, self.context.session, name)
                refuse_unrepeatable(made, [name] if name in exactly_once else [])

    def _without_empty_time(self, step: Step) -> Step:
        """A function of the app, which gets the event time only where there is one, as from ``.df``."""
        return step if self.output.stream.timed else lambda rows: step(rows.drop(TIME))

    def _batches(self, lease: Lease, emit: Emit, counting: Counting) -> MicroBatches:
        spec, checkpoint = self._spec, self._checkpoint
        timed = {name: source.time for name, source in spec.sources.items() if source.time}
        sinks = self._sinks
        return MicroBatches(
            session=self.context.session,
            engine=Engine(self.context.session, self._name),
            checkpoint=checkpoint,
            times={name: InputTime.of(time) for name, time in timed.items()},
            splits={name: splits(name, self.job.offsets.get(name, {})) for name in spec.sources},
            routes=[self._route(name, selection, sinks[name]) for name, selection in self.output.routes.items()],
            side_outputs={tag: sinks[name] for tag, name in self._side_outputs.items()},
            last=self.last,
            emit=emit,
            lease=lease,
            strict=any(operator.strict for operator in self.structure.operators),
            apart=self._loses_blocks and confuses_state(self.structure.operators),
            when_idle=spec.when_idle,
            quarantine=spec.quarantine,
            input_ended=self._bounded.reached if self._bounded else never,
            until=self._bounded.run.ends.by_topic() if self._bounded else {},
            share=self.share,
            files={name: address(files, self.context.configuration.output_bucket) for name, files in spec.file_sources.items()},
            counting=counting,
        )

    @cached_property
    def _sinks(self) -> dict[str, BatchSink]:
        configuration, checkpoint = self.context.configuration, self._checkpoint
        # For any sink: an existing directory keeps s3a from probing its parents, to which a job has no access.
        sinks = SinkContext(
            job=self.context.spec.job.metadata.name,
            session=self.context.session,
            kafka=self.context.kafka,
            output_bucket=configuration.output_bucket,
            identity=checkpoint.identity(),
            checkpoint=checkpoint,
            connections=self.context.connections,
            app=self.module,
            updates=self.output.stream.updates,
        )
        return {
            name: self.context.build_sink(name, self._spec.sinks[name], sinks)
            for name in {*self.output.routes, *self._side_outputs.values()}
        }

    def _route(self, name: str, selection: Selection, sink: BatchSink) -> Route:
        if callable(selection):
            return Route(name, sink, step=self._without_empty_time(selection))
        alone = len(self.output.routes) == 1
        direct = alone and selection is None and writes_directly(self._spec.sinks[name], by_records=self._by_records)
        return Route(name, sink, chosen=selection is not None, direct=direct, few=self._by_records)

    @property
    def _loses_blocks(self) -> bool:
        """Whether rows are kept by executors, which may be lost."""
        return not (self.context.session.sparkContext.master or "").startswith("local")

    @cached_property
    def _by_records(self) -> bool:
        """Whether few tasks may write, by the number of records. A stateful operator needs as many as its state has
        partitions, and steps in Python, such as calls, need as many as read.
        """
        spec = self._spec
        return len(spec.kafka_sources) == len(spec.sources) and not (self.structure.operators or runs_python(self.output.stream.frame))
