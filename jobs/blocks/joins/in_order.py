"""Rows of one or two streams, processed key by key in the order of their event times.

Micro-batch boundaries are arbitrary. So rows wait in the state until the watermark has passed their event time, when no row as old can
arrive any more, and are then processed from the oldest to the newest: the result does not depend on the boundaries.

Rows are stored as JSON, which Python does not have to parse: types that Python and Spark represent differently pass unchanged, and a
field that is added later is null in rows stored before. A value that no longer fits its field fails the job.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from penstock.jobs.blocks.joins.sides import Side, deleted
from penstock.jobs.blocks.keyed.backend import needs_rocksdb
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import with_one_event_time
from penstock.jobs.stream.streams import TIME

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

LEFT, RIGHT = 0, 1
_WAITING = "at_us bigint, side int, rank bigint, gone boolean, id string, row string"
# Exact to the microsecond, as Spark's timestamps are.
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}


class Arrival(NamedTuple):
    """A row waiting in the state; rows sort in processing order.

    Args:
        at_us: event time in epoch microseconds.
        side: `LEFT` or `RIGHT`.
        rank: its place among rows with the same event time.
        gone: whether it deletes what its id identifies.
        id: its identity within its key; null never matches.
        row: its fields as JSON.
    """

    at_us: int
    side: int
    rank: int
    gone: bool
    id: str | None
    row: str


class InOrder(StatefulProcessor):
    """The processor that Spark calls for the rows of a key; a block defines what it does with them."""

    # Which side comes first if both have rows with the same event time.
    first = LEFT

    @abstractmethod
    def open(self, handle: StatefulProcessorHandle) -> None:
        """Declares the block's own state."""

    @abstractmethod
    def step(self, group: str | None, arrivals: list[Arrival], watermark_ms: int) -> Iterator[Row]:
        """Processes the rows of a key that are due, from the oldest to the newest; with no rows if only a requested time is due."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before all others."""
        self._handle = handle
        self._waiting = handle.getListState("waiting", _WAITING)
        self.open(handle)

    def wake(self, at_us: int) -> None:
        """Requests a `step` once the watermark has passed a time."""
        self._handle.registerTimer(at_us // 1000)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Called by Spark with the key's rows of a micro-batch."""
        arrived = [Arrival(row["_us"], row["_side"], row["_rank"], row["_gone"], row["_id"], row["_row"]) for row in rows]
        if arrived:
            self._waiting.appendList([tuple(arrival) for arrival in arrived])
            self.wake(min(arrival.at_us for arrival in arrived))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:  # noqa: N802, N803
        """Called by Spark once the watermark has passed a requested time."""
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        due: list[Arrival] = []
        rest: list[Arrival] = []
        for stored in self._waiting.get():
            arrival = Arrival(*stored)
            (due if arrival.at_us // 1000 <= watermark_ms else rest).append(arrival)
        if due:
            self._keep(rest)
        yield from self.step(key[0], sorted(due, key=self._place), watermark_ms)

    def close(self) -> None:
        """Called by Spark after all others."""

    def _keep(self, rest: list[Arrival]) -> None:
        if not rest:
            self._waiting.clear()
            return
        self._waiting.put([tuple(arrival) for arrival in rest])
        self.wake(min(arrival.at_us for arrival in rest))

    def _place(self, arrival: Arrival) -> tuple[int, bool, int, bool, str, str]:
        # The text last: otherwise unordered rows are still processed in one order, also on a replay.
        return arrival.at_us, arrival.side != self.first, arrival.rank, not arrival.gone, arrival.id or "", arrival.row


def packed(side: Side, number: int, group: Column, id: Column, *, gone: Column | None = None) -> DataFrame:
    """A side's data in the form that `InOrder` expects.

    Args:
        side: whose rows.
        number: `LEFT` or `RIGHT`.
        group: the grouping key, as text.
        id: a row's identity within its group, as text.
        gone: whether a row deletes; by default its deletion mark.
    """
    rank = F.lit(0).cast("bigint") if side.order is None else as_column(side.order).cast("bigint")
    return with_one_event_time(side.stream.frame).select(
        group.alias("_group"),
        F.lit(number).alias("_side"),
        F.unix_micros(TIME).alias("_us"),
        F.coalesce(rank, F.lit(0)).alias("_rank"),
        (deleted(side.stream) if gone is None else gone).alias("_gone"),
        id.alias("_id"),
        as_text(F.struct(*side.fields), side.schema, side.name).alias("_row"),
        TIME,
    )


def run(rows: DataFrame, processor: InOrder, output: str) -> DataFrame:
    """The output of a processor over packed rows, group by group.

    Raises:
        ValueError: a state backend other than RocksDB.
    """
    needs_rocksdb(rows.sparkSession, "temporal, regular and broadcast joins")
    return rows.groupBy("_group").transformWithState(
        statefulProcessor=processor, outputStructType=output, outputMode="append", timeMode="EventTime"
    )


def as_text(column: Column, of: DataType, name: str) -> Column:
    """A struct as JSON.

    Raises:
        ValueError: it has maps with non-string keys, which JSON cannot represent.
    """
    if _odd_map(of):
        raise ValueError(f"{name} contains a map with keys that are not STRING; convert it to an array of structs")
    return F.to_json(column, _JSON)


def from_text(column: Column, of: StructType) -> Column:
    """The struct parsed back."""
    return F.from_json(column, of, {**_JSON, "mode": "FAILFAST"})


def key_text(side: Side, fields: Iterable[str]) -> Column:
    """Several fields as one text that is unique for their values; null if one of them is."""
    wanted, schema = list(fields), side.stream.frame.schema
    if len(wanted) == 1 and not isinstance(schema[wanted[0]].dataType, StructType | ArrayType | MapType | BinaryType):
        return F.col(wanted[0]).cast("string")
    parts = StructType([schema[name] for name in wanted])
    text = as_text(F.struct(*(F.col(name).alias(f"k{number}") for number, name in enumerate(wanted))), parts, side.name)
    complete = F.lit(True)
    for name in wanted:
        complete &= F.col(name).isNotNull()
    return F.when(complete, text)


def _odd_map(of: DataType) -> bool:
    if isinstance(of, MapType):
        return not isinstance(of.keyType, StringType) or _odd_map(of.valueType)
    if isinstance(of, ArrayType):
        return _odd_map(of.elementType)
    return isinstance(of, StructType) and any(_odd_map(field.dataType) for field in of.fields)
