"""From a sink of the spec to the one that writes."""

from __future__ import annotations

from penstock.jobs.sinks.console import Console
from penstock.jobs.sinks.files import Files
from penstock.jobs.sinks.sink import BatchSink, SinkContext
from penstock.jobs.sinks.topics import Topic
from penstock.jobs.spec import Sink


def build(name: str, sink: Sink, context: SinkContext) -> BatchSink:
    """The sink of a spec.

    Args:
        name: below ``spec.sinks``.
        sink: as the spec has it.
        context: what it is built from.
    """
    other = _other(name, sink, context)
    if other is not None:
        return other
    if sink.files:
        return Files(name, sink.files, context.output_bucket, context.identity, context.checkpoint)
    assert sink.kafka is not None
    if sink.kafka.guarantee == "exactly-once":
        from penstock.jobs.sinks.exactly_once_topics import ExactlyOnceTopic

        return ExactlyOnceTopic(name, sink.kafka, context.kafka, context.job, context.identity, context.checkpoint, context.updates)
    return Topic(sink.kafka, context.kafka, context.updates)


def _other(name: str, sink: Sink, context: SinkContext) -> BatchSink | None:
    """A sink that is neither files nor a topic; None for those. What it needs is imported where a job has one."""
    if sink.postgres:
        from penstock.jobs.sinks.postgres import PostgresTable

        return PostgresTable.of(name, sink.postgres, context)
    if sink.redis:
        from penstock.jobs.sinks.redis import RedisHashes

        return RedisHashes.of(name, sink.redis, context)
    if sink.webhook:
        from penstock.jobs.sinks.webhook import Webhook

        return Webhook.of(name, sink.webhook, context)
    if sink.function:
        from penstock.jobs.sinks.function import Function

        return Function.of(name, sink.function, context)
    return Console(name, sink.console) if sink.console else None
