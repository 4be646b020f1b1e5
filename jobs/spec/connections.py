"""Which connections a spec names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.jobs.spec.job import ConnectionKind, JobSpec
from penstock.jobs.spec.sinks import ToPostgres, ToRedis, ToWebhook
from penstock.jobs.spec.sources import FromSocket


@dataclass(frozen=True)
class NamedConnection:
    """A connection where a spec names it.

    Args:
        name: of the connection.
        kind: what it has to be there.
        place: of the name in the document.
    """

    name: str
    kind: ConnectionKind
    place: tuple[str, ...]


def named_connections(spec: JobSpec) -> list[NamedConnection]:
    """All connections that a spec names, in its order; one that stands in two places comes twice."""
    return [
        *(NamedConnection(name, kind, ("spec", "connections", name)) for name, kind in spec.connections.items()),
        *_of_sources(spec),
        *(
            NamedConnection(table.postgres.connection, "postgres", ("spec", "tables", name, "postgres", "connection"))
            for name, table in spec.tables.items()
        ),
        *_of_sinks(spec),
    ]


def connection_names(spec: JobSpec) -> list[str]:
    """The names of all connections of a spec, each once, sorted."""
    return sorted({connection.name for connection in named_connections(spec)})


def _of_sources(spec: JobSpec) -> Iterator[NamedConnection]:
    for name, source in spec.sources.items():
        if isinstance(source, FromSocket):
            yield NamedConnection(source.socket.connection, "socket", ("spec", "sources", name, "socket", "connection"))


def _of_sinks(spec: JobSpec) -> Iterator[NamedConnection]:
    for name, sink in spec.sinks.items():
        place = ("spec", "sinks", name)
        match sink:
            case ToPostgres(postgres=table):
                yield NamedConnection(table.connection, "postgres", (*place, "postgres", "connection"))
            case ToRedis(redis=hashes):
                yield NamedConnection(hashes.connection, "redis", (*place, "redis", "connection"))
            case ToWebhook(webhook=endpoint):
                yield NamedConnection(endpoint.connection, "http", (*place, "webhook", "connection"))
