"""Windows with a trigger: after a number of rows, or each time event time has passed a boundary."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import LongType, StructField, StructType

from penstock.jobs.blocks.keyed.backend import needs_rocksdb
from penstock.jobs.blocks.keyed.content import content_hash
from penstock.jobs.blocks.windows.calls import FOLDABLE, calls
from penstock.jobs.blocks.windows.kinds import Global
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import as_event_time
from penstock.jobs.stream.streams import TIME, Stream

NUMBER = "window_number"
# Decimal's default of 28 digits is less than Spark's 38.
_DIGITS = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP)
# Precede a row's arguments: its event time in epoch milliseconds, and a tie-breaker that is the same in every run.
_MS, _ORDER = "_ms", "_order"


def fired(data: Stream, window: Global, keys: Sequence[str], aggregates: Mapping[str, str | Column]) -> Stream:
    """The results of a window with a trigger.

    Args:
        data: rows, all of them data.
        window: with a trigger.
        keys: names of fields.
        aggregates: name -> SQL text or a column.

    Raises:
        ValueError: an aggregate that cannot be updated row by row, or a state backend other than RocksDB.
    """
    needs_rocksdb(data.frame.sparkSession, "windows with a trigger")
    folded = calls(aggregates, FOLDABLE)
    frame = data.frame
    arguments = [as_column(call.argument).alias(f"_a{number}") for number, call in enumerate(folded)]
    time_ms = F.unix_millis(TIME) if data.timed else F.lit(0).cast("bigint")
    grouping = list(keys) or ["_all"]
    columns = [*(F.col(key) for key in keys)] or [F.lit(0).alias("_all")]
    rows = frame.select(*columns, TIME, time_ms.alias(_MS), content_hash(frame, data.fields).alias(_ORDER), *arguments)
    parts = [(StructField(call.value, call.value_type(frame)), StructField(call.count, LongType())) for call in folded]
    fields = [field for pair in parts for field in pair]
    out = StructType([*(rows.schema[name] for name in grouping), StructField(NUMBER, LongType()), StructField(_MS, LongType()), *fields])
    plan = _Plan(
        window=window,
        timed=data.timed,
        functions=tuple(call.function for call in folded),
        result=tuple(out.names),
        row=StructType([rows.schema[_MS], rows.schema[_ORDER], *(rows.schema[f"_a{number}"] for number in range(len(folded)))]),
        folded=StructType([*(StructField(name, LongType()) for name in ("number", "rows", "last_ms")), *fields]),
    )
    results = rows.groupBy(*grouping).transformWithState(_Firing(plan), out, "append", "EventTime" if data.timed else "None")
    whole = (call.put_together(call.result_type(frame)) for call in folded)
    time = F.timestamp_millis(_MS) if data.timed else F.lit(None).cast("timestamp")
    return replace(data, frame=results.select(*keys, NUMBER, *whole, as_event_time(time, TIME)))


@dataclass(frozen=True)
class _Plan:
    """What is sent to the Python workers.

    Args:
        window: with a trigger.
        timed: whether rows wait for the watermark.
        functions: of each aggregate.
        result: names of a result's columns.
        row: what is kept of a row.
        folded: a key's state: results emitted, rows since the last, event time of the last row, and both partial results of each
            aggregate.
    """

    window: Global
    timed: bool
    functions: tuple[str, ...]
    result: tuple[str, ...]
    row: StructType
    folded: StructType


@dataclass
class _State:
    number: int
    rows: int
    last_ms: int
    parts: list[Any]


class _Firing(StatefulProcessor):
    """Keeps the rows of a key until the watermark has passed them, then folds them in order and emits results as the trigger says."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._result: Any = Row(*plan.result)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._folded = handle.getValueState("folded", self._plan.folded)
        if self._plan.timed:
            self._waiting = handle.getListState("waiting", self._plan.row)
        if self._plan.window.last is not None:
            self._kept = handle.getListState("kept", self._plan.row)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:  # noqa: N802, N803
        names = self._plan.row.names
        came = [tuple(row[name] for name in names) for row in rows]
        if not self._plan.timed:
            yield from self._take(key, came)
        elif came:
            self._waiting.appendList(came)
            # A row is processed when the watermark has passed its time: until then an earlier one may arrive.
            self._handle.registerTimer(min(row[0] for row in came))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Any]:
        now_ms = timerValues.getCurrentWatermarkInMs()
        waiting = list(self._waiting.get())
        due, left = [row for row in waiting if row[0] <= now_ms], [row for row in waiting if row[0] > now_ms]
        if due:
            self._waiting.clear()
            if left:
                self._waiting.appendList(left)
                self._handle.registerTimer(min(row[0] for row in left))
        yield from self._take(key, due, now_ms)

    def close(self) -> None:
        pass

    def _take(self, key: Any, rows: list[tuple[Any, ...]], now_ms: int = 0) -> Iterator[Row]:
        """Folds rows and emits the results that they trigger; then the one whose boundary event time has passed."""
        state = self._load()
        kept = list(self._kept.get()) if self._plan.window.last is not None else []
        for row in sorted(rows, key=lambda row: row[:2]):
            if self._passed(state, row[0]):
                yield self._emitted(key, state, kept)
            kept = self._fold(state, kept, row)
            if state.rows == self._plan.window.rows:
                yield self._emitted(key, state, kept)
        # Timers fire one late: when the watermark is at 1 ms more than `now_ms`, no earlier row can arrive.
        if self._passed(state, now_ms + 1):
            yield self._emitted(key, state, kept)
        self._save(state, kept)

    def _passed(self, state: _State, time_ms: int) -> bool:
        return self._plan.window.every_ms is not None and state.rows > 0 and time_ms >= self._border_ms(state)

    def _border_ms(self, state: _State) -> int:
        every_ms = self._plan.window.every_ms or 1
        return state.last_ms // every_ms * every_ms + every_ms

    def _fold(self, state: _State, kept: list[tuple[Any, ...]], row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        last = self._plan.window.last
        if last is None:
            _fold(self._plan.functions, state.parts, row[2:])
        else:
            kept = [*kept, row][-last:]
        state.rows += 1
        state.last_ms = row[0]
        return kept

    def _emitted(self, key: Any, state: _State, kept: Iterable[tuple[Any, ...]]) -> Row:
        window = self._plan.window
        parts = state.parts
        if window.last is not None:
            parts = self._empty()
            for row in kept:
                _fold(self._plan.functions, parts, row[2:])
        state.number += 1
        state.rows = 0
        time_ms = state.last_ms if window.every_ms is None else self._border_ms(state) - 1
        result: Row = self._result(*key, state.number, time_ms, *parts)
        if window.purge:
            state.parts = self._empty()
        return result

    def _empty(self) -> list[Any]:
        return [part for _ in self._plan.functions for part in (None, 0)]

    def _load(self) -> _State:
        stored = self._folded.get() if self._folded.exists() else None
        if stored is None:
            return _State(0, 0, 0, self._empty())
        return _State(stored[0], stored[1], stored[2], list(stored[3:]))

    def _save(self, state: _State, kept: list[tuple[Any, ...]]) -> None:
        # Kept forever, even after a purge: the key's next result has the next number.
        self._folded.update((state.number, state.rows, state.last_ms, *state.parts))
        if self._plan.window.last is not None and kept:
            self._kept.put(kept)
        if self._plan.window.every_ms is not None and state.rows:
            self._handle.registerTimer(self._border_ms(state) - 1)


def _fold(functions: Sequence[str], parts: list[Any], arguments: Sequence[Any]) -> None:
    """Adds one row to the two partial results of each aggregate, in place."""
    for number, (function, argument) in enumerate(zip(functions, arguments, strict=True)):
        value, count = parts[2 * number : 2 * number + 2]
        # First and last include nulls, as Spark's do.
        if argument is not None or function in ("first", "last"):
            parts[2 * number] = _joined(function, value, argument, count)
            parts[2 * number + 1] = count + 1


def _joined(function: str, value: Any, argument: Any, count: int) -> Any:
    if function == "count":
        return None
    if count == 0 or function == "last":
        return argument
    if function == "first":
        return value
    if function in ("min", "max"):
        return min(value, argument) if function == "min" else max(value, argument)
    return _DIGITS.add(value, argument) if isinstance(value, decimal.Decimal) else value + argument
