"""Hashes in Redis as a sink, written by overwriting.

A row is the hash ``<prefix><key column>:<key column>...`` with a field for each column that is not null, all as text; fields that the hash
had before and the row has not are taken out. Colons and percent signs within a key column's value are written as ``%3A`` and ``%25``.

Guarantee: each hash has the values of its last row, exactly once for any reader: a micro-batch that is run again writes the same values. Of
several rows with one key in a micro-batch the newest by event time is written (`penstock.jobs.sinks.newest`). A hash changes as a whole.
What Redis
has answered for is as durable as Redis is set up to be: with its own append-only file and no replica that took over, nothing is lost. The
row written last stands, so that a driver that was cut off and comes back while another runs could put older values over newer ones.

Cost: a shuffle by key, and a round trip for each 500 rows. One primary, no Redis Cluster: a transaction there has one slot. A server that
is away is waited for (`penstock.jobs.databases.retry`); after that the job fails with JOB-053, the micro-batch uncommitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from penstock.jobs.databases.retry import RETRY_LIMIT_S, with_retries
from penstock.jobs.errors import BadDeclaration, DatabaseUnreachable, RowsRefused
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
    """Hashes to write.

    Args:
        name: of the sink in the spec.
        sink: as the spec has it.
        url: of the server, credentials included.
        retry_limit_s: for how long a server that is away is waited for.
        updates: whether a row stands for the one with the same key before it.
    """

    name: str
    sink: RedisSink
    url: str = field(repr=False)
    retry_limit_s: float = RETRY_LIMIT_S
    updates: bool = True

    @classmethod
    def of(cls, name: str, sink: RedisSink, context: SinkContext) -> RedisHashes:
        """The sink of a spec. Raises JOB-050 and JOB-051."""
        url = the_url(context.connections, sink.connection, "redis", f"spec.sinks.{name}")
        return cls(name, sink, url, updates=context.updates)

    def check(self) -> None:
        """Looks whether the server answers and lets the job in.

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
        """Nothing is held back."""

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
    """What a task does with its rows; sent to the tasks.

    Args:
        url: of the server.
        prefix: of each hash's key.
        key: the columns that the hash's key is made of.
        ttl_ms: for how long a hash stays; None: for ever.
        deletes: whether `DELETED` tells which hashes go.
        retry_limit_s: for how long a server that is away is waited for.
    """

    url: str = field(repr=False)
    prefix: str
    key: tuple[str, ...]
    ttl_ms: int | None
    deletes: bool
    retry_limit_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes rows of text, and gives back how that went, as `_OUTCOME` has it."""
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
        # What is left has to be taken from Spark, or the task would end before its input does.
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
    """A client that notices a server that is gone. It tries nothing again by itself."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis.from_url(
        url, socket_connect_timeout=_CONNECT_S, socket_timeout=_SILENCE_S, socket_keepalive=True, retry=Retry(NoBackoff(), 0)
    )


def is_away(error: Exception) -> bool:
    """Whether an error is the server's absence or hurry, and goes away by itself: no answer, a start, a failover."""
    import redis

    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError):
        return False
    return isinstance(error, redis.ConnectionError | redis.TimeoutError | redis.exceptions.ReadOnlyError | redis.exceptions.TryAgainError)
