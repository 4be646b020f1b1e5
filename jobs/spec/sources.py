"""Sources of a job spec."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema, model_validator

from penstock.jobs.spec.client_properties import Properties
from penstock.jobs.spec.kinds import OneKind
from penstock.jobs.spec.part import PATH_PATTERN, BucketName, DurationMs, Name, Part, SizeBytes, Topic, exactly_one
from penstock.jobs.spec.times import DATE_TIME_PATTERN, LATEST_MS, TIME_NEEDED, TimeMs

# Values of `startingOffsets` other than a point in time.
STARTING_OFFSETS = ("committed-or-latest", "committed-or-earliest", "committed", "earliest", "latest")
# Kafka, GroupCoordinator: a group id is not empty and has at most 249 characters where it is part of metric names; Spark adds a UUID.
GROUP_PATTERN = r"^[A-Za-z0-9._-]{1,180}$"
# Any id that others have chosen, without the wildcards and variables of an IAM policy, which names it.
STARTING_GROUP_PATTERN = r"^[A-Za-z0-9._:/@+=-]{1,255}$"
# More than a driver lists.
MAX_FILES = 100_000_000
_TIME = TypeAdapter(TimeMs)
# Beside the spec: a pod gets both in one ConfigMap, whose keys can't contain a slash.
SCHEMA_PATTERN = r"^[A-Za-z0-9._-]+\.avsc$"


def _starting_offsets(value: object) -> object:
    """The name, or the time as it is written; epoch milliseconds as text."""
    if value in STARTING_OFFSETS:
        return value
    try:
        _TIME.validate_python(value, strict=True)
    except ValidationError:
        raise ValueError(f"one of {', '.join(STARTING_OFFSETS)}, or {TIME_NEEDED}") from None
    return str(value)


def _topic_regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression; {error}") from None
    return value


StartingOffsets = Annotated[
    str,
    BeforeValidator(_starting_offsets),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(STARTING_OFFSETS)},
                {"type": "string", "format": "date-time", "pattern": DATE_TIME_PATTERN},
                {"type": "integer", "minimum": 0, "maximum": LATEST_MS},
            ]
        }
    ),
]


class Avro(Part):
    """How Avro values are read.

    Args:
        schema_file: the writer's schema, an ``.avsc`` file beside the spec.
        framing: ``none``: the value is the datum; ``confluent``: it is preceded by five bytes of a schema registry.
        schema_id: with ``confluent`` the registry's id of that schema; values with another id are quarantined. None accepts any id.
    """

    schema_file: Annotated[str, Field(pattern=SCHEMA_PATTERN)]
    framing: Literal["none", "confluent"] = "none"
    schema_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None

    @model_validator(mode="after")
    def _id_of_a_frame(self) -> Self:
        if self.schema_id is not None and self.framing == "none":
            raise ValueError("schemaId with framing: confluent alone")
        return self


class Csv(Part):
    """How CSV values are read: the columns in the order of the app's schema.

    Args:
        separator: character between two fields.
        quote: character around a field that contains separators; doubled within such a field it stands for itself (RFC 4180).
    """

    separator: Annotated[str, Field(min_length=1, max_length=1)] = ","
    quote: Annotated[str, Field(min_length=1, max_length=1)] = '"'


class KafkaKey(Part):
    """Fields in the key of a record, for the rows of tombstones.

    Args:
        fields: fields of the schema in the key.
        format: ``text``: the key is the only field as text; ``json``: the key is an object with the fields.
    """

    fields: Annotated[list[str], Field(min_length=1)]
    format: Literal["text", "json"] = "text"

    @model_validator(mode="after")
    def _one_field_of_a_text(self) -> Self:
        if self.format == "text" and len(self.fields) > 1:
            raise ValueError("one field with format: text; several with format: json")
        return self


class KafkaSource(Part):
    """A Kafka topic to read, or several with the same values.

    Args:
        topic: name of the topic; the environment defines the brokers.
        topics: several topics as an alternative, read as one input.
        pattern: a regular expression as an alternative, for the topics that exist when the query starts.
        partitions: partitions of the topic, or of each of them; by default the plan's parallelism.
        starting_offsets: where a job without a checkpoint starts. ``committed-or-...`` starts at the committed offsets of the consumer
            group, if it has any, ``committed`` requires one of each partition; a point in time starts at the first records that are not
            older.
        group_id: the consumer group whose committed offsets count, that offsets are committed to, and that Spark's consumers name; by
            default ``penstock.<job>``, and for Spark's consumers groups of their own.
        starting_group: another consumer group whose committed offsets count. Nothing is committed to it.
        value: format of a record's value; ``text`` and ``bytes`` read it as the only field of the schema, ``debezium`` the row of a change
            event, with ``_deleted`` true for that of a delete.
        avro: required for Avro values.
        csv: for CSV values.
        tombstones: how a record without a value is read: ``quarantine`` as an error, ``delete`` as a row whose fields are null except
            those of the key, with ``_deleted`` true. All rows of the source then have the field ``_deleted``. The event time of a
            tombstone is the record's timestamp, which does not advance the watermark.
        key: the fields in the key; required with ``tombstones: delete`` only.
        max_offsets_per_trigger: maximum number of records per micro-batch; by default the plan's, and none for a bounded run.
        min_partitions: minimum number of tasks that read; None: one per partition.
        isolation_level: which records of transactions are read: ``read_committed`` those of committed ones, up to the first transaction
            that is still open; ``read_uncommitted`` all of them, also those of aborted ones.
        group_id_prefix: prefix of the ids of Spark's own consumer groups; by default ``penstock.<job>.spark``.
        commit_offsets: whether processed offsets are committed to the group, for tools that show lag.
        properties: of the consumers that read the records, by Kafka's names: those that neither Penstock nor Spark sets.
    """

    topic: Topic | None = None
    topics: Annotated[list[Topic], Field(min_length=1)] | None = None
    pattern: Annotated[str, AfterValidator(_topic_regex), Field(min_length=1, max_length=1000)] | None = None
    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    starting_offsets: StartingOffsets = "committed-or-latest"
    group_id: Annotated[str, Field(pattern=STARTING_GROUP_PATTERN)] | None = None
    starting_group: Annotated[str, Field(pattern=STARTING_GROUP_PATTERN)] | None = None
    value: Literal["json", "debezium", "avro", "csv", "text", "bytes"] = "json"
    avro: Avro | None = None
    csv: Csv | None = None
    tombstones: Literal["quarantine", "delete"] = "quarantine"
    key: KafkaKey | None = None
    max_offsets_per_trigger: Annotated[int, Field(ge=1)] | None = None
    min_partitions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    group_id_prefix: Annotated[str, Field(pattern=GROUP_PATTERN)] | None = None
    commit_offsets: bool = False
    properties: Properties = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_naming(self) -> Self:
        exactly_one(topic=self.topic, topics=self.topics, pattern=self.pattern)
        if (self.value == "avro") != (self.avro is not None):
            raise ValueError("avro: {schemaFile: ...} with value: avro, and only with it")
        if self.csv is not None and self.value != "csv":
            raise ValueError("csv only with value: csv")
        if self.starting_group is not None and not self.starting_offsets.startswith("committed"):
            raise ValueError("startingGroup only with startingOffsets: committed or committed-or-...")
        if self.group_id is not None and self.group_id_prefix is not None:
            raise ValueError("groupId or groupIdPrefix: with groupId, Spark's consumers name that group")
        if self.value == "debezium" and self.key is not None and self.key.format != "json":
            raise ValueError("key: {format: json, ...} with value: debezium, whose keys are objects")
        if (self.tombstones == "delete") != (self.key is not None):
            raise ValueError("key: {fields: [...]} with tombstones: delete, and only with it")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """The topics that the spec names; empty for a pattern."""
        return (self.topic,) if self.topic is not None else tuple(self.topics or ())


class PlannedFiles(Part):
    """The files that a source is expected to read, for the plan alone.

    Args:
        files: number of them.
        size: of all of them together.
        splittable: whether a file can be read by several tasks; compressed text can't.
    """

    files: Annotated[int, Field(ge=1, le=MAX_FILES)]
    size: SizeBytes
    splittable: bool = True

    @model_validator(mode="after")
    def _no_empty_files(self) -> Self:
        if self.size < self.files:
            raise ValueError("a size of at least one byte a file: Spark reads no empty ones")
        return self


class FilesSource(Part):
    """Files on S3 to read, each once.

    Args:
        path: path below the environment's output bucket, or below `bucket`.
        bucket: another bucket.
        format: format of the files; ``text`` reads a line as the only field of the schema.
        csv: for CSV files, which have no header.
        max_files_per_trigger: maximum number of files per micro-batch; None for no limit.
        input: the expected files, for the plan of the stage that reads them; None: it is not planned.
    """

    path: Annotated[str, Field(pattern=PATH_PATTERN)]
    bucket: BucketName | None = None
    format: Literal["json", "csv", "text", "parquet"] = "json"
    csv: Csv | None = None
    max_files_per_trigger: Annotated[int, Field(ge=1)] | None = None
    input: PlannedFiles | None = None

    @model_validator(mode="after")
    def _csv_of_its_format(self) -> Self:
        if self.csv is not None and self.format != "csv":
            raise ValueError("csv only with format: csv")
        return self


class SocketSource(Part):
    """Lines of text from a TCP server, for first experiments. They can't be read twice, so a restart loses unprocessed lines.

    Args:
        connection: the environment's name of the server.
    """

    connection: Name


class EventTime(Part):
    """How event time is read and how far rows may be out of order.

    Args:
        kind: ``event``: from the field; ``ingestion``: when the broker received the record, its timestamp; ``processing``: when the
            micro-batch started. The rest of a job is unaffected by the kind.
        field: field of the value with the event time; required with ``event`` only.
        format: format of that field.
        out_of_orderness: the watermark's bound in ms.
        idleness: a partition without new rows for this long no longer holds back the watermark, in ms; None: it always does.
        allowed_lateness: how long after the watermark a row still counts, in ms; windows and joins keep their state for it.
        max_ahead: a row further ahead of the micro-batch's clock than this is quarantined and does not advance the watermark, in ms.
    """

    kind: Literal["event", "ingestion", "processing"] = "event"
    field: str | None = None
    format: Literal["iso-8601", "epoch-seconds", "epoch-millis", "epoch-micros"] = "iso-8601"
    out_of_orderness: DurationMs = 0
    idleness: DurationMs | None = None
    allowed_lateness: DurationMs = 0
    max_ahead: DurationMs = 3_600_000

    @model_validator(mode="after")
    def _field_of_its_kind(self) -> Self:
        if (self.kind == "event") != (self.field is not None):
            raise ValueError("field with kind: event, and only with it")
        return self


class FromKafka(Part):
    """An input from topics."""

    kafka: KafkaSource
    time: EventTime | None = None


class FromFiles(Part):
    """An input from files."""

    files: FilesSource
    time: EventTime | None = None


class FromSocket(Part):
    """An input from a TCP server."""

    socket: SocketSource
    time: EventTime | None = None


Source = Annotated[FromKafka | FromFiles | FromSocket, OneKind("Source", "One input of the job.")]


class PostgresTable(Part):
    """A table of a database.

    Args:
        connection: the environment's name of the database.
        table: name of the table, with its schema if needed, ``bank.accounts``.
        key: columns that rows are looked up by.
        columns: columns that are read.
    """

    connection: Name
    table: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")]
    key: Annotated[list[str], Field(min_length=1)]
    columns: Annotated[list[str], Field(min_length=1)]


class Cache(Part):
    """Cache of a task for a lookup table.

    Args:
        ttl: how long a result, or the lack of one, may be used again, in ms.
        entries: maximum number of entries; the least recently used are evicted first.
    """

    ttl: DurationMs = 60_000
    entries: Annotated[int, Field(ge=0, le=100_000_000)] = 10_000


class Table(Part):
    """A table for lookups."""

    postgres: PostgresTable
    cache: Cache = Cache()
