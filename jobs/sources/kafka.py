"""Kafka as a source: a topic's records as a stream, each tagged as data, quarantined or late."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.event_time import engine, observation
from jobs.event_time.timestamps import from_iso_8601
from jobs.sources.json_values import parsed
from jobs.spec import Source
from jobs.streams import REASON, RECORD, TAG, TIME, Stream, Tag


def stream(session: SparkSession, name: str, source: Source, schema: StructType, brokers: str, offsets: Mapping[int, int]) -> Stream:
    """A topic's records as a stream.

    Args:
        session: Spark's session.
        name: the source's name in the spec.
        source: the source as the spec has it.
        schema: fields of the value.
        brokers: ``host:port``, several with commas.
        offsets: partition -> the first offset that a query without a checkpoint reads; as many as the topic has partitions.

    Returns:
        The schema's fields and the envelope.
    """
    records = _records(session, source, brokers, offsets)
    time = source.time
    event_time = from_iso_8601(F.col("_value")[time.field]) if time else None
    frame = parsed(records, schema, time.field if time else None, event_time)
    frame = observation.observe(frame, name, len(offsets), "partition", TIME)
    frame = _tagged(session, frame, name, timed=time is not None)
    fields = [F.col("_value")[field.name].alias(field.name) for field in schema.fields]
    frame = frame.select(*fields, TAG, REASON, TIME, RECORD)
    return Stream(frame.withWatermark(TIME, engine.NEVER) if time else frame, timed=time is not None)


def _records(session: SparkSession, source: Source, brokers: str, offsets: Mapping[int, int]) -> DataFrame:
    topic = source.kafka.topic
    options = {
        "kafka.bootstrap.servers": brokers,
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {str(number): offset for number, offset in sorted(offsets.items())}}),
        "failOnDataLoss": "true",
    }
    if source.kafka.max_offsets_per_trigger:
        options["maxOffsetsPerTrigger"] = str(source.kafka.max_offsets_per_trigger)
    return session.readStream.format("kafka").options(**options).load()


def _tagged(session: SparkSession, frame: DataFrame, name: str, *, timed: bool) -> DataFrame:
    """Tells data from what goes aside. Only what goes aside keeps its record and loses its event time, which keeps it out of the state."""
    late = F.lit(False)
    if timed:
        frame = frame.crossJoin(F.broadcast(engine.in_force(session)))
        late = F.coalesce(F.unix_millis(TIME) < F.col("_in_force"), F.lit(False))
    tag = F.when(F.col(REASON).isNotNull(), Tag.QUARANTINED).when(late, Tag.LATE).otherwise(Tag.DATA)
    is_data = F.col(TAG) == Tag.DATA
    behind = (
        F.concat(F.lit("older than the watermark by ms: "), (F.col("_in_force") - F.unix_millis(TIME)).cast("string")) if timed else None
    )
    reason = F.coalesce(REASON, F.when(F.col(TAG) == Tag.LATE, behind)) if behind is not None else F.col(REASON)
    record = F.struct(F.lit(name).alias("source"), "topic", "partition", "offset", "timestamp", "key", "value")
    return (
        frame.withColumn(TAG, tag)
        .withColumn(REASON, reason)
        .withColumn(TIME, F.when(is_data, F.col(TIME)))
        .withColumn(RECORD, F.when(~is_data, record))
    )
