"""Kafka as a source: the records of one or several topics."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.sources import records
from penstock.jobs.sources.ends import PartitionEnds
from penstock.jobs.sources.records import SPLIT, Input
from penstock.jobs.sources.values import Values
from penstock.jobs.spec import KafkaSource
from penstock.jobs.spec.client_properties import as_text
from penstock.jobs.stream.streams import Stream

# Not zero: should a leader not have the records yet that were there when the micro-batch was planned, a task asks a hundred times a second.
_EMPTY_FETCH_MS = 10
# Source: `python -m benchmarks.kafka_clients`; see decision 0064.
_POLLED_RECORDS = 10_000


def stream(
    given: Input, kafka: KafkaSource, values: Values, brokers: KafkaAccess, offsets: Mapping[str, Mapping[int, int]], job: str
) -> Stream:
    """The records of a Kafka source as a stream.

    Args:
        given: the source.
        kafka: settings of the topics.
        values: format of the values.
        brokers: connection to the brokers.
        offsets: topic -> partition -> first offset that a query without a checkpoint reads; contains every partition of the topics.
        job: name of the job.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have.
    """
    read = given.records
    if read is None:
        read = given.session.readStream.format("kafka").options(**_options(given, kafka, brokers, offsets, job)).load()
    read = _with_split(read, offsets)
    return records.stream(given, values, read if given.end is None else _up_to(read, offsets, given.end.offsets))


def consumer_options(kafka: KafkaSource) -> dict[str, str]:
    """Settings of the consumers that read a source's records, as options of Spark's.

    After each poll, Spark's reader asks the broker where the partition begins and ends. By Kafka's default a poll returns 500 of the
    records that the consumer has fetched, so the requests cost more than the records: ``max.poll.records`` is larger. What a consumer has
    fetched, and with it what a poll returns, is limited by ``max.partition.fetch.bytes``, before decompression.

    A task that has read up to the end of a partition has asked for more records by then. A broker answers the requests of a connection in
    turn: that one with nothing, once ``fetch.max.wait.ms`` is over. By Kafka's default of 500 ms each task of a micro-batch took half a
    second longer for each of its partitions. Nothing else waits for so long: tasks only read records that are there.
    Sources: Spark 4.3.0, InternalKafkaConsumer.fetch; Kafka's protocol guide, "Network".

    Args:
        kafka: settings of the topics.
    """
    return {
        "kafka.fetch.max.wait.ms": str(_EMPTY_FETCH_MS),
        "kafka.max.poll.records": str(_POLLED_RECORDS),
        **{f"kafka.{name}": value for name, value in as_text(kafka.properties).items()},
        # Spark's driver asks for the latest offsets with it too: the last stable ones, so an open transaction does not count as lag.
        "kafka.isolation.level": kafka.isolation_level,
    }


def _options(given: Input, kafka: KafkaSource, brokers: KafkaAccess, offsets: Mapping[str, Mapping[int, int]], job: str) -> dict[str, str]:
    starts = {topic: {str(number): offset for number, offset in sorted(parts.items())} for topic, parts in offsets.items()}
    options = {
        **brokers.spark_options(),
        # The topics of a pattern are those that the driver listed: with Spark's own subscription a new topic could appear in the middle of
        # a micro-batch, unknown to the watermark.
        **_chosen(given, offsets),
        "startingOffsets": json.dumps(starts),
        "failOnDataLoss": "true",
        **consumer_options(kafka),
        **_group(kafka, job),
    }
    if given.record is not None:
        options["includeHeaders"] = "true"
    if given.end is not None and given.end.read:
        options["maxOffsetsPerTrigger"] = "0"
    elif kafka.max_offsets_per_trigger:
        options["maxOffsetsPerTrigger"] = str(kafka.max_offsets_per_trigger)
    if readers := kafka.min_partitions or given.stages.source:
        options["minPartitions"] = str(readers)
    return options


def _group(kafka: KafkaSource, job: str) -> dict[str, str]:
    """The group of Spark's consumers. They may share one: their partitions are assigned to them, so that none is a member of it."""
    if kafka.group_id is not None:
        return {"kafka.group.id": kafka.group_id}
    return {"groupIdPrefix": kafka.group_id_prefix or f"penstock.{job}.spark"}


def _chosen(given: Input, offsets: Mapping[str, Mapping[int, int]]) -> dict[str, str]:
    """Which partitions are read; of a source with an end, those that had one, whatever is added to its topics."""
    if given.end is None:
        return {"subscribe": ",".join(offsets)}
    return {"assign": json.dumps({topic: sorted(partitions) for topic, partitions in offsets.items()})}


def _up_to(read: DataFrame, offsets: Mapping[str, Mapping[int, int]], ends: PartitionEnds) -> DataFrame:
    """The records before the ends. Spark reads up to where the partitions ended when its query was started."""
    of_splits = [F.lit(ends[topic][number]) for topic, parts in sorted(offsets.items()) for number in sorted(parts)]
    return read.where(F.col("offset") < F.get(F.array(*of_splits), F.col(SPLIT)))


def _with_split(read: DataFrame, offsets: Mapping[str, Mapping[int, int]]) -> DataFrame:
    """The number of each record's split; one past the last for a partition that did not exist when the query was planned."""
    total = sum(map(len, offsets.values()))
    split, first = F.lit(total), 0
    for topic, parts in sorted(offsets.items()):
        here = F.when(F.col("partition") < len(parts), F.col("partition") + first).otherwise(F.lit(total))
        split = here if len(offsets) == 1 else F.when(F.col("topic") == topic, here).otherwise(split)
        first += len(parts)
    return read.withColumn(SPLIT, split)
