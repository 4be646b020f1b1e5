"""Hand-made records: files of which a source reads one in each micro-batch, with all that Kafka keeps of a record."""

from __future__ import annotations

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.spec import FromFiles, FromKafka, Source
from penstock.testing.errors import WrongInput

_HEADER = "struct<key: string, value: string>"
_LINE = f"topic string, partition int, offset bigint, timestamp bigint, key string, value string, headers array<{_HEADER}>"
# The file source reads the oldest first.
_FIRST_FILE_S = 1_700_000_000


@dataclass(frozen=True)
class Record:
    """A record of a source.

    Args:
        value: its value: a mapping is written as JSON, None is a tombstone.
        key: its key.
        partition: of the topic.
        topic: of the source's; by default its first.
        timestamp: the broker's; by default now.
        headers: names and values.
    """

    value: Mapping[str, Any] | str | bytes | None
    key: str | bytes | None = None
    partition: int = 0
    topic: str | None = None
    timestamp: datetime | None = None
    headers: Sequence[tuple[str, bytes]] = ()


Value = Record | Mapping[str, Any] | str | bytes | None
# Of the job's only source, or of each source by its name.
Values = Sequence[Value] | Mapping[str, Sequence[Value]]


@dataclass(frozen=True)
class Replayed:
    """A micro-batch whose driver dies after the sinks have written and before Spark has committed; the next driver runs it again.

    Args:
        values: what it reads.
    """

    values: Values


def replayed(values: Values) -> Replayed:
    """A micro-batch that runs twice, as after a crash. The second run must write the same rows, or the test fails."""
    return Replayed(values)


@dataclass
class HandMade:
    """The records of one source.

    Args:
        name: of the source.
        source: of the spec.
        folder: of its files; it exists.
        partitions: of each topic.
    """

    name: str
    source: Source
    folder: Path
    partitions: int
    _files: int = 0
    _ends: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of the source; of one that is no Kafka source, its name."""
        if isinstance(self.source, FromKafka):
            return self.source.kafka.named or ("matching",)
        return (self.name,)

    def check(self, values: Sequence[Value]) -> None:
        """Refuses what can't be a record of the source.

        Raises:
            WrongInput: TEST-001.
        """
        for value in values:
            record = _record(value)
            place = f'micro_batches, source "{self.name}"'
            if self._form == "parquet" and not isinstance(record.value, Mapping):
                need = "a mapping of columns: the source's files are Parquet"
                raise WrongInput(path=place, given=repr(record.value), need=need, fix="write the row's columns with their values")
            if isinstance(record.value, Mapping) and self._form not in ("json", "parquet", None):
                need = f"text or bytes: the source's values are {self._form}"
                raise WrongInput(path=place, given=repr(record.value), need=need, fix="write it as the producer does")
            if not 0 <= record.partition < self.partitions:
                need = f"a partition of 0 to {self.partitions - 1}"
                fix = "micro_batches(spec, partitions=...) gives each topic more"
                raise WrongInput(path=place, given=f"partition {record.partition}", need=need, fix=fix)
            if record.topic is not None and record.topic not in self.topics:
                need = f"a topic of the source: {', '.join(self.topics)}"
                raise WrongInput(path=place, given=f"topic {record.topic}", need=need, fix="correct the topic")

    def write(self, values: Sequence[Value]) -> None:
        """Writes the file of the next micro-batch."""
        path = self.folder / f"{self._files:05d}.json"
        path.write_text("".join(f"{json.dumps(self._line(_record(value)))}\n" for value in values), encoding="utf-8")
        os.utime(path, (_FIRST_FILE_S + self._files, _FIRST_FILE_S + self._files))
        self._files += 1

    def frame(self, session: SparkSession) -> DataFrame:
        """The records as Kafka's source has them, a file in each micro-batch."""
        record = F.from_json("value", _LINE)
        lines = (
            session.readStream.option("maxFilesPerTrigger", 1).text(str(self.folder)).select(record.alias("_record")).select("_record.*")
        )
        is_kafka = isinstance(self.source, FromKafka)
        headers = F.transform("headers", lambda one: F.struct(one["key"].alias("key"), F.unbase64(one["value"]).alias("value")))
        return lines.select(
            F.unbase64("key").alias("key"),
            F.unbase64("value").alias("value"),
            "topic",
            F.col("partition") if is_kafka else F.lit(None).cast("int").alias("partition"),
            F.col("offset") if is_kafka else F.lit(None).cast("bigint").alias("offset"),
            F.timestamp_millis("timestamp").alias("timestamp"),
            F.when(F.size("headers") > 0, headers).alias("headers"),
        )

    @property
    def _form(self) -> str | None:
        if isinstance(self.source, FromKafka):
            return self.source.kafka.value
        return self.source.files.format if isinstance(self.source, FromFiles) else "text"

    def _line(self, record: Record) -> dict[str, Any]:
        topic = record.topic or self.topics[0]
        offset = self._ends[topic, record.partition]
        self._ends[topic, record.partition] += 1
        return {
            "topic": topic,
            "partition": record.partition,
            "offset": offset,
            "timestamp": int((time.time() if record.timestamp is None else record.timestamp.timestamp()) * 1000),
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": [{"key": name, "value": _base64(value)} for name, value in record.headers],
        }


def _record(value: Value) -> Record:
    return value if isinstance(value, Record) else Record(value)


def _base64(value: Mapping[str, Any] | str | bytes | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = json.dumps(dict(value), default=_json)
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def _json(value: object) -> str:
    """As Spark reads values in JSON."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime) else str(value)
