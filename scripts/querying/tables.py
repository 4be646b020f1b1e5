"""Topics as tables: each topic that a job reads, with the fields that the job's app declares for its values.

Beside the fields a table has columns of the record. A record that the job would quarantine is a row, too, whose fields are null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.driver.check import declared_fields
from penstock.jobs.sources.fields import field
from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.sources.opening import values_of
from penstock.jobs.sources.values import read
from penstock.jobs.spec import KafkaSource, SpecFile
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import DELETED
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.querying.errors import NothingToQuery

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Columns of the record, beside the fields.
KEY, PARTITION, OFFSET, TIMESTAMP, ERROR = "_key", "_partition", "_offset", "_timestamp", "_error"


@dataclass(frozen=True)
class ReadJob:
    """A job whose topics are tables.

    Args:
        spec: of the job.
        app_path: folders of its app, besides that of the spec.
        packages: of its app.
    """

    spec: SpecFile
    app_path: Sequence[Path]
    packages: InstalledPackages


@dataclass(frozen=True)
class TopicTable:
    """A topic with the schema of its values.

    Args:
        topic: its name, and the table's.
        job: of the source that the schema is of.
        source: its name in the spec.
        kafka: settings of that source.
        fields: of the values.
        schemas: name -> text of the Avro schemas beside the spec.
    """

    topic: str
    job: str
    source: str
    kafka: KafkaSource
    fields: StructType
    schemas: Mapping[str, str]


@dataclass(frozen=True)
class Start:
    """Where reading starts.

    Args:
        at: ``earliest``, ``latest``, or epoch milliseconds: the first records that are not older.
    """

    at: Literal["earliest", "latest"] | int

    def options(self) -> dict[str, str]:
        """Options of Spark's Kafka source."""
        if isinstance(self.at, int):
            return {"startingTimestamp": str(self.at), "startingOffsetsByTimestampStrategy": "latest"}
        return {"startingOffsets": self.at}


def tables(jobs: Sequence[ReadJob], matching: Callable[[str], Sequence[str]], session: SparkSession, folder: Path) -> dict[str, TopicTable]:
    """Topic -> its table; of a topic that several sources read, that of the first one.

    Args:
        jobs: in the order of their environment.
        matching: topics of the brokers that a pattern matches.
        session: reads the schemas.
        folder: an existing folder that stands for the buckets of sources of files.

    Raises:
        NothingToQuery: SQL-006.
        PenstockError: what is wrong with an app.
    """
    found: dict[str, TopicTable] = {}
    for job in jobs:
        fields = declared_fields(job.spec, job.app_path, session, folder, job.packages.path)
        for name, source in job.spec.job.spec.kafka_sources.items():
            topics = source.named if source.pattern is None else matching(source.pattern)
            for topic in topics if name in fields else ():
                made = TopicTable(topic, job.spec.job.metadata.name, name, source, fields[name], avro_schemas(job.spec))
                found.setdefault(topic, made)
    if not found:
        paths = ", ".join(str(job.spec.path) for job in jobs) or "the environment has no jobs"
        raise NothingToQuery(path=paths, need="a source that reads a topic", fix="name a job that reads topics, or an environment with one")
    return found


def opened(table: TopicTable, access: KafkaAccess, session: SparkSession, start: Start, *, follow: bool) -> DataFrame:
    """The rows of a table: of the records that there are, or of those that come as well.

    No consumer group has members or offsets by it: Spark's consumers are assigned their partitions.

    Args:
        table: to be read.
        access: to the brokers.
        session: that reads it.
        start: where.
        follow: whether to read on.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have.
    """
    reader = session.readStream if follow else session.read
    records = reader.format("kafka").options(**_options(table, access), **start.options()).load()
    rows = read(records, values_of(table.kafka, table.schemas), table.fields, f"{table.job}: {table.source}")
    deleted = [F.col(DELETED)] if DELETED in rows.columns else []
    is_row = F.col(REASON).isNull()
    return rows.select(
        *(F.when(is_row, field(name)).alias(name) for name in table.fields.names),
        *deleted,
        *(column.alias(name) for name, column in _of_record().items() if name not in table.fields.names),
    )


def columns_of(table: TopicTable) -> dict[str, str]:
    """Column -> its type, as SQL has it: the fields, then those of the record."""
    of_record = {KEY: "string", PARTITION: "int", OFFSET: "bigint", TIMESTAMP: "timestamp", ERROR: "string"}
    return {field.name: field.dataType.simpleString() for field in table.fields.fields} | {
        name: kind for name, kind in of_record.items() if name not in table.fields.names
    }


def _of_record() -> dict[str, Column]:
    return {
        KEY: F.col("key").cast("string"),
        PARTITION: F.col("partition"),
        OFFSET: F.col("offset"),
        TIMESTAMP: F.col("timestamp"),
        ERROR: F.col(REASON),
    }


def _options(table: TopicTable, access: KafkaAccess) -> dict[str, str]:
    kafka = table.kafka
    group = {"kafka.group.id": kafka.group_id} if kafka.group_id else {"groupIdPrefix": f"penstock.{table.job}.sql"}
    return {
        **access.spark_options(),
        "subscribe": table.topic,
        "includeHeaders": "true",
        # Records may expire while they are read.
        "failOnDataLoss": "false",
        **consumer_options(kafka),
        **group,
    }
