"""Connections that a spec names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.jobs.spec.job import ConnectionKind, JobSpec
from penstock.jobs.spec.sinks import ToPostgres, ToRedis, ToWebhook
from penstock.jobs.spec.sources import FromSocket


@dataclass(frozen=True)
class NamedConnection:
    """A reference of a spec to a connection.

    Args:
        name: name of the connection.
        kind: required kind.
        place: place of the name in the document.
    """

    name: str
    kind: ConnectionKind
    place: tuple[str, ...]


def named_connections(spec: JobSpec) -> list[NamedConnection]:
    """All references of a spec to connections, in its order; a connection that is named twice has two."""
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
    """Names of all connections of a spec, unique and sorted."""
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
