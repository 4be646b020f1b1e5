"""The job spec: the one document that a team writes.

Strict and frozen: an unknown field, a wrong type or a wrong quantity is an error with its line, and all of a document's faults come at
once. No Spark here: `penstock size` reads a spec in well under a second. Fields are camelCase in YAML and snake_case here; memory is in
MiB, sizes are in bytes, CPU is in millicores and durations are in milliseconds.
"""

from penstock.jobs.spec.connections import NamedConnection, connection_names, named_connections
from penstock.jobs.spec.job import ConnectionKind, JobSpec, LocalConnection, QuarantineLimit, Stages, StreamingJob
from penstock.jobs.spec.part import Name
from penstock.jobs.spec.reading import SpecFile, json_schema, load
from penstock.jobs.spec.resources import State
from penstock.jobs.spec.sinks import ConsoleSink, FileSink, FunctionSink, KafkaSink, PostgresSink, RedisSink, Roll, Sink, WebhookSink
from penstock.jobs.spec.sources import (
    Avro,
    Cache,
    Csv,
    EventTime,
    FilesSource,
    KafkaKey,
    KafkaSource,
    PostgresTable,
    SocketSource,
    Source,
    Table,
)
from penstock.jobs.spec.topics import TopicSettings

__all__ = [
    "Avro",
    "Cache",
    "ConnectionKind",
    "ConsoleSink",
    "Csv",
    "EventTime",
    "FileSink",
    "FilesSource",
    "FunctionSink",
    "JobSpec",
    "KafkaKey",
    "KafkaSink",
    "KafkaSource",
    "LocalConnection",
    "Name",
    "NamedConnection",
    "PostgresSink",
    "PostgresTable",
    "QuarantineLimit",
    "RedisSink",
    "Roll",
    "Sink",
    "SocketSource",
    "Source",
    "SpecFile",
    "Stages",
    "State",
    "StreamingJob",
    "Table",
    "TopicSettings",
    "WebhookSink",
    "connection_names",
    "json_schema",
    "load",
    "named_connections",
]
