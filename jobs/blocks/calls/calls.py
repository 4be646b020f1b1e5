"""Calls of an outside system, one for each row, as Flink's asynchronous I/O: concurrent, with time-outs, tried again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.blocks.calls.attempts import Function, Policy
from penstock.jobs.blocks.calls.journal import declare
from penstock.jobs.blocks.calls.tasks import CALL_KEY, FAILURE, CallTask
from penstock.jobs.spec.part import NAME_PATTERN
from penstock.jobs.stream.declaration import name_tag
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import ENVELOPE, REASON, RECORD, TAG, TIME, Stream, Tag, record
from penstock.sizing.units import NotAQuantity, duration_ms

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = ("topic", "partition", "offset")


def call(
    stream: Stream,
    function: Function,
    *,
    name: str,
    key: str | Column,
    result: str | StructType,
    capacity: int = 100,
    timeout: str = "10s",
    attempts: int = 3,
    backoff: str = "200ms",
    ordered: bool = True,
) -> Stream:
    """Calls an outside system for each row and adds what it answers.

    A function ``async def update(row, key)`` is given the row's fields as a dict and the row's idempotency key, and gives a dict back. What
    it raises is tried again; what keeps failing goes aside as `Tag.FAILED` with the reason and the row, for
    ``job.side_output("alerts", Tag.FAILED)``, which an app with calls must have. A failure never stops the job.

    Each answer, a failure too, is put down in the checkpoint before it goes on (jobs/blocks/calls/journal.py). So a micro-batch that runs
    again goes on with the same answers and calls for none of them twice, and all that follows may be exactly-once and keep state. Where the
    process dies with a call under way, or within a second after its answer, nobody knows whether the other side has done it: it is called
    again with the same key, and has to know the key again if doing it twice would do harm.

    A plain function gets a thread for each call under way; one that can hang must bring a time-out of its own, for a thread can't be ended.
    A function may be an object: one that is a context manager (asynchronous if its calls are) is entered once a task before the first call,
    where it opens its client, and left at the end.

    Args:
        stream: rows to call for.
        function: ``(row, key) -> answer``; a task's Python has to be able to import it, or to take it over as it is.
        name: of the calls, a lower-case name that no other calls of the app have; the journal and the reasons go by it.
        key: the idempotency key: a SQL expression or a column; that of a record (``job.source(..., record="record")``) is its topic,
            partition and offset. Rows of one task and micro-batch with one key share one call.
        result: the answer's fields as Spark writes them, ``limit DOUBLE NOT NULL, note STRING``; an answer without one that is NOT NULL has
            failed. They are added to the row's.
        capacity: calls of a task under way at once.
        timeout: of one attempt.
        attempts: before a call has failed.
        backoff: the pause before the second attempt; it doubles, up to 30 s.
        ordered: whether a task's rows come out in the order in which they came in; without it a slow call holds up no other.

    Returns:
        The stream's fields and the result's.

    Raises:
        ValueError: a name, a number or a duration that can't be taken, or a field of the result that the stream has already.
    """
    fields = _result(stream, result)
    policy = Policy(
        _count("capacity", capacity), _duration_ms("timeout", timeout), _count("attempts", attempts), _duration_ms("backoff", backoff)
    )
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError(f'name = "{name}": expected lower-case letters, digits and hyphens, starting with a letter')
    declare(name)
    name_tag(Tag.FAILED, f'call(..., name="{name}")')
    task = CallTask(
        name=name,
        function=function,
        policy=policy,
        fields=tuple(stream.fields),
        answers=_arrow(fields),
        required=tuple(field.name for field in fields.fields if not field.nullable),
        ordered=ordered,
    )
    keyed = stream.frame.withColumn(CALL_KEY, _key(stream.frame, key))
    added = [StructField(field.name, field.dataType, True) for field in fields.fields]
    out = StructType([*stream.frame.schema.fields, *added, StructField(FAILURE, StringType())])
    frame = _tagged_failures(keyed.mapInArrow(task, out), name, stream.fields)
    return replace(stream, frame=with_event_time(frame) if stream.timed else frame)


def _tagged_failures(frame: DataFrame, name: str, fields: Sequence[str]) -> DataFrame:
    failed = F.col(FAILURE).isNotNull()
    row = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"}).cast("binary")
    return (
        frame.withColumn(RECORD, F.when(failed, record(F.lit(name), row)).otherwise(F.col(RECORD)))
        .withColumn(REASON, F.when(failed, F.concat(F.lit(f"{name} "), FAILURE)).otherwise(F.col(REASON)))
        .withColumn(TIME, F.when(~failed, F.col(TIME)))
        .withColumn(TAG, F.when(failed, Tag.FAILED).otherwise(F.col(TAG)))
        .drop(FAILURE)
    )


def _key(frame: DataFrame, key: str | Column) -> Column:
    column = F.expr(key) if isinstance(key, str) else key
    kind = frame.select(column.alias("key")).schema["key"].dataType
    if isinstance(kind, StructType):
        if not set(_PLACE) <= set(kind.names):
            raise ValueError(f"key = {key}: expected a string, a number, or a record with {', '.join(_PLACE)}")
        column = F.when(column["topic"].isNotNull(), F.concat_ws("-", *(column[part] for part in _PLACE)))
    return column.cast("string")


def _result(stream: Stream, result: str | StructType) -> StructType:
    fields = StructType.fromDDL(result) if isinstance(result, str) else result
    if not isinstance(fields, StructType) or not fields.fields:
        raise ValueError(f'result = {result}: expected a schema such as "limit DOUBLE NOT NULL, note STRING"')
    taken = [name for name in fields.names if name in (*stream.fields, *ENVELOPE, CALL_KEY, FAILURE)]
    if taken:
        raise ValueError(f"result: the row already has {', '.join(taken)}; rename the field of the response")
    return fields


def _arrow(fields: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # What is NOT NULL is asked of each answer; a row without an answer has nulls all the same.
    return to_arrow_schema(StructType([StructField(field.name, field.dataType, True) for field in fields.fields]), timezone="UTC")


def _count(what: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"{what} = {number}: must be at least 1")
    return number


def _duration_ms(what: str, text: str) -> int:
    try:
        return duration_ms(text)
    except NotAQuantity as error:
        raise ValueError(f'{what} = "{text}": expected {error.need}') from None
