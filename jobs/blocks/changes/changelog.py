"""The changes of each key's current aggregates, as Flink's GROUP BY without a window emits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.blocks.joins.regular import OP
from penstock.jobs.blocks.keyed.declared import value
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction
from penstock.jobs.blocks.keyed.process import process
from penstock.jobs.blocks.windows.aggregation import aggregate
from penstock.jobs.blocks.windows.firing import NUMBER
from penstock.jobs.blocks.windows.kinds import global_window
from penstock.jobs.stream.streams import Stream

_ALL = "all_rows"


def changelog(stream: Stream, /, *, keys: Sequence[str] = (), **aggregates: str | Column) -> Stream:
    """The aggregates of each key over all rows so far, as changes, in the order of event time.

    Each row changes the result of its key: the former one is taken back and the new one follows, each a row of its own, unless they are the
    same. State: the aggregates of each key twice, forever. Every row passes through Python.

    Args:
        stream: rows that take nothing back.
        keys: names of fields; without keys there is one result.
        aggregates: name -> count, sum, min, max, avg, first or last of one expression.

    Returns:
        The keys, the aggregates and ``_op``: ``+I`` for the first result of a key, then ``-U`` and ``+U``.

    Raises:
        ValueError: as `aggregate` with a trigger.
    """
    running = aggregate(stream, global_window(rows=1), keys=keys, emit="final", **aggregates)
    names = [*keys, *aggregates]
    types = [StructField(name, running.frame.schema[name].dataType) for name in names]
    rows = running if keys else running.select(**{_ALL: "0"}, **{name: f"`{name}`" for name in running.fields})
    output = StructType([*types, StructField(OP, StringType())])
    state = {"last": value(StructType([field for field in types if field.name not in keys]))}
    return process(rows, keys or [_ALL], _Changes(tuple(keys), tuple(aggregates)), output=output, state=state, tie=[NUMBER], ttl=None)


@dataclass(frozen=True)
class _Changes(KeyedFunction):
    """Takes back the former result of a key."""

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        """Emits the former result, and the new one."""
        last, now = key.value("last"), {name: row[name] for name in self.aggregates}
        before = last.get()
        if before == now:
            return
        same = {name: row[name] for name in self.keys}
        if before is not None:
            yield {**same, **before, OP: "-U"}
        last.set(now)
        yield {**same, **now, OP: "+I" if before is None else "+U"}
