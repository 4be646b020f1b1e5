"""Queries that survive a temporarily unavailable database: retried until it is back, or until the time for retries ends."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.jobs.blocks.lookups.errors import LookupRefused
from penstock.jobs.databases.postgres import connected, is_away, words
from penstock.jobs.databases.retry import RETRY_LIMIT_S, with_retries
from penstock.jobs.errors import DatabaseUnreachable
from penstock.jobs.spec.connection_addresses import redacted

if TYPE_CHECKING:
    import psycopg

TIMEOUT_MS = 10_000
# SQLSTATEs of a text that is not a value of a type: invalid_text_representation, character_not_in_repertoire, and the formats of dates
# (PostgreSQL documentation, "PostgreSQL Error Codes").
_NO_VALUE = ("22P02", "22021", "22007", "22008")


class NoSuchValue(Exception):
    """An argument is not a value of its column's type, so no row can have it."""


class Database:
    """Connections to one database, each used by one query at a time; closed together.

    Args:
        url: ``postgresql://user:password@host/database``.
        path: the caller, for errors.
        timeout_ms: of a query.
        retry_limit_s: how long a database may be unavailable before a query has failed.
    """

    def __init__(self, url: str, path: str, timeout_ms: int = TIMEOUT_MS, retry_limit_s: float = RETRY_LIMIT_S) -> None:
        self._url = url
        self._path = path
        self._timeout_ms = timeout_ms
        self._retry_limit_s = retry_limit_s
        self._free: queue.SimpleQueue[psycopg.Connection[tuple[Any, ...]]] = queue.SimpleQueue()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while not self._free.empty():
            self._free.get().close()

    def rows(self, query: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
        """The result of a query; thread-safe.

        Raises:
            NoSuchValue: see there.
            DatabaseUnreachable: JOB-053, after the time for retries.
            LookupRefused: JOB-072.
        """
        import psycopg

        try:
            return with_retries(lambda: self._once(query, arguments), is_away, self._retry_limit_s)
        except psycopg.Error as error:
            if is_away(error):
                need = f"a response from {redacted(self._url)} within {self._retry_limit_s:g} s; the micro-batch is not committed"
                fix = "check the database; the job resumes where it stopped"
                raise DatabaseUnreachable(path=self._path, given=words(error), need=need, fix=fix) from None
            need, fix = f"a lookup accepted by {redacted(self._url)}", "check the table's columns and the job's privileges on it"
            raise LookupRefused(path=self._path, given=words(error), need=need, fix=fix) from None

    def _once(self, query: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
        connection = self._connection()
        try:
            rows = self._read(_executed(connection, query, arguments))
        except BaseException:
            connection.close()
            raise
        self._free.put(connection)
        return rows

    def _read(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        from penstock.jobs.blocks.lookups.values import unreadable

        rows = cursor.fetchall()
        column = unreadable(cursor, rows)
        if column is not None:
            given = f"column {column}: a date before the year 1 or after 9999, or a number that is NaN"
            need = "values that Spark supports; an infinite date or timestamp is read as the earliest or the latest one"
            number, day = f"NULLIF({column}, 'NaN')", f"CASE WHEN {column} BETWEEN '0001-01-01' AND '9999-12-31' THEN {column} END"
            fix = f"use a view that returns null instead: {number} for a number, {day} for a date; or omit the column"
            raise LookupRefused(path=self._path, given=given, need=need, fix=fix)
        return rows

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        from penstock.jobs.blocks.lookups.values import prepare

        try:
            return self._free.get_nowait()
        except queue.Empty:
            connection = connected(self._url)
            connection.execute(f"SET statement_timeout = {self._timeout_ms}".encode())
            connection.execute("SET default_transaction_read_only = on")
            prepare(connection)
            return connection


def _executed(connection: psycopg.Connection[tuple[Any, ...]], query: str, arguments: Sequence[object]) -> psycopg.Cursor[tuple[Any, ...]]:
    import psycopg

    try:
        return connection.execute(query.encode(), arguments)
    except psycopg.DataError as error:
        # Without an SQLSTATE it was psycopg itself that found a text with a NUL. An unreadable response is not the arguments' fault.
        if error.sqlstate in (None, *_NO_VALUE):
            raise NoSuchValue from None
        raise
