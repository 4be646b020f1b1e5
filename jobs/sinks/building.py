"""Builds the sink that writes from a sink of the spec.

Every sink class has ``of(name, spec, context)``. A kind that is not built here is a type error.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from penstock.jobs.sinks.console import Console
from penstock.jobs.sinks.files import Files
from penstock.jobs.sinks.kafka_records import records
from penstock.jobs.sinks.sink import BatchSink, SinkContext
from penstock.jobs.sinks.topics import Topic
from penstock.jobs.spec import KafkaSink, Sink, ToConsole, ToFiles, ToFunction, ToKafka, ToPostgres, ToRedis, ToWebhook

BuildSink = Callable[[str, Sink, SinkContext], BatchSink]


def build(name: str, sink: Sink, context: SinkContext) -> BatchSink:
    """Builds the sink of a spec. The dependencies of a kind are imported only if a job uses it.

    Args:
        name: name of the sink, a key of ``spec.sinks``.
        sink: sink of the spec.
        context: job, connections and checkpoint to build from.
    """
    match sink:
        case ToFiles():
            return Files.of(name, sink.files, context)
        case ToKafka():
            return _topic(name, sink.kafka, context)
        case ToPostgres():
            from penstock.jobs.sinks.postgres import PostgresTable

            return PostgresTable.of(name, sink.postgres, context)
        case ToRedis():
            from penstock.jobs.sinks.redis import RedisHashes

            return RedisHashes.of(name, sink.redis, context)
        case ToWebhook():
            from penstock.jobs.sinks.webhook import Webhook

            return Webhook.of(name, sink.webhook, context)
        case ToFunction():
            from penstock.jobs.sinks.function import Function

            return Function.of(name, sink.function, context)
        case ToConsole():
            return Console.of(name, sink.console, context)


def writes_directly(sink: Sink, *, by_records: bool) -> bool:
    """Whether a sink may be given rows that are not evaluated yet, because it evaluates them once.

    Args:
        sink: sink of the spec.
        by_records: whether it may choose its number of tasks by the records that the micro-batch reads.
    """
    match sink:
        case ToKafka():
            return sink.kafka.guarantee == "at-least-once"
        case ToFiles():
            return by_records
        case _:
            return False


def formatted(sink: Sink, rows: DataFrame, *, updates: bool) -> DataFrame:
    """The rows of a query as its only sink takes them: as records, where the query can make them, so that a micro-batch has not to plan it.

    Args:
        sink: sink of the spec.
        rows: data columns and the event time.
        updates: whether a row replaces the earlier one with its key.

    Raises:
        BadDeclaration: JOB-004, the rows lack a column that the sink names.
    """
    match sink:
        # Deletes sort the rows of a micro-batch, which a stream can't be.
        case ToKafka() if not sink.kafka.deletes and sink.kafka.guarantee == "at-least-once":
            return records(sink.kafka, rows, updates=updates)
        case _:
            return rows


def _topic(name: str, sink: KafkaSink, context: SinkContext) -> BatchSink:
    if sink.guarantee == "at-least-once":
        return Topic.of(name, sink, context)
    from penstock.jobs.sinks.exactly_once_topics import ExactlyOnceTopic

    return ExactlyOnceTopic.of(name, sink, context)
