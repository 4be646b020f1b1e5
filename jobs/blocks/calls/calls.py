"""Calls to an external system, one per row, like Flink's asynchronous I/O: concurrent, with timeouts and retries."""

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
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.declaration import name_tag
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import ENVELOPE, Stream, Tag, record
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
    """Calls an external system for each row and adds the response.

    A function ``async def update(row, key)`` takes the row's fields as a dict and the row's idempotency key, and returns a dict.
    Exceptions are retried; a call that keeps failing sends the row to the side output `Tag.FAILED` with the reason,
    ``job.side_output("alerts", Tag.FAILED)``, which an app with calls must declare. A failed call never fails the job.

    Each response, including a failure, is written to the checkpoint before it is used (jobs/blocks/calls/journal.py). So a replayed
    micro-batch continues with the same responses and repeats no call, and everything downstream may be exactly-once and stateful. If the
    process dies during a call, or within a second after its response, the outcome is unknown: the call is repeated with the same key,
    and the other system must recognise the key if a repeated call would do harm.

    A plain function gets a thread per concurrent call; one that can hang needs a timeout of its own, because a thread cannot be ended.
    The function may be an object: a context manager (asynchronous if its calls are) is entered once per task before the first call,
    where it opens its client, and left at the end.

    Args:
        stream: the rows.
        function: ``(row, key) -> response``; it must be importable by tasks or picklable.
        name: of the calls, a lower-case name unique within the app; used by the journal and in reasons.
        key: the idempotency key: a SQL expression or a column; that of a record (``job.source(..., record="record")``) is its topic,
            partition and offset. Rows of one task and micro-batch with the same key share one call.
        result: the response's fields as Spark DDL, ``limit DOUBLE NOT NULL, note STRING``; a response without a NOT NULL field has
            failed. They are added to the row's.
        capacity: concurrent calls of a task.
        timeout: of one attempt.
        attempts: before a call has failed.
        backoff: the delay before the second attempt; it doubles, up to 30 s.
        ordered: whether a task's rows keep their order; without it a slow call delays no other.

    Returns:
        The stream's fields and the result's.

    Raises:
        ValueError: an invalid name, number or duration, or a field of the result that the stream already has.
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
    frame = _answered(keyed.mapInArrow(task, out), name, stream.fields)
    return replace(stream, frame=with_event_time(frame) if stream.timed else frame)


def _answered(frame: DataFrame, name: str, fields: Sequence[str]) -> DataFrame:
    """The rows whose call has a response; those whose call has failed go to its side output."""
    row = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"}).cast("binary")
    reason = F.concat(F.lit(f"{name} "), FAILURE)
    return kept(frame, F.col(FAILURE).isNull(), Tag.FAILED, reason, record(F.lit(name), row)).drop(FAILURE)


def _key(frame: DataFrame, key: str | Column) -> Column:
    column = as_column(key)
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

    # NOT NULL applies to responses; a row without a response has nulls all the same.
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
