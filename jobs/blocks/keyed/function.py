"""A keyed function: what an app implements, and what it is passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark.sql import Row

from penstock.jobs.blocks.keyed.stored import List, Map, Stored, Value

Out = Iterable[Mapping[str, Any]] | None
_Kind = TypeVar("_Kind", Value, List, Map)


class KeyedFunction:
    """Flink's KeyedProcessFunction. A subclass must be a class of an importable module; one object serves many keys, so anything that
    belongs to a key must be kept in its state.
    """

    def on_row(self, row: Row, key: Key) -> Out:
        """Called with each row.

        Args:
            row: fields by name, ``row.user`` or ``row["user"]``; nested structs are dictionaries, timestamps are in UTC.
            key: its key, with the state and the timers.

        Returns:
            Output rows as mappings of the output's fields; a generator or None is fine.
        """
        raise NotImplementedError

    def on_timer(self, time_ms: int, key: Key) -> Out:
        """Called when a timer fires.

        Args:
            time_ms: the time that it was set for, in epoch milliseconds.
            key: the key that set it.
        """
        raise NotImplementedError(f"{type(self).__name__} sets timers but defines no on_timer")

    def sets_timers(self) -> bool:
        """Whether it defines ``on_timer``. Without, nothing is read for timers, and none can be set."""
        return type(self).on_timer is not KeyedFunction.on_timer


@dataclass(frozen=True)
class OfRows(KeyedFunction):
    """A plain function of a row and its key."""

    function: Callable[[Row, Key], Out]

    def on_row(self, row: Row, key: Key) -> Out:
        """Calls it."""
        return self.function(row, key)


@dataclass(frozen=True)
class SideRow:
    """A row for a side output."""

    tag: str
    reason: str
    row: Mapping[str, Any]


@dataclass
class Key:
    """The current key.

    Args:
        values: its columns by name.
        time_ms: event time of the row, or the timer's time; None for a row without.
        now_ms: the micro-batch's own timestamp in epoch milliseconds, which a replay repeats; None in a function without time.
        watermark_ms: no row as old as this can arrive any more; None unless the function uses event time.
    """

    values: Mapping[str, Any]
    states: Mapping[str, Stored]
    time_ms: int | None = None
    now_ms: int | None = None
    watermark_ms: int | None = None
    timers: list[int] = field(default_factory=list)
    side_rows: list[SideRow] = field(default_factory=list)
    earliest_ms: int | None = None

    def __getitem__(self, name: str) -> Any:
        """A column of the key."""
        return self.values[name]

    def value(self, name: str) -> Value:
        """State declared by `declared.value`."""
        return self._state(name, Value)

    def list(self, name: str) -> List:
        """State declared by `declared.list_of`."""
        return self._state(name, List)

    def map(self, name: str) -> Map:
        """State declared by `declared.map_of`."""
        return self._state(name, Map)

    def set_timer(self, time_ms: int) -> None:
        """Registers a timer for a time in epoch milliseconds; once, however often it is set.

        A time that has already passed becomes the next millisecond that has not.

        Raises:
            ValueError: the function has neither event time nor processing time, or no ``on_timer``.
        """
        if self.earliest_ms is None:
            raise ValueError('timers require time="event" or time="processing", and a class of yours that defines on_timer')
        time_ms = max(time_ms, self.earliest_ms)
        if time_ms not in self.timers:
            self.timers.append(time_ms)
            self.timers.sort()

    def cancel_timer(self, time_ms: int) -> None:
        """Deletes a timer, if it is set."""
        if time_ms in self.timers:
            self.timers.remove(time_ms)

    def side_output(self, tag: str, reason: str, row: Mapping[str, Any]) -> None:
        """Sends a row to a side output, ``job.side_output(sink, tag)``.

        Args:
            tag: its name, lower-case.
            reason: why.
            row: what is written, as JSON.
        """
        self.side_rows.append(SideRow(tag, reason, row))

    def _state(self, name: str, kind: type[_Kind]) -> _Kind:
        entry = self.states.get(name)
        if not isinstance(entry, kind):
            declared = ", ".join(f"{name} ({type(state).__name__.lower()})" for name, state in self.states.items()) or "none"
            raise KeyError(f"no {kind.__name__.lower()} state {name}; declared: {declared}")
        return entry
