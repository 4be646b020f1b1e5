"""A function of one's own over the rows of a window: Flink's ProcessWindowFunction and WindowFunction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from penstock.jobs.blocks.windows.aggregation import all_rows, check, check_names, unfolded, whole_ms
from penstock.jobs.blocks.windows.kinds import END, START, Global, TimeWindow
from penstock.jobs.blocks.windows.ordered_rows import in_order_of_time
from penstock.jobs.stream.event_time.engine import with_one_event_time
from penstock.jobs.stream.streams import TIME, Stream

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WindowRows:
    """The rows of a key in one window.

    Args:
        key: the key's value, or those of its parts as a tuple; an empty tuple without keys.
        start: of the window, in UTC.
        end: of the window, exclusive.
        rows: in the order of their event times.
        times: the rows' event times, in UTC.
    """

    key: Any
    start: datetime
    end: datetime
    rows: list[Row]
    times: list[datetime]


def process_window(
    stream: Stream,
    window: TimeWindow | Global,
    function: Callable[[WindowRows], Iterable[Mapping[str, Any]]],
    *,
    output: str,
    keys: Sequence[str] = (),
) -> Stream:
    """Calls a function with all rows of a key and window, like Flink's ``window(...).process(...)`` and ``apply(...)``.

    It is called once for every key and window, when the current watermark has reached the window's end. State: the rows of every key
    and open window as lists; those of one key and window must fit in an executor's memory. Where an aggregate of Spark SQL is enough,
    `penstock.jobs.blocks.windows.aggregation.aggregate` keeps one row instead.

    Args:
        stream: rows with event time.
        window: `tumbling`, `sliding`, `session` or `cumulative`.
        function: takes `WindowRows` and returns rows as mappings; it must be deterministic, and importable by tasks or picklable.
        output: the rows' schema as Spark DDL, ``user STRING, median DOUBLE``.
        keys: names of fields; without keys there is one window for all rows, computed by a single task.

    Returns:
        ``window_start`` and ``window_end``, then the rows that the function returned. The event time is the window's end minus 1 µs.

    Raises:
        ValueError: no event time, an unknown key, a duplicate name, updates as input, or a window that is not one of time.
    """
    if isinstance(window, Global):
        raise ValueError("a window of counts or triggers has no end at which its rows are complete: use one of time, or `process`")
    check(stream, window, keys, {"_rows": 0}, "final")
    schema = StructType.fromDDL(output)
    assert isinstance(schema, StructType)
    check_names(stream, (), dict.fromkeys(schema.names), (START, END))
    data = replace(stream, frame=with_one_event_time(stream.frame))
    frame, column = window.assigned(data.frame.select(*keys, TIME, F.struct(*stream.fields).alias("_row")))
    # Spark's sessions require a key.
    grouping: Sequence[str | Column] = keys or ([all_rows()] if window.mergeable else [])
    grouped = frame.groupBy(*grouping, column.alias("_window")).agg(in_order_of_time("_row", frame.schema["_row"].dataType).alias("_rows"))
    call = F.udf(_Call(function, single=len(keys) == 1), ArrayType(schema), useArrow=False)
    results = call(_key(keys), F.unix_millis("_window.start"), whole_ms(F.col("_window.end")), _timed("_rows"))
    rows = grouped.select("_window", F.explode(results).alias("_result")).select("_window", "_result.*")
    return Stream(unfolded(rows, (), schema.names), timed=True)


def _key(keys: Sequence[str]) -> Column:
    if len(keys) == 1:
        return F.col(keys[0])
    return F.struct(*keys) if keys else F.lit(None)


def _timed(rows: str) -> Column:
    """The rows with their times in microseconds: Spark hands timestamps to Python in the time zone of the machine."""
    return F.transform(rows, lambda one: F.struct(F.unix_micros(one.at).alias("at_us"), one.row.alias("row")))


@dataclass(frozen=True)
class _Call:
    """The function in the form that Spark calls."""

    function: Callable[[WindowRows], Iterable[Mapping[str, Any]]]
    single: bool

    def __call__(self, key: Any, start_ms: int, end_ms: int, rows: list[Row]) -> list[Mapping[str, Any]]:
        start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in (start_ms, end_ms))
        times = [_EPOCH + timedelta(microseconds=one.at_us) for one in rows]
        return list(self.function(WindowRows(key if self.single else tuple(key or ()), start, end, [one.row for one in rows], times)))
