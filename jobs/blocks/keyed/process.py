"""Keyed functions with state, timers and time to live: Flink's KeyedProcessFunction, on Spark's transformWithState."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from penstock.jobs.blocks.keyed.backend import TTL_CONF, needs_rocksdb
from penstock.jobs.blocks.keyed.content import content_hash
from penstock.jobs.blocks.keyed.declared import State, fields_of, typed
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction, OfRows, Out
from penstock.jobs.blocks.keyed.plan import MOMENT, ORDER_PREFIX, SIDE_ROW, Order, Plan, Time
from penstock.jobs.blocks.keyed.processor import Processor
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import as_event_time, with_one_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.side_outputs import REASON, TAG
from penstock.jobs.stream.state_schemas import DECLARED_KEY
from penstock.jobs.stream.streams import TIME, Stream, Tag, record
from penstock.sizing.units import NotAQuantity, duration_ms

# Besides the fields of the output.
_OWN = [
    StructField(TAG, StringType()),
    StructField(REASON, StringType()),
    StructField(MOMENT, LongType()),
    StructField(SIDE_ROW, StringType()),
]
# Spark's timeMode for each of ours.
_TIME_MODES: dict[Time | None, str] = {"event": "EventTime", "processing": "ProcessingTime", None: "None"}


def process(
    stream: Stream,
    keys: Sequence[str],
    function: KeyedFunction | Callable[[Row, Key], Out],
    *,
    output: str | StructType,
    state: Mapping[str, State] | None = None,
    ttl: str | None = "spec",
    time: Time | None = None,
    order: Order = "arrival",
    tie: Sequence[str | Column] = (),
    updates: bool = False,
) -> Stream:
    """Runs a function on each row, with state and timers per key.

    Rows of a key are processed one after another, those of a micro-batch by event time, then by `tie`, then by content: so a replay
    produces the same rows, and sinks stay exactly-once. The function's output has the event time of its row or timer.

    With ``order="time"`` rows are held back until the watermark has passed them, and rows and timers are processed in the order of event
    time, whatever the micro-batch boundaries, as in Flink's CEP library. The result is then delayed by the out-of-orderness.

    An event-time timer fires once no row as old can arrive any more, before any row of the micro-batch that observed that; a
    processing-time timer fires in the first micro-batch whose own timestamp has reached it (a micro-batch then runs at every trigger,
    with or without rows). Spark supports one of the two per operator (``docs/decisions/0021-keyed-state.md``).

    State is kept in RocksDB. With a time to live it expires that long after its last write, by event time or by the clock, depending on
    `time`; list elements and map entries expire individually.

    Cost: each row passes through Python; all rows that a key has in one micro-batch are in memory at once.

    Args:
        stream: the rows.
        keys: key columns; no timestamps.
        function: an object of a class with ``on_row`` and ``on_timer``, or a function of a row and its key if there are no timers.
        output: the fields that the function returns, ``user string, n bigint``; one named like a key column is filled in if it is left
            out.
        state: name -> state declared by `penstock.jobs.blocks.keyed.declared.value`, ``list_of`` and ``map_of``. The names are the
            state's uids.
        ttl: time to live, such as ``7d``; None: forever; ``"spec"``: the spec's ``state.ttl``.
        time: what timers and time to live are based on; by default event time if the stream has it, otherwise the clock if there is a
            ttl.
        order: ``arrival``: rows as their micro-batches deliver them; ``time``: by event time.
        tie: SQL expressions or columns that order rows with the same event time, such as ``r.offset``.
        updates: whether an output row replaces the previous one with the same key.

    Returns:
        A stream of the output's fields; its rows have event time unless `time` is the clock.

    Raises:
        ValueError: unknown columns, a timestamp as a key, invalid types or durations, event time for a stream without, a stream of
            updates, or a state backend other than RocksDB.
    """
    lives_by, lifetime_ms = _time(stream, ttl, time), ttl_ms(stream, ttl)
    frame = _ordered(stream, keys, tie, order)
    plan = Plan(
        keys=tuple(keys),
        rows=frame.schema,
        output=fields_of(output),
        function=function if isinstance(function, KeyedFunction) else OfRows(function),
        states=typed(state or {}),
        time=lives_by,
        order=order,
        ttl_ms=lifetime_ms if lives_by and state else None,
    )
    _check(stream, plan)
    out = frame.groupBy(*keys).transformWithState(
        statefulProcessor=Processor(plan),
        outputStructType=StructType([*_nullable(plan.output), *_own(plan)]),
        outputMode="Update" if updates else "Append",
        timeMode=_TIME_MODES[lives_by],
    )
    return replace(_stream(out, timed=lives_by == "event"), updates=updates)


def _own(plan: Plan) -> list[StructField]:
    """The columns besides the output's. The first one shows Spark's plan what is kept, see `penstock.jobs.stream.state_schemas`."""
    declared = {name: state.described for name, state in plan.kept.items()}
    return [StructField(_OWN[0].name, _OWN[0].dataType, metadata={DECLARED_KEY: json.dumps(declared)}), *_OWN[1:]]


def ttl_ms(stream: Stream, ttl: str | None) -> int | None:
    """A time to live in milliseconds; the spec's if it is ``"spec"``.

    Raises:
        ValueError: not a duration.
    """
    if ttl == "spec":
        setting = _session(stream).conf.get(TTL_CONF, None)
        return None if setting is None else int(setting)
    try:
        return None if ttl is None else duration_ms(ttl)
    except NotAQuantity as error:
        raise ValueError(f'ttl = "{ttl}": expected {error.need}') from None


def _time(stream: Stream, ttl: str | None, asked: Time | None) -> Time | None:
    if asked == "event" and not stream.timed:
        raise ValueError('time="event", but the stream has no event time; set `time` of its source in the spec')
    if asked is None and not stream.timed:
        return None if ttl_ms(stream, ttl) is None else "processing"
    return asked or "event"


def _ordered(stream: Stream, keys: Sequence[str], tie: Sequence[str | Column], order: Order) -> DataFrame:
    """The stream's data with the event time and the ordering columns.

    The time is a number, for a worker takes three microseconds more for each timestamp. Rows that are held back have a hash of their
    content in the state too; others are compared in the worker, where their time and `tie` are equal.
    """
    missing = [name for name in keys if name not in stream.fields]
    if missing or not keys:
        raise ValueError(f"keys = {list(keys)}: must be columns of the stream, {', '.join(stream.fields)}")
    data = with_one_event_time(stream.frame)
    ordering = [*map(as_column, tie), *([content_hash(data, stream.fields)] if order == "time" else [])]
    numbered = [column.alias(f"{ORDER_PREFIX}{number}") for number, column in enumerate(ordering)]
    return data.select(*stream.fields, F.unix_micros(TIME).alias(TIME), *numbered)


def _check(stream: Stream, plan: Plan) -> None:
    stamps = [name for name in plan.keys if isinstance(plan.rows[name].dataType, TimestampType)]
    if stamps:
        raise ValueError(f"{', '.join(stamps)}: timestamps cannot be keys; use unix_millis of the column")
    if plan.order == "time" and plan.time != "event":
        raise ValueError('order="time" requires event time')
    if stream.updates:
        raise ValueError("the stream contains updates of earlier rows; a keyed function requires final rows")
    needs_rocksdb(_session(stream), "keyed functions")


def _stream(out: DataFrame, *, timed: bool) -> Stream:
    """The rows that the function has returned; those that it has given a tag go to their side output."""
    row = F.when(F.col(SIDE_ROW).isNotNull(), record(F.col(TAG), F.col(SIDE_ROW).cast("binary")))
    data = kept(out, F.col(TAG) == Tag.DATA, F.col(TAG), F.col(REASON), row)
    fields = [name for name in out.columns if name not in (TAG, REASON, MOMENT, SIDE_ROW)]
    moment = as_event_time(F.timestamp_millis(MOMENT), TIME) if timed else F.lit(None).cast("timestamp").alias(TIME)
    return Stream(data.select(*fields, moment), timed=timed)


def _nullable(fields: StructType) -> list[StructField]:
    """Side-output rows have none of the fields."""
    return [StructField(field.name, field.dataType, nullable=True) for field in fields.fields]


def _session(stream: Stream) -> SparkSession:
    return stream.frame.sparkSession
