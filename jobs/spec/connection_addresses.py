"""Connections: databases and endpoints that a spec names and the environment defines.

A spec only says ``connection: bank``; the address and the credentials are defined by the environment. A connection is a URL, credentials
included, that only the driver and its tasks see: errors, logs and Spark plans show no more of it than `redacted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.jobs.document import dotted
from penstock.jobs.spec import ConnectionKind, SpecFile, named_connections
from penstock.jobs.spec.errors import ConnectionOfAnotherKind, UnknownConnection
from penstock.sizing.errors import PenstockError, raise_all

# Scheme -> kind of the connection, and its default port.
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
    """Kind of a URL's connection; None if its scheme is unknown."""
    return _SCHEMES.get(urlsplit(url).scheme, (None, None))[0]


def port_of(url: str) -> int | None:
    """Port of a URL, by default that of its scheme."""
    parts = urlsplit(url)
    return parts.port or _SCHEMES.get(parts.scheme, (None, None))[1]


def schemes(kind: ConnectionKind) -> list[str]:
    """Schemes of a kind, such as ``https``."""
    return [scheme for scheme, (leads_to, _) in _SCHEMES.items() if leads_to == kind]


def redacted(url: str) -> str:
    """The parts of a URL that may be shown: scheme, host and port. The path of a webhook is often its only secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def the_url(connections: Mapping[str, str], name: str, kind: ConnectionKind, path: str) -> str:
    """The URL of a connection.

    Args:
        connections: name -> URL, as defined by the environment.
        name: name of the connection.
        kind: required kind.
        path: place of the reference, for the error.

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
    """Checks that the environment defines all connections that a spec names.

    Raises:
        PenstockError: JOB-050 and JOB-051 with their lines; several are raised as `Faults`.
    """
    faults: list[PenstockError] = []
    for one in named_connections(job.job.spec):
        try:
            the_url(connections, one.name, one.kind, dotted(one.place))
        except PenstockError as fault:
            faults.append(job.document.locate(fault, one.place))
    raise_all(faults)
