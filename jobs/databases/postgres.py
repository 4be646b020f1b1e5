"""Connections to PostgreSQL, for sinks and lookup tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

# A server that disappears silently is noticed after this long. Source: PostgreSQL's documentation, libpq, tcp_user_timeout.
_SILENCE_MS = 30_000
_CONNECT_S = 10
# The server ends the transaction of a client that has stopped, so that its locks do not stop others.
_IDLE_IN_TRANSACTION_S = 60


def connected(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection that reads times as UTC, leaves no prepared statements behind, and notices a server that has disappeared.

    A process that is suspended within a transaction loses it, with its locks, after a minute.
    """
    import psycopg

    silence = {"tcp_user_timeout": _SILENCE_MS, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    options = {"connect_timeout": _CONNECT_S, "application_name": "penstock", "client_encoding": "utf-8", **silence}
    connection = psycopg.connect(url, prepare_threshold=None, autocommit=True, **options)  # type: ignore[arg-type]
    connection.execute(f"SET TIME ZONE 'UTC'; SET idle_in_transaction_session_timeout = '{_IDLE_IN_TRANSACTION_S}s'")
    return connection


def is_away(error: Exception) -> bool:
    """Whether an error is transient: no response, a restart, a failover, a deadlock, a transaction lost while suspended."""
    import psycopg

    lost = psycopg.errors.ReadOnlySqlTransaction | psycopg.errors.IdleInTransactionSessionTimeout
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | lost)


def words(error: psycopg.Error) -> str:
    """The server's message, in one line and without the values of rows."""
    said = error.diag.message_primary or str(error).strip()
    return " ".join(said.split()) + (f" (SQLSTATE {error.sqlstate})" if error.sqlstate else "")
