"""Hashes in Redis as sinks, written by overwriting.

A row is the hash ``<prefix><key column>:<key column>...`` with a field for each column that is not null, all as text; other fields of an
existing hash are removed. Colons and percent signs within the value of a key column are written as ``%3A`` and ``%25``.

Guarantee: each hash has the values of its last row, exactly once for any reader: a micro-batch that is run again writes the same values. Of
several rows of a key in a micro-batch the newest by event time is written (`penstock.jobs.sinks.newest`). A hash changes atomically. What
Redis has acknowledged is as durable as its configuration: with its own append-only file and no failover to a replica, nothing is lost. The
last write wins, so a driver that was suspended and goes on after another one has taken over can overwrite newer values with those of its
micro-batch.

Cost: a shuffle by key, and a round trip per 500 rows. One primary, no Redis Cluster, where a transaction is limited to one slot. An
unavailable server is retried (`penstock.jobs.databases.retry`); after that the job fails with JOB-053, without committing the
micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from penstock.jobs.databases.retry import RETRY_LIMIT_S, with_retries
from penstock.jobs.errors import BadDeclaration, DatabaseUnreachable
from penstock.jobs.sinks.errors import RowsRefused
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of, last_of_each_key
from penstock.jobs.spec import RedisSink
from penstock.jobs.spec.connection_addresses import redacted, the_url
from penstock.jobs.stream.streams import DELETED

if TYPE_CHECKING:
    import pyarrow as pa
    import redis

_OUTCOME = "rows long, away string, refused string"
_ROWS_A_TRIP = 500
_CONNECT_S = 10
_SILENCE_S = 30


@dataclass(frozen=True)
class RedisHashes:
    """Sink that writes hashes.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
        url: URL of the server, credentials included.
        retry_limit_s: how long an unavailable server is retried, in seconds.
        updates: whether a row replaces the earlier one with its key.
    """

    name: str
    sink: RedisSink
    url: str = field(repr=False)
    retry_limit_s: float = RETRY_LIMIT_S
    updates: bool = True

    @classmethod
    def of(cls, name: str, sink: RedisSink, context: SinkContext) -> RedisHashes:
        """Builds the sink from its spec. Raises JOB-050 and JOB-051."""
        url = the_url(context.connections, sink.connection, "redis", f"spec.sinks.{name}")
        return cls(name, sink, url, updates=context.updates)

    def check(self) -> None:
        """Checks that the server responds and accepts the credentials.

        Raises:
            DatabaseUnreachable: JOB-053.
        """
        import redis

        def ping() -> None:
            with client(self.url) as one:
                one.ping()

        try:
            with_retries(ping, is_away, self.retry_limit_s)
        except redis.RedisError as error:
            raise self._away(str(error)) from None

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Overwrites the hashes of a micro-batch's rows.

        Raises:
            BadDeclaration: JOB-004, the rows lack a column of the key.
            DatabaseUnreachable: JOB-053.
            RowsRefused: JOB-055.
        """
        if not batch.rows:
            return
        fields = fields_of(rows)
        missing = [name for name in (*self.sink.key, *([DELETED] if self.sink.deletes else [])) if name not in fields]
        if missing:
            need = f"rows with the columns {', '.join(missing)}; they have {', '.join(fields)}"
            raise BadDeclaration(path=f"spec.sinks.{self.name}.redis", need=need, fix="select them in the app, or correct the key")
        texts = last_of_each_key(rows, fields, self.sink.key, batch.rows, updates=self.updates)
        task = Overwrite(self.url, self.sink.prefix, tuple(self.sink.key), self.sink.ttl, self.sink.deletes, self.retry_limit_s)
        for outcome in texts.mapInArrow(task, _OUTCOME).collect():
            if outcome["away"] is not None:
                raise self._away(outcome["away"])
            if outcome["refused"] is not None:
                fix = "divert such rows in the app before the sink, or reconfigure the server; the job then resumes with this micro-batch"
                raise RowsRefused(path=f"sink {self.name}", given=outcome["refused"], need="rows accepted by Redis", fix=fix)

    def _away(self, given: str) -> DatabaseUnreachable:
        need = f"a response from {redacted(self.url)} within {self.retry_limit_s:g} s"
        return DatabaseUnreachable(
            path=f"sink {self.name}", given=given, need=need, fix="check the server; the job resumes where it stopped"
        )


@dataclass(frozen=True)
class Overwrite:
    """Parameters of a task that writes hashes; sent to the tasks.

    Args:
        url: URL of the server.
        prefix: prefix of each hash's key.
        key: columns of the hash's key.
        ttl_ms: time to live of a hash, in milliseconds; None for no expiry.
        deletes: whether `DELETED` marks the hashes to delete.
        retry_limit_s: how long an unavailable server is retried, in seconds.
    """

    url: str = field(repr=False)
    prefix: str
    key: tuple[str, ...]
    ttl_ms: int | None
    deletes: bool
    retry_limit_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes rows of text, and yields the outcome in the form of `_OUTCOME`."""
        import pyarrow as pa
        import redis

        outcome: dict[str, Any] = {"rows": 0, "away": None, "refused": None}
        rows = (row for batch in batches for row in batch.to_pylist())
        try:
            with client(self.url) as server:
                while some := list(islice(rows, _ROWS_A_TRIP)):
                    outcome["refused"] = self._null(some)
                    if outcome["refused"]:
                        break
                    with_retries(lambda some=some: self._write(server, some), is_away, self.retry_limit_s)  # type: ignore[misc]
                    outcome["rows"] += len(some)
        except redis.RedisError as error:
            outcome["away" if is_away(error) else "refused"] = str(error)
        # The remaining rows are read from Spark, or the task would end before its input does.
        for _ in rows:
            pass
        yield pa.RecordBatch.from_pylist([outcome], pa.schema([("rows", pa.int64()), ("away", pa.string()), ("refused", pa.string())]))

    def hash_key(self, row: Mapping[str, str | None]) -> str:
        """The key of a row's hash."""
        return self.prefix + ":".join((row[name] or "").replace("%", "%25").replace(":", "%3A") for name in self.key)

    def _null(self, rows: Sequence[Mapping[str, str | None]]) -> str | None:
        null = next((name for name in self.key for row in rows if row[name] is None), None)
        return None if null is None else f"rows whose key {null} is null"

    def _write(self, server: redis.Redis, rows: Sequence[Mapping[str, str | None]]) -> None:
        with server.pipeline(transaction=True) as pipeline:
            for row in rows:
                key = self.hash_key(row)
                pipeline.delete(key)
                if self.deletes and row[DELETED] == "true":
                    continue
                own: dict[Any, Any] = {name: value for name, value in row.items() if value is not None}
                if self.deletes:
                    own.pop(DELETED, None)
                pipeline.hset(key, mapping=own)
                if self.ttl_ms is not None:
                    pipeline.pexpire(key, self.ttl_ms)
            pipeline.execute()


def client(url: str) -> redis.Redis:
    """A client that detects a lost connection. It does not retry on its own."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis.from_url(
        url, socket_connect_timeout=_CONNECT_S, socket_timeout=_SILENCE_S, socket_keepalive=True, retry=Retry(NoBackoff(), 0)
    )


def is_away(error: Exception) -> bool:
    """Whether an error is temporary: the server does not respond, is starting, or fails over."""
    import redis

    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError):
        return False
    return isinstance(error, redis.ConnectionError | redis.TimeoutError | redis.exceptions.ReadOnlyError | redis.exceptions.TryAgainError)
