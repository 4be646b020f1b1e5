"""Turns a source's records into its stream, in the same way for every kind of source.

A source provides a frame of records, and `penstock.jobs.sources.values` parses their values. Here they get their event time and are counted
for the watermark. Those that are malformed or late leave the stream; the rest is data.

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

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources.ends import SourceEnd
from penstock.jobs.sources.fields import field as field_of
from penstock.jobs.sources.fields import named_fields
from penstock.jobs.sources.values import Values
from penstock.jobs.sources.values import read as read_values
from penstock.jobs.spec import Source
from penstock.jobs.spec.job import Stages
from penstock.jobs.stream.event_time import engine, judging
from penstock.jobs.stream.leaving import Operator
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import DELETED, TIME, Stream, Tag

SPLIT = "_lane"
HEADERS = "array<struct<key: string, value: binary>>"
_COUNTED, _TAG = "_counted", "_tag"
# Counted beside the tags of rows that leave: rows behind the watermark that stay. No app can have a tag like it, see `Job.side_output`.
TOLERATED = ",tolerated"


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
        end: where it ends; None for a source without an end.
        records: what is read in place of the source, without `SPLIT`; None: the source itself.
    """

    session: SparkSession
    name: str
    source: Source
    schema: StructType
    record: str | None = None
    stages: Stages = field(default_factory=Stages)
    end: SourceEnd | None = None
    records: DataFrame | None = None


def stream(given: Input, values: Values, read: DataFrame) -> Stream:
    """The stream of a source whose records have values to parse.

    Args:
        given: the source.
        values: format of the values.
        read: records of the source.

    Returns:
        The schema's fields, ``_deleted`` if tombstones delete, the record if requested, and the event time.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have, or a field for the record that the schema has.
    """
    return of_fields(given, read_values(_repartitioned(read, given.stages.stateless), values, given.schema, where(given.name)))


def of_fields(given: Input, read: DataFrame) -> Stream:
    """Like `stream`, for records with the fields of `penstock.jobs.sources.fields` and ``_reason`` (null for a row)."""
    time = given.source.time
    frame = judging.timed(read, given.name, time, field_of, given.schema)
    frame = judging.judged(given.session, frame, time)
    frame = data_rows(frame, given.name, _moving_time(frame))
    deleted = [F.col(DELETED)] if DELETED in frame.columns else []
    frame = frame.select(*named_fields(given.schema), *deleted, *_own_record(given), TIME)
    if time is None:
        return Stream(frame, timed=False)
    return Stream(engine.with_watermark(frame), timed=True, bound_ms=time.out_of_orderness)


def data_rows(frame: DataFrame, name: str, moving: Column) -> DataFrame:
    """The data among the rows of a source; each is counted, and the others leave.

    Args:
        frame: records with `SPLIT`, ``_reason``, ``_time``, and `judging.BEHIND` and `judging.LATE`.
        name: of the source, by which `penstock.jobs.stream.leaving.Passed` has its counts.
        moving: the event time that advances the watermark; null for rows that don't.
    """
    operator = Operator(frame.sparkSession, name)
    tag = F.when(F.col(REASON).isNotNull(), Tag.QUARANTINED).when(F.col(judging.LATE), Tag.LATE)
    # Spark moves no filter below a step with a function that it takes for non-deterministic, so values are parsed once.
    frame = frame.withColumns({_COUNTED: operator.counts(F.col(SPLIT), F.unix_millis(moving)), _TAG: tag})
    timestamp = F.unix_micros("timestamp").alias("timestamp")
    record = F.struct(F.lit(name).alias("source"), "topic", "partition", "offset", timestamp, "key", "value")
    stays = F.when(F.col(judging.BEHIND).isNotNull(), ~operator.takes(TOLERATED)).otherwise(F.lit(True))
    leaves = operator.takes(F.col(_TAG), F.coalesce(REASON, judging.behind_reason()), record)
    return frame.where(F.col(_COUNTED) & F.when(F.col(_TAG).isNull(), stays).otherwise(leaves))


def _repartitioned(read: DataFrame, tasks: int | None) -> DataFrame:
    """The records, repartitioned among the given number of tasks by content, not round-robin, so that a replay yields the same
    partitions.
    """
    return read if tasks is None else read.repartition(tasks, F.xxhash64("topic", "partition", "offset", "value"))


def where(name: str) -> str:
    """Location of a source in the app, for errors."""
    return f'job.source("{name}")'


def _moving_time(frame: DataFrame) -> Column:
    """The event times that advance the watermark. A tombstone does not advance it: its time is the broker's, which does not reflect the
    data.
    """
    return F.when(~F.col(DELETED), F.col(TIME)) if DELETED in frame.columns else F.col(TIME)


def _own_record(given: Input) -> list[Column]:
    """The record as a separate field, if the app requests it."""
    if given.record is None:
        return []
    if given.record in given.schema.names:
        need = f"a name for the record other than those of the fields: {', '.join(given.schema.names)}"
        raise BadDeclaration(path=where(given.name), given=f'record="{given.record}"', need=need, fix="use another name")
    own = F.struct("topic", "partition", "offset", "timestamp", "key", "headers")
    return [own.alias(given.record)]
