"""What the queries of a driver have in common, for their planning and while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.blocks.lookups.table import OpenTable, open_table
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.errors import NoProgress
from penstock.jobs.driver.lag import Gauges
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.readiness import Readiness
from penstock.jobs.sinks.building import BuildSink, build
from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.lease import Lease


@dataclass(frozen=True, kw_only=True)
class PlanningContext:
    """What a job's app is built with, and its queries are analyzed with.

    Args:
        configuration: what the driver was started with.
        spec: the job's.
        session: Spark's session.
        checkpoint: of the job.
        connections: name -> URL of databases and endpoints, credentials included.
        kafka: how the brokers are reached, with user and password if they ask for them.
        bounded: the bounded run; None: the job has no end.
        open_table: reads the types of a lookup table.
        records: source -> what is read in its place, in a test.
        build_sink: builds a sink of the spec.
    """

    configuration: RuntimeConfiguration
    spec: SpecFile
    session: SparkSession
    checkpoint: Checkpoint
    connections: Mapping[str, str]
    kafka: KafkaAccess
    bounded: BoundedRun | None = None
    open_table: OpenTable = open_table
    records: Mapping[str, DataFrame] = field(default_factory=dict)
    build_sink: BuildSink = build


@dataclass(frozen=True, kw_only=True)
class DriverContext(PlanningContext):
    """What the queries of a driver have in common.

    Args:
        lease: of the checkpoint.
        emit: reports an event.
        gauges: the job's metrics.
        hung: called with the error of a query that hangs, by a thread that does not wait for it.
        readiness: reports that the driver's pod is ready.
    """

    lease: Lease
    emit: Emit
    gauges: Gauges
    hung: Callable[[NoProgress], None]
    readiness: Readiness
