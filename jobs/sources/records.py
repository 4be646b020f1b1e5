"""From a source's records to its stream, the same for every kind of source.

A source gives a frame of records, a kind of values reads them (`penstock.jobs.sources.values`), and here they get their event time, are
counted for the watermark, and are tagged as data, quarantined or late.

A frame of records has these columns:

=============  ==========================  ===========================================================================================
column         type                        what it is
=============  ==========================  ===========================================================================================
``key``        binary                      null where the source has none
``value``      binary                      the record itself; null is a tombstone
``topic``      string                      the topic, the file or the connection
``partition``  int                         null where the source has none
``offset``     bigint                      likewise
``timestamp``  timestamp                   the broker's, the file's, or that of the moment in which the line came
``headers``    array<struct<key, value>>   only where the app asks for the record
``_split``      int                         the number of the split, see `Splits`
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
    """A source that is about to be read.

    Args:
        session: Spark's session.
        name: the source's name in the spec.
        source: the source as the spec has it.
        schema: fields of the value; one that is not nullable has to be there.
        record: name of the field that has the record itself; None: without.
        stages: tasks that read, and tasks that the records are dealt out to.
    """

    session: SparkSession
    name: str
    source: Source
    schema: StructType
    record: str | None = None
    stages: Stages = field(default_factory=Stages)


def stream(given: Input, values: Values, read: DataFrame, splits: Sequence[str]) -> Stream:
    """The stream of a source whose records have values to be read.

    Args:
        given: the source.
        values: how they are read.
        read: its records.
        splits: labels of what the watermark is counted by, partitions for Kafka; ``_split`` is a place in it.

    Returns:
        The schema's fields, ``_deleted`` where tombstones delete, the record where it is asked for, and the envelope.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have, or a field for the record that the schema has.
    """
    return of_fields(given, read_values(_repartitioned(read, given.stages.stateless), values, given.schema, where(given.name)), splits)


def of_fields(given: Input, read: DataFrame, splits: Sequence[str]) -> Stream:
    """As `stream`, from records with their ``_value`` (struct of the schema) and ``_reason`` (null for what is a row)."""
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
    """The records in as many tasks as asked for. By what they are and not in turns, so that a replay deals them out the same way."""
    return read if tasks is None else read.repartition(tasks, F.xxhash64("topic", "partition", "offset", "value"))


def where(name: str) -> str:
    """A source's place in the app, for errors."""
    return f'job.source("{name}")'


def _with_moving_time(frame: DataFrame) -> DataFrame:
    """The event times that move the watermark. That of a tombstone is the broker's: it says nothing of how far the data have come."""
    moving = F.when(~F.col(DELETED), F.col(TIME)) if DELETED in frame.columns else F.col(TIME)
    return frame.withColumn(_MOVES, moving)


def _tagged(frame: DataFrame, name: str) -> DataFrame:
    """Tells data from what goes aside. Only what goes aside keeps its record and loses its event time, which keeps it out of the state."""
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
    """The record as a field of its own, where the app asks for it."""
    if given.record is None:
        return []
    if given.record in given.schema.names:
        need = f"a name for the record other than those of the fields: {', '.join(given.schema.names)}"
        raise BadDeclaration(path=where(given.name), given=f'record="{given.record}"', need=need, fix="use another name")
    own = F.struct("topic", "partition", "offset", "timestamp", "key", "headers")
    return [F.when(F.col(TAG) == Tag.DATA, own).alias(given.record)]
