"""Connections: the databases and endpoints that a spec names and the environment gives.

A spec says ``connection: bank`` and no more; where the bank is, and who the job is there, is the environment's to know. A connection is a
URL, credentials included, that only the driver and its tasks see: no error, no log and no plan of Spark's shows more than `redacted` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.jobs.document import dotted
from penstock.jobs.errors import ConnectionOfAnotherKind, UnknownConnection
from penstock.jobs.spec import ConnectionKind, SpecFile, named_connections
from penstock.sizing.errors import PenstockError, raise_all

# Scheme -> the kind of the connection, and the port where the URL has none.
_SCHEMES: Mapping[str, tuple[ConnectionKind, int | None]] = {
    "postgresql": ("postgres", 5432),
    "postgres": ("postgres", 5432),
    "redis": ("redis", 6379),
    "rediss": ("redis", 6379),
    "http": ("http", 80),
    "https": ("http", 443),
    "tcp": ("socket", None),
}


def kind_of(url: str) -> ConnectionKind | None:
    """What a URL leads to; None where its scheme is none of those known."""
    return _SCHEMES.get(urlsplit(url).scheme, (None, None))[0]


def port_of(url: str) -> int | None:
    """The port that a URL leads to, its scheme's own where it names none."""
    parts = urlsplit(url)
    return parts.port or _SCHEMES.get(parts.scheme, (None, None))[1]


def schemes(kind: ConnectionKind) -> list[str]:
    """How the URLs of a kind may begin, as ``https``."""
    return [scheme for scheme, (leads_to, _) in _SCHEMES.items() if leads_to == kind]


def redacted(url: str) -> str:
    """What may be shown of a URL: scheme, host and port. Paths of webhooks are often their only secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def the_url(connections: Mapping[str, str], name: str, kind: ConnectionKind, path: str) -> str:
    """The URL of a connection.

    Args:
        connections: name -> URL, as the environment gives them.
        name: of the connection.
        kind: what it has to be.
        path: who asks, for the error.

    Raises:
        UnknownConnection: JOB-050.
        ConnectionOfAnotherKind: JOB-051.
    """
    if name not in connections:
        need = f"a connection of the environment: {', '.join(sorted(connections)) or 'it has none'}"
        fix = f"add {name} to the environment's connections, or correct the name; for local runs, add it to spec.local.connections"
        raise UnknownConnection(path=path, given=name, need=need, fix=fix)
    url = connections[name]
    if kind_of(url) != kind:
        need = f"a URL starting with {' or '.join(f'{scheme}://' for scheme in schemes(kind))}; it is {redacted(url)}"
        raise ConnectionOfAnotherKind(path=path, given=name, need=need, fix="correct the environment's connection, or the name")
    return url


def check(job: SpecFile, connections: Mapping[str, str]) -> None:
    """Looks whether the environment gives all connections that a spec names.

    Raises:
        PenstockError: JOB-050 and JOB-051 with their lines; several come as `Faults`.
    """
    faults: list[PenstockError] = []
    for one in named_connections(job.job.spec):
        try:
            the_url(connections, one.name, one.kind, dotted(one.place))
        except PenstockError as fault:
            faults.append(job.document.locate(fault, one.place))
    raise_all(faults)
