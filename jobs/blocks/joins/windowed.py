"""Window join and co-group: the rows of two sides with the same key in the same window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

from penstock.jobs.blocks.joins.sides import How, Side, check, check_how, without_partner
from penstock.jobs.blocks.windows.aggregation import whole_ms
from penstock.jobs.blocks.windows.kinds import END, START, TimeWindow
from penstock.jobs.blocks.windows.ordered_rows import in_order_of_time
from penstock.jobs.stream.event_time.engine import as_event_time, with_one_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import TIME, Stream, Tag

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Group:
    """The rows of both sides with one key in one window.

    Args:
        key: the key's value, or those of its parts as a tuple.
        start: of the window, in UTC.
        end: of the window, exclusive.
        left: rows of the left side in the order of their event times.
        right: rows of the right side likewise.
    """

    key: Any
    start: datetime
    end: datetime
    left: list[Row]
    right: list[Row]


def window_join(left: Side, right: Side, window: TimeWindow, *, how: How = "inner") -> Stream:
    """Joins every left row of a window with every right row with the same key in it, like Flink's ``join(...).window(...)``.

    A window's pairs are emitted once, when the current watermark has reached its end. With `session` windows the rows of both sides
    together form the session. A row without a match in its window is data with nulls on the other side (``left``: left rows; ``full``:
    both), otherwise counted as unmatched.

    State: the rows of every key and open window as lists; the rows of one key and window must fit in an executor's memory together with
    their pairs.

    Args:
        left: one side.
        right: the other.
        window: one of `penstock.jobs.blocks.windows`.
        how: ``inner``, ``left`` or ``full``.

    Returns:
        The columns `left.name` and `right.name`, each a struct of that side's fields, ``window_start`` and ``window_end``. The event
        time is the last instant before the window's end.

    Raises:
        ValueError: a side without event time, or incompatible sides.
    """
    check_how(how, ("inner", "left", "full"))
    grouped = _grouped(left, right, window)
    pairs = grouped.select(
        "_window", F.explode(_pairs(grouped.schema["_lefts"].dataType, grouped.schema["_rights"].dataType)).alias("_pair")
    )
    one, other = F.col("_pair.one"), F.col("_pair.other")
    alone = {"inner": one.isNull() | other.isNull(), "left": one.isNull(), "full": F.lit(False)}[how]
    if how != "full":
        pairs = kept(pairs, ~alone, Tag.UNMATCHED)
    return _stream(pairs, [one.row.alias(left.name), other.row.alias(right.name)], left, right)


def co_group(
    left: Side, right: Side, window: TimeWindow, function: Callable[[Group], Iterable[Mapping[str, Any]]], *, output: str
) -> Stream:
    """Calls a function with all rows of a key and window, both sides together, like Flink's ``coGroup(...).window(...)``.

    It is called once for every key and window with a row on either side, when the current watermark has reached the window's end; rows
    without a key are counted as unmatched. State as for `window_join`.

    Args:
        left: one side.
        right: the other.
        window: one of `penstock.jobs.blocks.windows`.
        function: takes a `Group` and returns rows as mappings; it must be deterministic, and importable by tasks or picklable.
        output: the rows' schema as Spark DDL, ``user STRING, visits BIGINT``.

    Returns:
        The rows, ``window_start`` and ``window_end``. The event time is the last instant before the window's end.

    Raises:
        ValueError: a side without event time, or incompatible sides.
    """
    left, right = (Side(side.name, without_partner(side), side.key) for side in (left, right))
    schema = StructType.fromDDL(output)
    assert isinstance(schema, StructType)
    grouped = _grouped(left, right, window)
    call = F.udf(_Call(function, single=len(left.keys) == 1), ArrayType(schema), useArrow=False)
    rows = call("_key", F.unix_millis("_window.start"), whole_ms(F.col("_window.end")), "_lefts", "_rights")
    results = grouped.select("_window", F.explode(rows).alias("_row"))
    return _stream(results, [F.col("_row")[name].alias(name) for name in schema.names], left, right)


@dataclass(frozen=True)
class _Call:
    """The function in the form that Spark calls."""

    function: Callable[[Group], Iterable[Mapping[str, Any]]]
    single: bool

    def __call__(self, key: Any, start_ms: int, end_ms: int, left: list[Row], right: list[Row]) -> list[Mapping[str, Any]]:
        start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in (start_ms, end_ms))
        group = Group(key if self.single else tuple(key), start, end, [one.row for one in left], [one.row for one in right])
        return list(self.function(group))


def _grouped(left: Side, right: Side, window: TimeWindow) -> DataFrame:
    """Rows of ``_key``, ``_window`` and the ordered lists ``_lefts`` and ``_rights`` of structs of time and row."""
    check(left, right)
    one, other = (with_one_event_time(side.stream.frame) for side in (left, right))
    rows = _packed(one, left, right, is_left=True).unionByName(_packed(other, right, left, is_left=False))
    frame, column = window.assigned(rows)
    lists = [in_order_of_time(name, frame.schema[name].dataType).alias(f"{name}s") for name in ("_left", "_right")]
    return frame.groupBy("_key", column.alias("_window")).agg(*lists)


def _packed(frame: DataFrame, side: Side, other: Side, *, is_left: bool) -> DataFrame:
    row, nothing = F.struct(*side.fields), F.lit(None).cast(other.schema)
    left, right = (row, nothing) if is_left else (nothing, row)
    return frame.select(side.key_column().alias("_key"), TIME, left.alias("_left"), right.alias("_right"))


def _pairs(left: DataType, right: DataType) -> Column:
    """All pairs of a group, and each row without a match with a null; nulls in the key never match."""
    assert isinstance(left, ArrayType) and isinstance(right, ArrayType)
    lefts, rights, keyed = F.col("_lefts"), F.col("_rights"), F.col("_key").isNotNull()
    no_one, no_other = F.lit(None).cast(left.elementType), F.lit(None).cast(right.elementType)

    def pair(one: Column, other: Column) -> Column:
        return F.struct(one.alias("one"), other.alias("other"))

    none = F.array().cast(ArrayType(StructType().add("one", left.elementType).add("other", right.elementType)))
    joined = F.flatten(F.transform(lefts, lambda one: F.transform(rights, lambda other: pair(one, other))))
    left_alone = F.transform(lefts, lambda one: pair(one, no_other))
    right_alone = F.transform(rights, lambda other: pair(no_one, other))
    return F.concat(
        F.when(keyed, joined).otherwise(none),
        F.when(~keyed | (F.size(rights) == 0), left_alone).otherwise(none),
        F.when(~keyed | (F.size(lefts) == 0), right_alone).otherwise(none),
    )


def _stream(frame: DataFrame, columns: list[Column], left: Side, right: Side) -> Stream:
    start, end = F.col("_window").start, F.timestamp_millis(whole_ms(F.col("_window").end))
    # A microsecond, not a millisecond: the watermark of the previous micro-batch may be a millisecond before the window's end, and Spark's
    # stateful operators drop rows as old as that. Rounded to milliseconds it is the same.
    time = as_event_time(end - F.expr("interval 1 microsecond"), TIME)
    rows = frame.select(*columns, start.alias(START), end.alias(END), time)
    return Stream(rows, timed=True)
