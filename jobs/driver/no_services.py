"""Addresses for a job that reaches no brokers and no connections: its queries are analyzed, or read what they are given."""

from __future__ import annotations

from penstock.jobs.spec.connections import named_connections
from penstock.jobs.spec.job import ConnectionKind, JobSpec

# The port of the discard protocol (RFC 863), on which nothing listens.
BROKERS = "127.0.0.1:9"
_URLS: dict[ConnectionKind, str] = {
    "postgres": "postgresql://127.0.0.1:9/none",
    "redis": "redis://127.0.0.1:9/0",
    "http": "http://127.0.0.1:9",
    "socket": "tcp://127.0.0.1:9",
}


def urls(spec: JobSpec) -> dict[str, str]:
    """Connection of a spec -> URL."""
    return {one.name: _URLS[one.kind] for one in named_connections(spec)}
