"""What a generation records of a query: its sources, by which a checkpoint has its offsets, and what its stateful operators keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.spec.sources import FromFiles, FromKafka, FromSocket, Source
from penstock.jobs.state_schema import StateSchema


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


class QueryRecord(_Record):
    """A query of a generation.

    Args:
        sources: names of the sources that it reads, in the spec's order.
        operators: those that keep state, in the order of their ids.
        reads: its sources in the order of Spark's plan, by which a checkpoint has their offsets; None in records of earlier releases.
    """

    sources: tuple[str, ...]
    operators: tuple[Operator, ...]
    reads: tuple[SourceRecord, ...] | None = None

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        operators: Sequence[str],
        states: Sequence[StateSchema] | None = None,
        reads: Sequence[SourceRecord] | None = None,
    ) -> QueryRecord:
        """Of a query.

        Args:
            sources: their names.
            operators: their names, in the order of Spark's ids, which it gives from 0.
            states: of the operators, in the same order; None: not known.
            reads: the sources, in the order of Spark's plan; None: not known.
        """
        known: Sequence[StateSchema | None] = states or [None] * len(operators)
        kept = (Operator(id=number, name=name, state=state) for number, (name, state) in enumerate(zip(operators, known, strict=True)))
        return cls(sources=tuple(sources), operators=tuple(kept), reads=None if reads is None else tuple(reads))
