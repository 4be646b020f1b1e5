"""What a generation records of a query: its sources, by which a checkpoint has its offsets, what its stateful operators keep, and where
its rows go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.spec.sinks import FileSink, Sink, ToConsole, ToFiles, ToFunction, ToKafka, ToPostgres, ToRedis, ToWebhook
from penstock.jobs.spec.sources import FromFiles, FromKafka, FromSocket, Source
from penstock.jobs.state_schema import StateSchema

OutputMode = Literal["append", "update"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class Operator(_Record):
    """A stateful operator of a query.

    Args:
        id: Spark's, by which the checkpoint's ``state/`` has its state.
        name: of its class in Spark, such as ``Aggregate``.
        state: what it keeps; None where that is not known, as in records of earlier releases.
    """

    id: int = Field(ge=0)
    name: str
    state: StateSchema | None = None


class SourceRecord(_Record):
    """A source of a query, as the spec has it.

    Args:
        name: in the spec.
        kind: what ``places`` are.
        places: what it reads: the topics, the regular expression of their names, the folder on S3 or the connection.
    """

    name: str
    kind: Literal["topics", "pattern", "files", "socket"]
    places: tuple[str, ...]

    @classmethod
    def of(cls, name: str, source: Source) -> SourceRecord:
        """Of a source of a spec.

        Args:
            name: in the spec.
            source: the source.
        """
        match source:
            case FromKafka(kafka=kafka):
                return cls(name=name, kind="topics" if kafka.pattern is None else "pattern", places=kafka.named or (kafka.pattern or "",))
            case FromFiles(files=files):
                return cls(name=name, kind="files", places=(f"{files.bucket or ''}/{files.path}",))
            case FromSocket(socket=socket):
                return cls(name=name, kind="socket", places=(socket.connection,))


class SinkRecord(_Record):
    """A sink of a query, as the spec has it.

    Args:
        name: in the spec.
        kind: what ``place`` is.
        place: the topic, the path in the output bucket or the URL of a folder in another, the connection with the table or the prefix of
            the keys, or the function.
        guarantee: of files, topics and what only sends; None where it depends on the rows or on the app.
    """

    name: str
    kind: Literal["files", "topic", "table", "hashes", "endpoint", "function", "console"]
    place: str
    guarantee: Literal["at-least-once", "exactly-once"] | None = None

    @classmethod
    def of(cls, name: str, sink: Sink) -> SinkRecord:
        """Of a sink of a spec.

        Args:
            name: in the spec.
            sink: the sink.
        """
        match sink:
            case ToFiles(files=files):
                return cls(name=name, kind="files", place=_folder(files), guarantee="exactly-once")
            case ToKafka(kafka=kafka):
                return cls(name=name, kind="topic", place=kafka.topic, guarantee=kafka.guarantee)
            case ToPostgres(postgres=postgres):
                return cls(name=name, kind="table", place=f"{postgres.connection} {postgres.table}")
            case ToRedis(redis=redis):
                return cls(name=name, kind="hashes", place=f"{redis.connection} {redis.prefix}".rstrip())
            case ToWebhook(webhook=webhook):
                return cls(name=name, kind="endpoint", place=webhook.connection, guarantee="at-least-once")
            case ToFunction(function=function):
                return cls(name=name, kind="function", place=function.name)
            case ToConsole():
                return cls(name=name, kind="console", place="", guarantee="at-least-once")

    @property
    def said(self) -> str:
        """Kind and place, for people."""
        return f"{self.kind} {self.place}".rstrip()


class QueryRecord(_Record):
    """A query of a generation.

    Args:
        sources: names of the sources that it reads, in the spec's order.
        operators: those that keep state, in the order of their ids.
        reads: its sources in the order of Spark's plan, by which a checkpoint has their offsets; None in records of earlier releases.
        sinks: where its rows go, those of its side outputs last; None in records of earlier releases.
        output_mode: Spark's: whether a group comes out when it closes, or whenever it changes; None in records of earlier releases.
    """

    sources: tuple[str, ...]
    operators: tuple[Operator, ...]
    reads: tuple[SourceRecord, ...] | None = None
    sinks: tuple[SinkRecord, ...] | None = None
    output_mode: OutputMode | None = None

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        operators: Sequence[str],
        states: Sequence[StateSchema] | None = None,
        reads: Sequence[SourceRecord] | None = None,
        sinks: Sequence[SinkRecord] | None = None,
        output_mode: OutputMode | None = None,
    ) -> QueryRecord:
        """Of a query.

        Args:
            sources: their names.
            operators: their names, in the order of Spark's ids, which it gives from 0.
            states: of the operators, in the same order; None: not known.
            reads: the sources, in the order of Spark's plan; None: not known.
            sinks: where its rows go; None: not known.
            output_mode: Spark's; None: not known.
        """
        known: Sequence[StateSchema | None] = states or [None] * len(operators)
        kept = (Operator(id=number, name=name, state=state) for number, (name, state) in enumerate(zip(operators, known, strict=True)))
        return cls(
            sources=tuple(sources),
            operators=tuple(kept),
            reads=None if reads is None else tuple(reads),
            sinks=None if sinks is None else tuple(sinks),
            output_mode=output_mode,
        )


def _folder(files: FileSink) -> str:
    return files.path if files.bucket is None else f"s3a://{files.bucket}/{files.path}"
