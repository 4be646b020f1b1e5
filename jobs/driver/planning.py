"""Plans the query of a job: builds the app, checks what it declares, and opens its sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from pyspark.sql import SparkSession

from penstock.jobs.blocks.keyed.backend import on_the_heap
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import app
from penstock.jobs.driver.bounded import BoundedRun, refuse_after_the_end
from penstock.jobs.driver.determinism import refuse_unrepeatable, refuse_unrepeatable_state
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.micro_batch import Emit, MicroBatches, Route, never
from penstock.jobs.driver.structure import refuse_structure
from penstock.jobs.job import Job
from penstock.jobs.sinks.building import build, writes_directly
from penstock.jobs.sinks.sink import BatchSink, SinkContext
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.sources.splits import splits
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.lease import Lease
from penstock.jobs.stream.analyzed_plan import StatefulOperator, runs_python, stateful_operators
from penstock.jobs.stream.event_time import heartbeat
from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.selections import Selection, Step, routed, tried
from penstock.jobs.stream.streams import TIME, Stream
from penstock.jobs.watermark import InputTime


@dataclass(frozen=True)
class DriverContext:
    """What the queries of a driver have in common.

    Args:
        configuration: what the driver was started with.
        spec: the job's.
        session: Spark's session.
        checkpoint: of the job.
        lease: of the checkpoint.
        connections: name -> URL of databases and endpoints, credentials included.
        emit: reports an event.
        gauges: the job's metrics.
        bounded: the bounded run; None: the job has no end.
    """

    configuration: RuntimeConfiguration
    spec: SpecFile
    session: SparkSession
    checkpoint: Checkpoint
    lease: Lease
    connections: Mapping[str, str]
    emit: Emit
    gauges: Gauges
    bounded: BoundedRun | None = None


@dataclass(frozen=True)
class QueryPlan:
    """A query that can be started.

    Args:
        job: as its app has declared it.
        stream: what the query computes.
        batches: what is done with each of its micro-batches.
    """

    job: Job
    stream: Stream
    batches: MicroBatches


def planned(context: DriverContext, offsets: Mapping[str, Offsets]) -> QueryPlan:
    """Builds a job's app and plans its query.

    Args:
        context: the driver's.
        offsets: source -> topic -> partition -> start offset of a query without a checkpoint; Kafka sources only.

    Raises:
        PenstockError: JOB-003, JOB-004, JOB-022, JOB-062, JOB-085, and those of the sources and sinks.
    """
    spec, configuration = context.spec, context.configuration
    schemas = avro_schemas(spec)
    last = context.checkpoint.last_record()
    if context.bounded is None:
        refuse_after_the_end(last, context.checkpoint)
    job = Job(spec.job, context.session, configuration.kafka, offsets, context.connections, configuration.output_bucket, schemas)
    if context.bounded is not None:
        job.ends, job.read = context.bounded.ends, context.bounded.read(last)
    module = app.build(spec, configuration.app_path, job)
    stream, routes = job.declared()
    operators = stateful_operators(stream.frame)
    refuse_structure(spec, app.source(spec, configuration.app_path, module), job, stream.frame, operators)
    _refuse_unrepeatable(context, job)
    computed = replace(stream, frame=routed(stream.frame, routes))
    if on_the_heap(context.session):
        refuse_unrepeatable_state(computed.frame)
    batches = _batches(context, job, module, operators, last)
    return QueryPlan(job, _with_a_heartbeat(context, computed), batches)


def _with_a_heartbeat(context: DriverContext, stream: Stream) -> Stream:
    """The output, with the micro-batches that the job needs and its input does not cause."""
    if context.bounded is not None:
        return heartbeat.once_at_start(context.session, stream)
    return heartbeat.added(context.session, stream) if heartbeat.needed(context.spec.job.spec) else stream


def _refuse_unrepeatable(context: DriverContext, job: Job) -> None:
    """Exactly-once sinks get the same rows from a replay: the query's, and what their functions make of them."""
    stream, routes = job.declared()
    # Side outputs too: their rows are computed with the rest. Of the conditions, only those of such a sink.
    outputs = dict.fromkeys([*routes, *job.side_outputs.values()])
    exactly_once = {name: routes.get(name) for name in outputs if context.spec.job.spec.sinks[name].exactly_once}
    refuse_unrepeatable(routed(stream.frame, exactly_once), list(exactly_once))
    for name, selection in routes.items():
        if callable(selection):
            made = tried(_without_empty_time(job, selection), stream.frame, context.session, name)
            refuse_unrepeatable(made, [name] if name in exactly_once else [])


def _without_empty_time(job: Job, step: Step) -> Step:
    """A function of the app, which gets the event time only where there is one, as from ``.df``."""
    stream, _ = job.declared()
    return step if stream.timed else lambda rows: step(rows.drop(TIME))


def _batches(
    context: DriverContext, job: Job, module: ModuleType | None, operators: Sequence[StatefulOperator], last: BatchRecord
) -> MicroBatches:
    spec, checkpoint = context.spec.job.spec, context.checkpoint
    stream, routes = job.declared()
    timed = {name: source.time for name, source in spec.sources.items() if source.time}
    sinks = _sinks(context, job, module)
    # Files are written by few tasks, by the number of records. A stateful operator needs as many as its state has partitions, and
    # steps in Python, such as calls, need as many as read.
    by_records = len(spec.kafka_sources) == len(spec.sources) and not (operators or runs_python(stream.frame))
    return MicroBatches(
        session=context.session,
        engine=Engine(context.session, context.spec.job.metadata.name),
        checkpoint=checkpoint,
        times={name: InputTime.of(time) for name, time in timed.items()},
        splits={name: splits(name, job.offsets.get(name, {})) for name in spec.sources},
        routes=[
            _route(job, name, selection, sinks[name], by_records=by_records, alone=len(routes) == 1) for name, selection in routes.items()
        ],
        side_outputs={tag: sinks[name] for tag, name in job.side_outputs.items()},
        last=last,
        emit=context.emit,
        lease=context.lease,
        strict=any(operator.strict for operator in operators),
        when_idle=spec.when_idle,
        quarantine=spec.quarantine,
        input_ended=context.bounded.reached if context.bounded else never,
    )


def _sinks(context: DriverContext, job: Job, module: ModuleType | None) -> dict[str, BatchSink]:
    stream, routes = job.declared()
    # For any sink: an existing directory keeps s3a from probing its parents, to which a job has no access.
    sinks = SinkContext(
        job=context.spec.job.metadata.name,
        session=context.session,
        kafka=context.configuration.kafka,
        output_bucket=context.configuration.output_bucket,
        identity=context.checkpoint.identity(),
        checkpoint=context.checkpoint,
        connections=context.connections,
        app=module,
        updates=stream.updates,
    )
    return {name: build(name, context.spec.job.spec.sinks[name], sinks) for name in {*routes, *job.side_outputs.values()}}


def _route(job: Job, name: str, selection: Selection, sink: BatchSink, *, by_records: bool, alone: bool) -> Route:
    if callable(selection):
        return Route(name, sink, step=_without_empty_time(job, selection))
    direct = alone and selection is None and writes_directly(job.spec.spec.sinks[name], by_records=by_records)
    return Route(name, sink, chosen=selection is not None, direct=direct)
