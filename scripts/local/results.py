"""What a job wrote, read back as any reader of its sinks would."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.jobs.spec import (
    FileSink,
    PostgresSink,
    RedisSink,
    Sink,
    ToConsole,
    ToFiles,
    ToFunction,
    ToKafka,
    ToPostgres,
    ToRedis,
    ToWebhook,
)
from penstock.scripts.local import kafka_topics, recorded_run

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Row = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """One sink's rows.

    Args:
        place: where they are, for people.
        rows: the rows, an update after what it updates.
        files: number of files, if any.
        bytes: of the files.
        read_back: whether the sink keeps rows that can be read back.
    """

    place: str
    rows: Iterable[Row]
    files: int = 0
    bytes: int = 0
    read_back: bool = True


@dataclass(frozen=True)
class Results:
    """A reader of sinks.

    Args:
        s3: a client.
        bucket: the output bucket.
        brokers: address of the brokers.
        connections: name -> URL.
    """

    s3: S3Client
    bucket: str
    brokers: str
    connections: Mapping[str, str]

    def of(self, name: str, sink: Sink) -> Result:
        """The rows of a sink; empty for one that keeps nothing, such as the console."""
        match sink:
            case ToKafka(kafka=topic):
                return Result(f"topic {topic.topic}", self._topic(topic.topic))
            case ToFiles(files=files):
                return self._files(files)
            case ToPostgres(postgres=table):
                return Result(f"table {table.table} of {table.connection}", self._table(table))
            case ToRedis(redis=hashes):
                return Result(f"{hashes.prefix}* in {hashes.connection}", self._hashes(hashes))
            case ToWebhook() | ToConsole() | ToFunction():
                return Result(name, (), read_back=False)

    def _topic(self, topic: str) -> Iterator[Row]:
        for message in kafka_topics.read(self.brokers, topic):
            if (value := message.value()) is not None:
                yield json.loads(value)

    def _files(self, sink: FileSink) -> Result:
        bucket = sink.bucket or self.bucket
        files = recorded_run.output_files(self.s3, bucket, sink.path)
        rows = self._parquet(bucket, files) if sink.format == "parquet" else recorded_run.output_rows(self.s3, bucket, files)
        return Result(f"s3a://{bucket}/{sink.path}/", rows, len(files), sum(file.bytes for file in files))

    def _parquet(self, bucket: str, files: Iterable[recorded_run.OutputFile]) -> Iterator[Row]:
        import pyarrow.parquet as pq

        for file in files:
            body = self.s3.get_object(Bucket=bucket, Key=file.key)["Body"].read()
            yield from map(_plain, pq.read_table(io.BytesIO(body), partitioning=None).to_pylist())

    def _table(self, sink: PostgresSink) -> Iterator[Row]:
        import psycopg
        from psycopg.rows import dict_row
        from psycopg.sql import SQL, Identifier

        with psycopg.connect(self.connections[sink.connection], row_factory=dict_row) as connection:
            table_rows = connection.execute(SQL("select * from {}").format(Identifier(*sink.table.split("."))))
            yield from ({name: value for name, value in _plain(row).items() if not name.startswith("_")} for row in table_rows)

    def _hashes(self, sink: RedisSink) -> Iterator[Row]:
        import redis

        client = redis.Redis.from_url(self.connections[sink.connection], decode_responses=True)
        try:
            for key in sorted(client.scan_iter(f"{sink.prefix}*")):
                yield {str(name): value for name, value in client.hgetall(key).items() if not str(name).startswith("_")}
        finally:
            client.close()


def last_of(rows: Iterable[Mapping[str, Any]], fields: tuple[str, ...]) -> Iterable[Mapping[str, Any]]:
    """The last row of each key, if rows replace earlier ones; all rows if there are no fields."""
    if not fields:
        return rows
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        last[tuple(row[field] for field in fields)] = row
    return last.values()


def _plain(row: Mapping[str, Any]) -> Row:
    """A row with JSON values, as Spark writes them."""
    return {name: next((make(value) for kind, make in _AS_JSON.items() if isinstance(value, kind)), value) for name, value in row.items()}


def _moment(value: Any) -> str:
    moment = value.astimezone(UTC) if value.tzinfo else value
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


# A datetime is also a date, so it comes first.
_AS_JSON: Mapping[type, Callable[[Any], object]] = {datetime: _moment, date: lambda value: value.isoformat(), Decimal: float}
