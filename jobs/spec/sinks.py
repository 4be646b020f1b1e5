"""Sinks of a job spec."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.jobs.spec.client_properties import Properties
from penstock.jobs.spec.kinds import OneKind
from penstock.jobs.spec.part import PATH_PATTERN, BucketName, DurationMs, Name, Part, SizeBytes, Topic, Zone

PREFIX_PATTERN = r"^[A-Za-z0-9._-]*$"
COLUMN_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
TABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$"

# Source: java.time.format.DateTimeFormatter, whose patterns Spark's date_format takes; those parts of it that sort as they follow in time.
_DATE_PARTS = {"yyyy": "2025", "MM": "04", "dd": "05", "HH": "13", "mm": "30"}
_DATE_PATTERN = re.compile(r"(?:yyyy|MM|dd|HH|mm|'[A-Za-z0-9=._-]+'|[-/=._])+")
# Spark and Hive take what begins with a dot or an underscore for hidden.
_FOLDERS = re.compile(r"[A-Za-z0-9][A-Za-z0-9=._-]*(/[A-Za-z0-9][A-Za-z0-9=._-]*)*")
EVENT_DATE = "'dt='yyyy-MM-dd"


def _date_pattern(pattern: str) -> str:
    if not _DATE_PATTERN.fullmatch(pattern) or not any(part in pattern for part in _DATE_PARTS):
        raise ValueError(f"a pattern of {', '.join(_DATE_PARTS)}, of text in single quotes, and of - / = . _, such as {EVENT_DATE}")
    # Text that could be a part of a date is in quotes.
    shown = re.sub("|".join(("'([^']+)'", *_DATE_PARTS)), lambda found: found[1] or _DATE_PARTS[found[0]], pattern)
    if not _FOLDERS.fullmatch(shown):
        raise ValueError(f"a pattern of folders that begin with a letter or a digit; this one gives {shown}")
    return pattern


Column = Annotated[str, Field(pattern=COLUMN_PATTERN)]
Columns = Annotated[list[Column], Field(min_length=1)]


class Roll(Part):
    """When a part file is closed: at a size in bytes, at an age in ms, or after a time without rows in ms.

    Otherwise it stays open across micro-batches; its rows become visible when it is closed.
    """

    size: SizeBytes = 128 * 1024 * 1024
    interval: DurationMs = 300_000
    inactivity: DurationMs = 60_000


class FileSink(Part):
    """Files on S3.

    Args:
        path: path below the environment's output bucket, or below `bucket`.
        bucket: another bucket.
        format: JSON lines or Parquet.
        prefix: prefix of the name of each part file.
        suffix: suffix of the name of each part file; by default ``.json`` or ``.parquet``.
        bucket_by: ``event-date`` writes a row below the date of its event time; ``none`` writes all rows to one folder; a list of
            columns writes it below ``column=value`` of each.
        date_pattern: how that date is written, as by Java's DateTimeFormatter; slashes make folders in folders.
        zone: time zone of that date.
        roll: when a part file is closed.
    """

    path: Annotated[str, Field(pattern=PATH_PATTERN)]
    bucket: BucketName | None = None
    format: Literal["json", "parquet"] = "json"
    prefix: Annotated[str, Field(pattern=PREFIX_PATTERN)] = "part-"
    suffix: Annotated[str, Field(pattern=PREFIX_PATTERN)] | None = None
    bucket_by: Literal["event-date", "none"] | Columns = "event-date"
    date_pattern: Annotated[str, AfterValidator(_date_pattern)] = EVENT_DATE
    zone: Zone = "UTC"
    roll: Roll = Roll()

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.bucket_by != "event-date" and self.date_pattern != EVENT_DATE:
            raise ValueError("bucketBy: event-date with a datePattern; without dates it has no use")
        return self


class Feedback(Part):
    """A topic that the job itself reads again.

    Args:
        max_rounds: how often a record may come back; rows that would more often leave the job with the tag ``rounds``.
        column: column of the rows with the number of times that they have come back, an integer.
    """

    max_rounds: Annotated[int, Field(ge=1, le=1_000_000)]
    column: Column = "round"


class KafkaSink(Part):
    """A Kafka topic to write.

    Args:
        topic: name of the topic.
        partitions: partitions of the topic, 1 by default.
        key: columns of the record key, written as a JSON object; a single column is written as text; None for no key.
        guarantee: ``exactly-once`` writes each micro-batch in transactions, for readers with ``isolation.level=read_committed``.
        transaction_timeout: how long the brokers keep a transaction open, in ms; with exactly-once.
        deletes: whether a row with ``_deleted`` true is written as a tombstone; requires a key.
        feedback: for a topic that a source of the same job reads; None: none does.
        properties: of the producers that write the records, by Kafka's names: those that neither Penstock nor Spark sets.
    """

    topic: Topic
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    key: Columns | None = None
    guarantee: Literal["at-least-once", "exactly-once"] = "at-least-once"
    transaction_timeout: DurationMs = 600_000
    deletes: bool = False
    feedback: Feedback | None = None
    properties: Properties = Field(default_factory=dict)

    @model_validator(mode="after")
    def _rounds_in_values(self) -> Self:
        if self.feedback is not None and self.deletes:
            raise ValueError("feedback without deletes: a tombstone has no column for its round")
        return self


class PostgresSink(Part):
    """A table of a PostgreSQL database, written by upsert.

    Args:
        connection: the environment's name of the database.
        table: name of the table, with its schema if needed.
        key: columns of a primary key or unique constraint.
        version: column of both the rows and the table that grows with each change of a row, such as its event time: a row of the table
            with a greater value is kept. None: the last write wins.
        deletes: whether a row with ``_deleted`` true deletes the row with its key.
    """

    connection: Name
    table: Annotated[str, Field(pattern=TABLE_PATTERN)]
    key: Columns
    version: Column | None = None
    deletes: bool = False


class RedisSink(Part):
    """Hashes in Redis, one per row, written by overwriting.

    Args:
        connection: the environment's name of the server.
        key: columns of the hash's key, joined with ``:``.
        prefix: prefix of the key.
        ttl: time to live of a hash after its last write, in ms; None for no expiry.
        deletes: whether a row with ``_deleted`` true deletes its hash.
    """

    connection: Name
    key: Columns
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]*$")] = ""
    ttl: DurationMs | None = None
    deletes: bool = False


class WebhookSink(Part):
    """An HTTP endpoint that receives the rows of a micro-batch as JSON arrays by POST, for alerts.

    Args:
        connection: the environment's name of the endpoint.
        rows: maximum number of rows per request.
        timeout: time-out of a request in ms.
        attempts: attempts of a request before the job fails.
    """

    connection: Name
    rows: Annotated[int, Field(ge=1, le=10_000)] = 100
    timeout: DurationMs = 10_000
    attempts: Annotated[int, Field(ge=1, le=100)] = 5


class ConsoleSink(Part):
    """Rows in the driver's log, for inspection: at least once.

    Args:
        rows: maximum number of rows per micro-batch.
    """

    rows: Annotated[int, Field(ge=1, le=1000)] = 20


class FunctionSink(Part):
    """A function of the app's module, called as ``function(rows, batch)`` once for each micro-batch that it has not completed yet.

    Args:
        name: name of the function.
    """

    name: Column


class _Output(Part):
    """Properties of every kind of sink."""

    @property
    def exactly_once(self) -> bool:
        """Whether it is exactly-once by replay, so that a micro-batch must produce the same rows each time."""
        return False


class ToFiles(_Output):
    """An output to files."""

    files: FileSink

    @property
    def exactly_once(self) -> bool:
        """True: a part file is published once."""
        return True


class ToKafka(_Output):
    """An output to a topic."""

    kafka: KafkaSink

    @property
    def exactly_once(self) -> bool:
        """Whether its guarantee is exactly-once."""
        return self.kafka.guarantee == "exactly-once"


class ToPostgres(_Output):
    """An output to a table."""

    postgres: PostgresSink


class ToRedis(_Output):
    """An output to hashes."""

    redis: RedisSink


class ToWebhook(_Output):
    """An output to an HTTP endpoint."""

    webhook: WebhookSink


class ToConsole(_Output):
    """An output to the driver's log."""

    console: ConsoleSink


class ToFunction(_Output):
    """An output to a function of the app."""

    function: FunctionSink


Sink = Annotated[ToFiles | ToKafka | ToPostgres | ToRedis | ToWebhook | ToConsole | ToFunction, OneKind("Sink", "One output of the job.")]
