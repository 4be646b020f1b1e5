"""Kafka topics as sinks, written by Spark's own writer.

Guarantee: at least once. A micro-batch that is run again writes its records again, with the same keys: a reader of a compacted topic, or
one that keeps the last record of a key, sees no difference. A driver that was frozen while another one took over writes the records of one
micro-batch again, possibly after later ones: then the last record of a key may be an old one. Cost: none beyond the write.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata
from pyspark.sql import DataFrame

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.errors import BrokersUnreachable, TopicNotFound
from penstock.jobs.kafka.heard import Heard
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.kafka.topic_access import hidden
from penstock.jobs.sinks.kafka_records import records
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.transactions import CALL_S, insist
from penstock.jobs.spec import KafkaSink
from penstock.jobs.spec.client_properties import as_text
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from penstock.sizing.errors import raise_all

# Source: `python -m benchmarks.kafka_clients`; see decision 0065. Exactly-once sinks compress in the same way.
_BATCH_BYTES = 128 * 1024
_COMPRESSION = "lz4"
# They take a task some 0.1 s of CPU time, the query included; a further task costs a tenth of that.
ROWS_A_TASK = 5_000


@dataclass(frozen=True)
class Topic:
    """Sink that writes a topic.

    Args:
        sink: sink of the spec.
        brokers: connection to the brokers.
        updates: whether a row replaces the earlier one with its key.
    """

    sink: KafkaSink
    brokers: KafkaAccess
    updates: bool = True

    @classmethod
    def of(cls, name: str, sink: KafkaSink, context: SinkContext) -> Topic:
        """Builds the sink from its spec; the spec has the name of the topic."""
        return cls(sink, context.kafka, context.updates)

    def check(self) -> None:
        """Checks that the topic exists.

        Raises:
            BrokersUnreachable: JOB-001.
            KafkaCredentialsRefused: JOB-111.
            TopicNotFound: JOB-002.
            TopicAccessDenied: JOB-125.
        """
        heard = Heard(self.brokers)
        admin = admin_of(self.brokers, heard)
        try:
            cluster_with(admin, self.brokers, self.sink.topic)
        except KafkaException as error:
            raise_if_refused(admin, heard)
            need = f"a response within {CALL_S:.0f} s; client error: {error.args[0].str()}"
            fix = "check the address, and that the broker is running"
            raise BrokersUnreachable(path="brokers", given=self.brokers.address, need=need, fix=fix) from None

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch, formatted by `penstock.jobs.sinks.kafka_records.records`.

        Raises:
            BadDeclaration: JOB-004.
        """
        options = {
            **producer_options(self.sink),
            **self.brokers.spark_options(),
            "kafka.max.request.size": str(MAX_RECORD_BYTES),
            "topic": self.sink.topic,
        }
        to_write = batch.spread(records(self.sink, rows, updates=self.updates), ROWS_A_TASK)
        to_write.write.format("kafka").options(**options).save()


def producer_options(sink: KafkaSink) -> dict[str, str]:
    """Settings of the producers that write a sink's records, as options of Spark's.

    By Kafka's defaults a producer sends batches of 16 KiB, not compressed. Batches that are larger and compressed cost fewer requests and
    fewer bytes, which saves more CPU time than the compression takes. No record waits for it: a task sends what it has when it ends.

    Args:
        sink: settings of the topic.
    """
    return {
        "kafka.batch.size": str(_BATCH_BYTES),
        "kafka.compression.type": _COMPRESSION,
        **{f"kafka.{name}": value for name, value in as_text(sink.properties).items()},
    }


def admin_of(brokers: KafkaAccess, heard: Heard) -> AdminClient:
    """An admin client of the brokers, and what hears its errors."""
    settings = {**client_settings(brokers), "error_cb": heard, "log_level": 0}
    return AdminClient(settings)


def raise_if_refused(admin: AdminClient, heard: Heard) -> None:
    """Raises JOB-111 if an admin client has got no answer because the brokers reject its credentials."""
    # What the client has heard until now is told by a poll alone.
    admin.poll(0)
    if (refused := heard.refused()) is not None:
        raise refused from None


def cluster_with(admin: AdminClient, brokers: KafkaAccess, topic: str) -> ClusterMetadata:
    """The brokers' metadata of themselves and their topics.

    Raises:
        TopicNotFound: JOB-002.
        TopicAccessDenied: JOB-125.
        KafkaException: the brokers did not respond.
    """
    known = insist(lambda: admin.list_topics(timeout=CALL_S))
    if topic not in known.topics:
        raise_all(hidden(brokers, [topic], "write", CALL_S))
        need = "an existing topic"
        raise TopicNotFound(path=f"topic {topic}", need=need, fix="create it, or correct its name")
    return known
