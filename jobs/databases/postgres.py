"""Connections to PostgreSQL, for tables that are written and tables that are looked up in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

# A server that is gone without a word is noticed after this long. Source: PostgreSQL's documentation, libpq, tcp_user_timeout.
_SILENCE_MS = 30_000
_CONNECT_S = 10


def connected(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection that reads times as UTC, leaves nothing prepared behind, and notices a server that is gone."""
    import psycopg

    silence = {"tcp_user_timeout": _SILENCE_MS, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    options = {"connect_timeout": _CONNECT_S, "application_name": "penstock", "client_encoding": "utf-8", **silence}
    connection = psycopg.connect(url, prepare_threshold=None, autocommit=True, **options)  # type: ignore[arg-type]
    connection.execute("SET TIME ZONE 'UTC'")
    return connection


def is_away(error: Exception) -> bool:
    """Whether an error is the server's absence or hurry, and goes away by itself: no answer, a restart, a failover, a deadlock."""
    import psycopg

    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.errors.ReadOnlySqlTransaction)


def words(error: psycopg.Error) -> str:
    """What the server said, in one line and without the values of rows."""
    said = error.diag.message_primary or str(error).strip()
    return " ".join(said.split()) + (f" (SQLSTATE {error.sqlstate})" if error.sqlstate else "")
