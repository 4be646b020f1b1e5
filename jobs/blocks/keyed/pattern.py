"""Patterns over the rows of a key within a time: several failures, then a success."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StructField, StructType, TimestampType

from penstock.jobs.blocks.keyed.declared import value
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction
from penstock.jobs.blocks.keyed.process import process
from penstock.jobs.blocks.keyed.values import moment
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.streams import ENVELOPE, Stream
from penstock.sizing.units import NotAQuantity, duration_ms

_IS, _ENDS = "_is_", "_ends"


@dataclass(frozen=True)
class Step:
    """A step of a pattern.

    Args:
        name: of the column with its rows.
        where: which rows it matches, a SQL condition or a column.
        times: how many of them.
        next: strict contiguity: no other row of the key may come between this step's rows and the previous one, like Flink's ``next``
            and ``consecutive``; otherwise others are skipped, as with ``followedBy``.
    """

    name: str
    where: str | Column
    times: int = 1
    next: bool = False


def pattern(
    stream: Stream,
    keys: Sequence[str],
    steps: Sequence[Step],
    *,
    within: str,
    unless: str | Column | None = None,
    tie: Sequence[str | Column] = (),
) -> Stream:
    """Finds rows of a key that match the steps one after another within a time.

    Rows are processed in the order of event time, whatever the micro-batch boundaries, once the watermark has passed them. A match is
    emitted when its last row is processed: the one that started last, if there are several. Its rows, and all earlier ones, are
    consumed; matching starts over with what follows. Each row belongs to one step.

    Cost: as `penstock.jobs.blocks.keyed.process.process` with ``order="time"``, and per key the rows of at most one partial match of
    each length.

    Args:
        stream: rows with event time.
        keys: key columns.
        steps: in order.
        within: maximum time from the first row's event time to the last one's, inclusive; such as ``10m``.
        unless: a SQL condition or a column; a row that satisfies it discards partial matches.
        tie: SQL expressions or columns that order rows with the same event time.

    Returns:
        A row per match: the keys, ``first_time`` and ``last_time``, and for each step the array of its rows. The event time is the last
        row's.

    Raises:
        ValueError: no steps, two with the same name, a step of fewer than one row, or what `process` rejects.
    """
    within_ms = _check(stream, keys, steps, within)
    rows = StructType([field for field in stream.frame.schema.fields if field.name not in ENVELOPE])
    marked = _marked(stream, steps, unless)
    begun = StructType(
        [
            StructField("length", IntegerType()),
            StructField("first_ms", LongType()),
            StructField("rows", ArrayType(rows, containsNull=False)),
        ]
    )
    matched = [StructField(step.name, ArrayType(rows, containsNull=False)) for step in steps]
    output = StructType(
        [*(rows[name] for name in keys), *(StructField(name, TimestampType()) for name in ("first_time", "last_time")), *matched]
    )
    matcher = _Matcher(tuple(rows.names), tuple((step.name, step.times, step.next) for step in steps), within_ms)
    # A partial match is needed until the very end of its time.
    ttl = f"{within_ms + 1}ms"
    state = {"begun": value(ArrayType(begun, containsNull=False))}
    return process(marked, keys, matcher, output=output, state=state, ttl=ttl, order="time", tie=tie)


@dataclass(frozen=True)
class _Begun:
    """A partial match: the rows that matched the first steps."""

    first_ms: int
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Matcher(KeyedFunction):
    """Of all partial matches with as many rows only the one that started last is kept: whatever completes another completes it too."""

    fields: tuple[str, ...]
    steps: tuple[tuple[str, int, bool], ...]
    within_ms: int

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        assert key.time_ms is not None
        stored = key.value("begun")
        before = {one["length"]: _Begun(one["first_ms"], tuple(one["rows"])) for one in stored.get() or ()}
        after = {} if row[_ENDS] else self._taken(before, row, key.time_ms)
        if whole := after.pop(len(self._places), None):
            after = {}
            yield self._match(whole, key.time_ms)
        if after != before:
            kept = [{"length": length, "first_ms": one.first_ms, "rows": list(one.rows)} for length, one in sorted(after.items())]
            stored.set(kept or None)

    @property
    def _places(self) -> list[tuple[int, bool]]:
        """Step, and whether it must be the next row, for each row of a match."""
        return [(number, follows) for number, (_, times, follows) in enumerate(self.steps) for _ in range(times)]

    def _taken(self, before: Mapping[int, _Begun], row: Row, time_ms: int) -> dict[int, _Begun]:
        """Length -> partial match, after one more row."""
        alive = {length: one for length, one in before.items() if time_ms - one.first_ms <= self.within_ms}
        places = self._places
        after = {length: one for length, one in alive.items() if not places[length][1]}
        data = {name: row[name] for name in self.fields}
        for length, (step, _) in enumerate(places):
            begun = alive.get(length) if length else _Begun(time_ms, ())
            if begun is None or not row[f"{_IS}{step}"]:
                continue
            longer = _Begun(begun.first_ms, (*begun.rows, data))
            if length + 1 not in after or after[length + 1].first_ms <= longer.first_ms:
                after[length + 1] = longer
        return after

    def _match(self, whole: _Begun, time_ms: int) -> Mapping[str, Any]:
        rows = iter(whole.rows)
        by_step = {name: [next(rows) for _ in range(times)] for name, times, _ in self.steps}
        return {"first_time": moment(whole.first_ms * 1000), "last_time": moment(time_ms * 1000), **by_step}


def _marked(stream: Stream, steps: Sequence[Step], unless: str | Column | None) -> Stream:
    """The rows with the steps that they match; rows that match none are counted as filtered, if they may be skipped."""
    conditions = {f"{_IS}{number}": step.where for number, step in enumerate(steps)} | {_ENDS: "false" if unless is None else unless}
    columns = [F.coalesce(as_column(condition).cast(BooleanType()), F.lit(False)).alias(name) for name, condition in conditions.items()]
    marked = replace(stream, frame=stream.frame.select(*stream.fields, *columns, *ENVELOPE))
    return marked if any(step.next for step in steps) else marked.filter(" or ".join(conditions))


def _check(stream: Stream, keys: Sequence[str], steps: Sequence[Step], within: str) -> int:
    names = [*keys, "first_time", "last_time", *(step.name for step in steps)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not steps or twice or any(step.times < 1 for step in steps):
        problem = f"two columns {', '.join(twice)}" if twice else "no steps" if not steps else "a step of no rows"
        raise ValueError(f"a pattern needs steps with unique names, each of at least one row; this one has {problem}")
    if not stream.timed:
        raise ValueError("the stream has no event time; set `time` of its source in the spec")
    try:
        return duration_ms(within)
    except NotAQuantity as error:
        raise ValueError(f'within = "{within}": expected {error.need}') from None
