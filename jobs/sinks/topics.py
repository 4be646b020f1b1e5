"""Kafka topics as sinks.

Guarantee: at least once. A micro-batch that is run again writes its records again, under the same keys. Cost: none beyond the write.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.brokers import MAX_RECORD_BYTES
from jobs.streams import ENVELOPE


@dataclass(frozen=True)
class Topic:
    """A topic to write.

    Args:
        name: of the topic.
        brokers: ``host:port``, several with commas.
    """

    name: str
    brokers: str

    def write(self, records: DataFrame) -> None:
        """Writes records with the columns ``key`` and ``value``."""
        options = {"kafka.bootstrap.servers": self.brokers, "kafka.max.request.size": str(MAX_RECORD_BYTES), "topic": self.name}
        records.write.format("kafka").options(**options).save()

    def write_rows(self, rows: DataFrame) -> None:
        """Writes data rows as JSON, without a key."""
        fields = [name for name in rows.columns if name not in ENVELOPE]
        line = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
        self.write(rows.select(F.lit(None).cast("string").alias("key"), line.alias("value")))
