"""Turns a source's records into its stream, in the same way for every kind of source.

A source provides a frame of records, and `penstock.jobs.sources.values` parses their values. Here they get their event time, are counted
for the watermark, and are tagged as data, quarantined or late.

A frame of records has these columns:

=============  ==========================  ===========================================================================================
column         type                        content
=============  ==========================  ===========================================================================================
``key``        binary                      null if the source has none
``value``      binary                      the record itself; null is a tombstone
``topic``      string                      the topic, the file or the connection
``partition``  int                         null if the source has none
``offset``     bigint                      null if the source has none
``timestamp``  timestamp                   the broker's, the file's, or the time when the line arrived
``headers``    array<struct<key, value>>   only if the app requests the record
``_split``     int                         the number of the split, see `Splits`
=============  ==========================  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources.values import VALUE, Values
from penstock.jobs.sources.values import read as read_values
from penstock.jobs.spec import Source
from penstock.jobs.spec.job import Stages
from penstock.jobs.stream.event_time import engine, judging, observation
from penstock.jobs.stream.streams import DELETED, REASON, RECORD, TAG, TIME, Stream, Tag

SPLIT = "_lane"
HEADERS = "array<struct<key: string, value: binary>>"
_MOVES = "_moves"


@dataclass(frozen=True)
class Input:
    """A source to be read.

    Args:
        session: Spark session.
        name: name of the source in the spec.
        source: source of the spec.
        schema: fields of the value; those that are not nullable are required.
        record: name of the field with the record itself; None for no such field.
        stages: number of tasks that read, and of those that the records are repartitioned among.
    """

    session: SparkSession
    name: str
    source: Source
    schema: StructType
    record: str | None = None
    stages: Stages = field(default_factory=Stages)


def stream(given: Input, values: Values, read: DataFrame, splits: Sequence[str]) -> Stream:
    """The stream of a source whose records have values to parse.

    Args:
        given: the source.
        values: format of the values.
        read: records of the source.
        splits: labels of the splits that the watermark is computed over, partitions for Kafka; ``_split`` is an index into them.

    Returns:
        The schema's fields, ``_deleted`` if tombstones delete, the record if requested, and the envelope.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have, or a field for the record that the schema has.
    """
    return of_fields(given, read_values(_repartitioned(read, given.stages.stateless), values, given.schema, where(given.name)), splits)


def of_fields(given: Input, read: DataFrame, splits: Sequence[str]) -> Stream:
    """Like `stream`, for records with their ``_value`` (struct of the schema) and ``_reason`` (null for a row)."""
    time = given.source.time
    frame = judging.timed(read, given.name, time, VALUE, given.schema)
    frame = judging.judged(given.session, frame, time)
    frame = observation.observe(_with_moving_time(frame), given.name, len(splits), SPLIT, _MOVES)
    frame = _tagged(frame, given.name)
    fields = [F.col(VALUE)[field.name].alias(field.name) for field in given.schema.fields]
    deleted = [F.col(DELETED)] if DELETED in frame.columns else []
    frame = frame.select(*fields, *deleted, *_own_record(given), TAG, REASON, TIME, RECORD)
    return Stream(engine.with_watermark(frame) if time else frame, timed=time is not None)


def _repartitioned(read: DataFrame, tasks: int | None) -> DataFrame:
    """The records, repartitioned among the given number of tasks by content, not round-robin, so that a replay yields the same
    partitions.
    """
    return read if tasks is None else read.repartition(tasks, F.xxhash64("topic", "partition", "offset", "value"))


def where(name: str) -> str:
    """Location of a source in the app, for errors."""
    return f'job.source("{name}")'


def _with_moving_time(frame: DataFrame) -> DataFrame:
    """The event times that advance the watermark. A tombstone does not advance it: its time is the broker's, which does not reflect the
    data.
    """
    moving = F.when(~F.col(DELETED), F.col(TIME)) if DELETED in frame.columns else F.col(TIME)
    return frame.withColumn(_MOVES, moving)


def _tagged(frame: DataFrame, name: str) -> DataFrame:
    """Tags data and rows for side outputs. Only the latter keep their record, and lose their event time, which keeps them out of the
    state.
    """
    tag = F.when(F.col(REASON).isNotNull(), Tag.QUARANTINED).when(F.col(judging.LATE), Tag.LATE).otherwise(Tag.DATA)
    is_data = F.col(TAG) == Tag.DATA
    record = F.struct(F.lit(name).alias("source"), "topic", "partition", "offset", "timestamp", "key", "value")
    return (
        frame.withColumn(TAG, tag)
        .withColumn(REASON, F.coalesce(REASON, F.when(F.col(TAG) == Tag.LATE, judging.behind_reason())))
        .withColumn(TIME, F.when(is_data, F.col(TIME)))
        .withColumn(RECORD, F.when(~is_data, record))
    )


def _own_record(given: Input) -> list[Column]:
    """The record as a separate field, if the app requests it."""
    if given.record is None:
        return []
    if given.record in given.schema.names:
        need = f"a name for the record other than those of the fields: {', '.join(given.schema.names)}"
        raise BadDeclaration(path=where(given.name), given=f'record="{given.record}"', need=need, fix="use another name")
    own = F.struct("topic", "partition", "offset", "timestamp", "key", "headers")
    return [F.when(F.col(TAG) == Tag.DATA, own).alias(given.record)]
