"""Keyed functions without a session: in Spark's own tester of stateful processors, which keeps state and timers in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.function import KeyedFunction
from penstock.jobs.blocks.keyed.plan import MOMENT, SIDE_ROW, Order, Plan, Time
from penstock.jobs.blocks.keyed.processor import Processor
from penstock.jobs.stream.side_outputs import REASON, TAG
from penstock.jobs.stream.streams import TIME

KEY = "k"


class Ran:
    """Runs a function on one key, with rows of fields and a time in milliseconds."""

    def __init__(
        self,
        function: KeyedFunction,
        fields: Mapping[str, DataType],
        output: Mapping[str, DataType],
        states: Mapping[str, TypedState],
        *,
        time: Time | None = "event",
        order: Order = "arrival",
        ttl_ms: int | None = None,
    ) -> None:
        self._fields = [KEY, *fields]
        # Rows that are held back have their content as a number.
        self._order = {"_order_0": LongType()} if order == "time" else {}
        types = {KEY: StringType(), **fields, TIME: LongType(), **self._order}
        self._row = Row(*types)
        plan = Plan((KEY,), _struct(types), _struct(output), function, states, time, order, ttl_ms)
        mode = {"event": "EventTime", "processing": "ProcessingTime", None: "None"}[time]
        self.tester = TwsTester(Processor(plan), timeMode=mode, eventTimeExtractor=lambda row: row[TIME] // 1000)
        self.out: list[dict[str, Any]] = []

    def rows(self, *rows: tuple[int, Mapping[str, Any]]) -> Ran:
        """A micro-batch: rows as (time in ms, fields)."""
        made = [
            self._row(*[{KEY: "one", **fields}[name] for name in self._fields], time * 1000, *[fields.get("n", 0) for _ in self._order])
            for time, fields in rows
        ]
        self._take(self.tester.test("one", made))
        return self

    def released(self, watermark_ms: int, *rows: tuple[int, Mapping[str, Any]]) -> Ran:
        """A micro-batch that begins with a watermark, and with rows of an upstream operator that the watermark has passed."""
        tester = self.tester
        tester._currentWatermarkMs, extractor, tester._eventTimeExtractor = (
            watermark_ms,
            tester._eventTimeExtractor,
            lambda _: watermark_ms + 1,
        )
        self.rows(*rows)
        tester._eventTimeExtractor = extractor
        return self

    def watermark(self, ms: int) -> Ran:
        """Advances the watermark to a time."""
        self._take(self.tester.setWatermark(ms))
        return self

    def clock(self, ms: int) -> Ran:
        """Advances the micro-batch's clock to a time."""
        self._take(self.tester.setProcessingTime(ms))
        return self

    @property
    def timers(self) -> list[int]:
        """The timer that Spark is requested to set for the key."""
        return sorted(self.tester.handle._timers.listTimers("one"))

    def _take(self, rows: Any) -> None:
        own = {TAG, REASON, MOMENT, SIDE_ROW}
        self.out += [{**{k: v for k, v in row.asDict().items() if k not in own}, "at": row[MOMENT]} for row in rows]


def cut(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Items in chunks of these sizes, repeated."""
    chunks: list[list[Any]] = []
    rest, number = list(items), 0
    while rest:
        size = sizes[number % len(sizes)]
        chunks, rest, number = [*chunks, rest[:size]], rest[size:], number + 1
    return chunks


def _struct(types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, of) for name, of in types.items()])
