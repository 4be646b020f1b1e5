"""Opens a source of the spec as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.sources import files, kafka, socket
from penstock.jobs.sources.avro_values import AvroSchema
from penstock.jobs.sources.ends import InputEnds
from penstock.jobs.sources.records import Input
from penstock.jobs.sources.values import Values
from penstock.jobs.spec import FromFiles, FromKafka, FromSocket, KafkaSource, StreamingJob
from penstock.jobs.spec.connection_addresses import the_url
from penstock.jobs.stream.streams import Stream

# Topic -> partition -> offset.
Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Reading:
    """Context that sources are opened with.

    Args:
        session: Spark session.
        brokers: connection to the brokers.
        connections: name -> URL.
        spec: spec of the job.
        bucket: bucket of file sources that name none.
        schemas: name -> text of the Avro schemas next to the spec.
        max_offsets: source -> records of a micro-batch at most, for Kafka sources whose spec has no limit.
        ends: where the sources of a bounded run end; None: they have no end.
        read: whether they have been read up to there.
        records: source -> what is read in its place, in a test.
    """

    session: SparkSession
    brokers: KafkaAccess
    connections: Mapping[str, str]
    spec: StreamingJob
    bucket: str
    schemas: Mapping[str, str] = field(default_factory=dict)
    max_offsets: Mapping[str, int] = field(default_factory=dict)
    ends: InputEnds | None = None
    read: bool = False
    records: Mapping[str, DataFrame] = field(default_factory=dict)


def open_source(reading: Reading, name: str, schema: StructType, offsets: Offsets, record: str | None) -> Stream:
    """The stream of a source.

    Args:
        reading: context to open it with.
        name: name of the source.
        schema: fields of the value.
        offsets: start of a query without a checkpoint, for Kafka.
        record: name of the field with the record itself; None for no such field.

    Raises:
        BadDeclaration: JOB-004, a schema that the source's values can't have.
        PenstockError: JOB-050, JOB-051, a connection that the environment does not have, or of another kind.
    """
    end = reading.ends.of(name, read=reading.read) if reading.ends is not None else None
    source, stages = reading.spec.spec.sources[name], reading.spec.spec.stages
    given = Input(reading.session, name, source, schema, record, stages, end, reading.records.get(name))
    match given.source:
        case FromFiles(files=asked_files):
            return files.stream(given, asked_files, reading.bucket)
        case FromSocket(socket=asked_socket):
            url = the_url(reading.connections, asked_socket.connection, "socket", f"spec.sources.{name}.socket")
            return socket.stream(given, asked_socket, url)
        case FromKafka(kafka=asked_topics):
            values = values_of(asked_topics, reading.schemas)
            limited = asked_topics.model_copy(
                update={"max_offsets_per_trigger": asked_topics.max_offsets_per_trigger or reading.max_offsets.get(name)}
            )
            return kafka.stream(given, limited, values, reading.brokers, offsets, reading.spec.metadata.name)


def divided(records: int | None, offsets: Mapping[str, Offsets]) -> dict[str, int]:
    """Divides the records that a micro-batch reads at most among Kafka sources, by their partitions.

    Args:
        records: of all sources together; None: no limit.
        offsets: source -> topic -> partition -> offset.

    Returns:
        Source -> records, at least 1.
    """
    if records is None:
        return {}
    partitions = {source: sum(map(len, topics.values())) for source, topics in offsets.items()}
    return {source: max(1, records * count // max(1, sum(partitions.values()))) for source, count in partitions.items()}


def values_of(source: KafkaSource, schemas: Mapping[str, str]) -> Values:
    """The format of a source's values.

    Args:
        source: settings of the topics.
        schemas: name -> text of the Avro schemas next to the spec.
    """
    avro = AvroSchema(schemas[source.avro.schema_file], source.avro) if source.avro else None
    return Values(source.value, csv=source.csv, avro=avro, deletes=source.key)
