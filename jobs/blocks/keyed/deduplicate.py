"""Deduplication."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyspark.sql import Row
from pyspark.sql import functions as F

from penstock.jobs.blocks.keyed.connect import Keyed, _types
from penstock.jobs.blocks.keyed.declared import value
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction
from penstock.jobs.blocks.keyed.process import process
from penstock.jobs.stream.event_time.engine import as_event_time, with_event_time, with_one_event_time
from penstock.jobs.stream.leaving import Passed, counted
from penstock.jobs.stream.streams import TIME, Stream, Tag
from penstock.sizing.units import NotAQuantity, duration_ms

Keep = Literal["any", "first"]
# Rows before and after an operator that drops duplicates; micro-batches count the difference as filtered.
_BEFORE, _AFTER = "before deduplication ", "after deduplication "
_OPERATORS = itertools.count()


def deduplicate(stream: Stream, keys: Sequence[str], *, within: str, keep: Keep = "any") -> Stream:
    """Passes one row per key; further rows within a time of it are duplicates, counted as filtered.

    ``any``: Spark's own operator. Rows with the same key must be identical, because which of them passes is unspecified. The first to
    arrive passes; its key is forgotten once the watermark has passed its event time plus `within`, so a duplicate at most that much
    later never passes, and one beyond it does if the watermark has advanced that far.

    ``first``: the row with the earliest event time passes, whatever the micro-batch boundaries, and a row is a duplicate if it is less
    than `within` younger than the one that passed. Rows are emitted when the watermark has passed them, and go through Python.

    Cost: a key's state lives for `within` plus the out-of-orderness.

    Args:
        stream: rows with event time.
        keys: columns that identify duplicates.
        within: such as ``10m``.
        keep: which of the rows passes.

    Raises:
        ValueError: no event time, unknown columns, not a duration, or a stream of updates.
    """
    within_ms = _duration(within)
    if not stream.timed:
        raise ValueError("the stream has no event time; set `time` of its source in the spec")
    if keep == "first":
        fields = _types(Keyed(stream, keys))
        first = _First(within_ms)
        return process(stream, keys, first, output=fields, state={"passed_ms": value("bigint")}, ttl=within, order="time")
    missing = [name for name in keys if name not in stream.fields]
    if missing or not keys:
        raise ValueError(f"keys = {list(keys)}: must be columns of the stream, {', '.join(stream.fields)}")
    if stream.updates:
        raise ValueError("the stream contains updates of earlier rows, which would all be duplicates")
    number = next(_OPERATORS)
    data = counted(with_one_event_time(stream.frame), f"{_BEFORE}{number}")
    # Spark adds the delay in the time column's metadata to the first row's time.
    once = data.withColumn(TIME, as_event_time(F.col(TIME), TIME, delay_ms=within_ms)).dropDuplicatesWithinWatermark(list(keys))
    return replace(stream, frame=counted(with_event_time(once), f"{_AFTER}{number}"))


def dropped(passed: Passed) -> int:
    """Number of duplicates that Spark has dropped in a micro-batch."""
    rows = {name: count for name, count in passed.rows.items() if name.startswith((_BEFORE, _AFTER))}
    return sum(-count if name.startswith(_AFTER) else count for name, count in rows.items())


@dataclass(frozen=True)
class _First(KeyedFunction):
    within_ms: int

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        if key.value("passed_ms").get() is not None:
            key.side_output(Tag.FILTERED, "a duplicate", {})
            return
        key.value("passed_ms").set(key.time_ms)
        yield row.asDict()


def _duration(text: str) -> int:
    try:
        return duration_ms(text)
    except NotAQuantity as error:
        raise ValueError(f'within = "{text}": expected {error.need}') from None
