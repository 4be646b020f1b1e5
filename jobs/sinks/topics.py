"""Kafka topics as sinks, written by Spark's own writer.

Guarantee: at least once. A micro-batch that is run again writes its records again, under the same keys: a reader of a compacted topic, or
one that keeps the last record of a key, sees no difference. Cost: none beyond the write.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from jobs.kafka_access import KafkaAccess
from jobs.sinks.kafka_records import records
from jobs.sinks.sink import Batch
from jobs.spec import KafkaSink
from jobs.topics import MAX_RECORD_BYTES


@dataclass(frozen=True)
class Topic:
    """A topic to write.

    Args:
        sink: of the spec.
        brokers: how to reach them.
    """

    sink: KafkaSink
    brokers: KafkaAccess

    def check(self) -> None:
        """The topic is there, or Spark's own error says that it is not."""

    def idle(self, now_ms: int) -> None:
        """Nothing is held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch, as `jobs.sinks.kafka_records.records` says.

        Raises:
            BadDeclaration: JOB-004.
        """
        options = {**self.brokers.spark_options(), "kafka.max.request.size": str(MAX_RECORD_BYTES), "topic": self.sink.topic}
        records(self.sink, rows).write.format("kafka").options(**options).save()
