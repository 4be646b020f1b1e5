"""Two inputs with shared state: Flink's connected streams with a KeyedCoProcessFunction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.blocks.keyed.declared import State
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction, Out
from penstock.jobs.blocks.keyed.plan import Order, Time
from penstock.jobs.blocks.keyed.process import process
from penstock.jobs.stream.streams import ENVELOPE, Stream

_LEFT, _RIGHT = "_left", "_right"


class ConnectedFunction:
    """Flink's KeyedCoProcessFunction: like `KeyedFunction`, with one method per input; both share the same state and timers."""

    def on_left(self, row: Row, key: Key) -> Out:
        """Called with each row of the first input."""
        raise NotImplementedError

    def on_right(self, row: Row, key: Key) -> Out:
        """Called with each row of the second input."""
        raise NotImplementedError

    def on_timer(self, time_ms: int, key: Key) -> Out:
        """Called when a timer fires."""
        raise NotImplementedError(f"{type(self).__name__} sets timers but defines no on_timer")


@dataclass(frozen=True)
class Keyed:
    """An input with its key columns."""

    stream: Stream
    keys: Sequence[str]


def connect(
    left: Keyed,
    right: Keyed,
    function: ConnectedFunction,
    *,
    output: str | StructType,
    state: Mapping[str, State] | None = None,
    ttl: str | None = "spec",
    time: Time | None = None,
    order: Order = "arrival",
    updates: bool = False,
) -> Stream:
    """Runs a function on the rows of two inputs, with state and timers per common key.

    Rows of a micro-batch are processed by event time, whichever input they belong to. Everything else is as in
    `penstock.jobs.blocks.keyed.process.process`.

    Args:
        left: the first input; the key is named after its columns.
        right: the second, with as many key columns of the same types.
        function: an object of a class with ``on_left``, ``on_right`` and ``on_timer``.
        output: the fields that the function returns.
        state: name -> declared state.
        ttl: time to live of the state.
        time: what timers and time to live are based on.
        order: ``arrival`` or ``time``.
        updates: whether an output row replaces the previous one with the same key.

    Returns:
        A stream of the output's fields.

    Raises:
        ValueError: incompatible keys, one input with event time and one without, and what `process` rejects.
    """
    if len(left.keys) != len(right.keys):
        raise ValueError(f"keys {list(left.keys)} and {list(right.keys)} differ in number; use as many keys on both sides")
    if left.stream.timed != right.stream.timed:
        raise ValueError("only one input has event time; set `time` for both sources in the spec, or for neither")
    if left.stream.updates or right.stream.updates:
        raise ValueError("an input contains updates of earlier rows; a keyed function requires final rows")
    one, other = _types(left), _types(right)
    first = _side(left, _LEFT, left.keys, one, other)
    second = _side(right, _RIGHT, left.keys, other, one)
    both = Stream(first.unionByName(second), timed=left.stream.timed)
    asked = {"output": output, "state": state, "ttl": ttl, "time": time, "order": order, "updates": updates}
    return process(both, list(left.keys), _Either(function), **asked)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Either(KeyedFunction):
    """Dispatches the rows of the two inputs."""

    function: ConnectedFunction

    def on_row(self, row: Row, key: Key) -> Out:
        if row[_LEFT] is not None:
            return self.function.on_left(Row(**row[_LEFT]), key)
        return self.function.on_right(Row(**row[_RIGHT]), key)

    def on_timer(self, time_ms: int, key: Key) -> Out:
        return self.function.on_timer(time_ms, key)

    def sets_timers(self) -> bool:
        return type(self.function).on_timer is not ConnectedFunction.on_timer


def _types(side: Keyed) -> StructType:
    return StructType([field for field in side.stream.frame.schema.fields if field.name not in ENVELOPE])


def _side(side: Keyed, name: str, keys: Sequence[str], own: StructType, others: StructType) -> DataFrame:
    missing = [key for key in side.keys if key not in side.stream.fields]
    if missing:
        raise ValueError(f"keys = {list(side.keys)}: must be columns of the stream, {', '.join(side.stream.fields)}")
    other = _RIGHT if name == _LEFT else _LEFT
    key_columns = [F.col(own_key).alias(key) for own_key, key in zip(side.keys, keys, strict=True)]
    data = F.struct(*own.names).alias(name)
    return side.stream.frame.select(*key_columns, data, F.lit(None).cast(others).alias(other), *ENVELOPE)
