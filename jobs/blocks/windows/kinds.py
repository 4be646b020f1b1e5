"""The kinds of windows: which windows a row belongs to by its event time, and which are emitted by count or by a trigger.

Time windows start at whole multiples of their size (slide, maximum size) since 1970-01-01T00:00Z, shifted by the offset, as Flink's do.
A window includes its start and excludes its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.stream.event_time.engine import as_event_time
from penstock.jobs.stream.streams import TIME
from penstock.sizing.units import NotAQuantity, duration_ms, is_no_duration

# Columns of a result of a time window: its start, and its end, which is exclusive.
START, END = "window_start", "window_end"


class TimeWindow(Protocol):
    """A kind of window over event time."""

    @property
    def mergeable(self) -> bool:
        """Whether windows merge as rows arrive, so that a key's rows must be processed together."""
        ...

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """The DataFrame, with a row once per window, and the window as a column (struct of start and end) to group by."""
        ...


@dataclass(frozen=True)
class Tumbling:
    """See `tumbling`."""

    size_ms: int
    offset_ms: int = 0
    mergeable: bool = False

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        return frame, F.window(TIME, _spark(self.size_ms), startTime=_spark(self.offset_ms))


@dataclass(frozen=True)
class Sliding:
    """See `sliding`."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0
    mergeable: bool = False

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        return frame, F.window(TIME, _spark(self.size_ms), _spark(self.every_ms), _spark(self.offset_ms))


@dataclass(frozen=True)
class Session:
    """See `session`."""

    gap_ms: int
    mergeable: bool = True

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        # Spark merges two sessions if one starts as the other ends, unless that one has already been emitted. With a microsecond less, rows
        # a whole gap apart are never in one session, whatever the micro-batch boundaries.
        return frame, F.session_window(TIME, f"{self.gap_ms * 1000 - 1} microseconds")


@dataclass(frozen=True)
class Cumulative:
    """See `cumulative`."""

    size_ms: int
    step_ms: int
    offset_ms: int = 0
    mergeable: bool = False

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        time_ms = F.unix_millis(TIME)
        start = time_ms - F.pmod(time_ms - F.lit(self.offset_ms), F.lit(self.size_ms))
        first_end = start + F.floor((time_ms - start) / F.lit(self.step_ms)) * self.step_ms + self.step_ms
        ends = F.sequence(first_end, start + self.size_ms, F.lit(self.step_ms).cast("bigint"))
        windows = F.transform(ends, lambda end: F.struct(F.timestamp_millis(start).alias("start"), F.timestamp_millis(end).alias("end")))
        exploded = frame.withColumn("_windows", F.explode(windows))
        return exploded.withColumn("_window", as_event_time(F.col("_windows"), "_window")).drop("_windows"), F.col("_window")


@dataclass(frozen=True)
class Same:
    """See `same_window`."""

    mergeable: bool = False

    def assigned(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        """See `TimeWindow`."""
        window = F.struct(F.col(START).alias("start"), F.col(END).alias("end"))
        return frame.withColumn("_window", as_event_time(window, "_window")), F.col("_window")


@dataclass(frozen=True)
class Global:
    """See `global_window` and `count_window`.

    Args:
        rows: a result after this many rows of the key; None: not by count.
        every_ms: a result at each multiple of this event time; None: not by time.
        purge: whether a result's rows are dropped after it.
        last: how many of the latest rows a result covers; None: all.
    """

    rows: int | None = None
    every_ms: int | None = None
    purge: bool = False
    last: int | None = None

    @property
    def triggered(self) -> bool:
        """Whether it has a trigger."""
        return self.rows is not None or self.every_ms is not None


def tumbling(size: str, *, offset: str = "0") -> Tumbling:
    """Consecutive windows: each row is in exactly one.

    Args:
        size: of a window, such as ``5m``.
        offset: shifts the windows' start from whole multiples of their size, such as ``15m``; negative: earlier.

    Raises:
        ValueError: not a duration, or an offset that is not less than the size.
    """
    size_ms = _ms(size, "size")
    return Tumbling(size_ms, _offset(offset, size_ms))


def sliding(size: str, *, every: str, offset: str = "0") -> Sliding:
    """Overlapping windows: each row is in ``size / every`` of them.

    Args:
        size: of a window, such as ``10m``.
        every: the slide, such as ``1m``; at most the size.
        offset: as for `tumbling`.

    Raises:
        ValueError: not a duration, a slide greater than the size, or an offset that is not less than the slide.
    """
    size_ms, every_ms = _ms(size, "size"), _ms(every, "every")
    if every_ms > size_ms:
        raise ValueError(f"every = {every} is greater than size = {size}: rows between two windows would belong to none; filter them first")
    return Sliding(size_ms, every_ms, _offset(offset, every_ms))


def same_window() -> Same:
    """The window that the rows are from: that of an `aggregate`, `top` or `window_join` before, by ``window_start`` and ``window_end``.

    For an aggregate of aggregates, as Flink's ``GROUP BY window_start, window_end``: the greatest count of any page in each five minutes.
    """
    return Same()


def session(gap: str) -> Session:
    """Session windows: they extend as long as the key's rows are less than a gap apart; a session ends a gap after its last row.

    In Flink a row exactly a gap after another is in the same session if that one is still open; here it never is.

    Args:
        gap: such as ``30m``.

    Raises:
        ValueError: not a duration.
    """
    return Session(_ms(gap, "gap"))


def cumulative(size: str, *, step: str, offset: str = "0") -> Cumulative:
    """Windows with a common start that grow by a step up to their full size, then start over: each row is in all that end after it.

    Args:
        size: of the largest window, such as ``10m``.
        step: how much longer each is than the previous one, such as ``1m``; the size is a whole multiple of it.
        offset: as for `tumbling`.

    Raises:
        ValueError: not a duration, a size that is not a multiple of the step, or an offset that is not less than the size.
    """
    size_ms, step_ms = _ms(size, "size"), _ms(step, "step")
    if size_ms % step_ms:
        raise ValueError(f"size = {size} is not a multiple of step = {step}")
    return Cumulative(size_ms, step_ms, _offset(offset, size_ms))


def count_window(size: int, *, every: int | None = None) -> Global:
    """Windows of a number of rows of a key. Some state of each key is kept forever, see `aggregate`.

    Args:
        size: rows of a window.
        every: rows between results, 1 to `size`; each window then covers the last `size` rows, or fewer at the beginning. None:
            consecutive windows.

    Raises:
        ValueError: a number out of range.
    """
    if size < 1 or (every is not None and not 1 <= every <= size):
        raise ValueError(f"size = {size}, every = {every}: both must be at least 1, and every at most size")
    return Global(rows=size, purge=True) if every is None else Global(rows=every, last=size)


def global_window(*, rows: int | None = None, every: str | None = None, purge: bool = False) -> Global:
    """One window for all the rows of a key, which never ends. A trigger decides when its result is emitted.

    ``rows=1`` emits a running result with each row, like Flink's keyed `reduce`. Without a trigger the current result is emitted after
    each micro-batch with rows of the key; that requires ``emit="updates"``. Some state of each key is kept forever, see `aggregate`.

    Args:
        rows: after this many rows.
        every: each time event time has passed a whole multiple of this, such as ``1m``, if there were rows since.
        purge: whether to start over after a result.

    Raises:
        ValueError: two triggers, a number below 1, not a duration, or a purge without a trigger.
    """
    if rows is not None and every is not None:
        raise ValueError("rows and every are mutually exclusive; specify one")
    if rows is not None and rows < 1:
        raise ValueError(f"rows = {rows}: must be at least 1")
    if purge and rows is None and every is None:
        raise ValueError("purge = True requires a trigger: rows or every")
    return Global(rows=rows, every_ms=None if every is None else _ms(every, "every"), purge=purge)


def _ms(text: str, name: str) -> int:
    try:
        return duration_ms(text)
    except NotAQuantity as error:
        raise ValueError(f'{name} = "{text}": expected {error.need}') from None


def _offset(text: str, below_ms: int) -> int:
    if is_no_duration(text):
        return 0
    offset_ms = _ms(text.lstrip("-"), "offset") * (-1 if text.startswith("-") else 1)
    if abs(offset_ms) >= below_ms:
        raise ValueError(f"offset = {text}: must be less than the distance between two windows")
    return offset_ms


def _spark(ms: int) -> str:
    return f"{ms} milliseconds"
