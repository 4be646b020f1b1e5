"""Plans the query of a job: builds the app, checks what it declares, and opens its sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType

from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.blocks.keyed.backend import on_the_heap
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import app
from penstock.jobs.driver.determinism import is_stateful, refuse_unrepeatable, refuse_unrepeatable_state, runs_python
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.micro_batch import Emit, MicroBatches, Route, routed
from penstock.jobs.job import Job
from penstock.jobs.sinks.building import build, writes_directly
from penstock.jobs.sinks.sink import BatchSink, SinkContext
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.sources.splits import splits
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.lease import Lease
from penstock.jobs.stream.event_time import heartbeat
from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.streams import Stream
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
    """

    configuration: RuntimeConfiguration
    spec: SpecFile
    session: SparkSession
    checkpoint: Checkpoint
    lease: Lease
    connections: Mapping[str, str]
    emit: Emit
    gauges: Gauges


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
        PenstockError: JOB-003, JOB-004, JOB-062, JOB-085, and those of the sources and sinks.
    """
    spec, configuration = context.spec, context.configuration
    schemas = avro_schemas(spec)
    job = Job(spec.job, context.session, configuration.kafka, offsets, context.connections, configuration.output_bucket, schemas)
    module = app.build(spec, configuration.app_path, job)
    stream, routes = job.declared()
    # Side outputs too: their rows are computed with the rest. Of the conditions, only those of such a sink.
    outputs = dict.fromkeys([*routes, *job.side_outputs.values()])
    exactly_once = {name: routes.get(name) for name in outputs if spec.job.spec.sinks[name].exactly_once}
    refuse_unrepeatable(routed(stream.frame, exactly_once), list(exactly_once))
    computed = replace(stream, frame=routed(stream.frame, routes))
    if on_the_heap(context.session):
        refuse_unrepeatable_state(computed.frame)
    batches = _batches(context, job, module)
    return QueryPlan(job, heartbeat.added(context.session, computed) if heartbeat.needed(spec.job.spec) else computed, batches)


def _batches(context: DriverContext, job: Job, module: ModuleType | None) -> MicroBatches:
    spec, checkpoint = context.spec.job.spec, context.checkpoint
    stream, routes = job.declared()
    timed = {name: source.time for name, source in spec.sources.items() if source.time}
    sinks = _sinks(context, job, module)
    return MicroBatches(
        session=context.session,
        engine=Engine(context.session, context.spec.job.metadata.name),
        checkpoint=checkpoint,
        times={name: InputTime.of(time) for name, time in timed.items()},
        splits={name: splits(name, job.offsets.get(name, {})) for name in spec.sources},
        routes=[_route(context, name, condition, sinks[name], stream.frame, alone=len(routes) == 1) for name, condition in routes.items()],
        side_outputs={tag: sinks[name] for tag, name in job.side_outputs.items()},
        last=checkpoint.last_record(),
        emit=context.emit,
        lease=context.lease,
        strict=stream.strict,
        when_idle=spec.when_idle,
        quarantine=spec.quarantine,
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


def _route(context: DriverContext, name: str, condition: str | None, sink: BatchSink, frame: DataFrame, *, alone: bool) -> Route:
    spec = context.spec.job.spec
    # Files are written by few tasks, by the number of records. A stateful operator needs as many as its state has partitions, and
    # steps in Python, such as calls, need as many as read.
    by_records = len(spec.kafka_sources) == len(spec.sources) and not (is_stateful(frame) or runs_python(frame))
    direct = alone and condition is None and writes_directly(spec.sinks[name], by_records=by_records)
    return Route(name, sink, chosen=condition is not None, direct=direct)
