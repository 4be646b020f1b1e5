"""The temporal join: each row with the version of another stream's row that was valid at its event time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, Arrival, InOrder, from_text, key_text, packed, run
from penstock.jobs.blocks.joins.sides import Side, check, check_how, without_partner
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import TIME, Stream, Tag

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

_MATCHED = "_us bigint, _left string, _right string"


def temporal_join(left: Side, versions: Side, *, how: Literal["inner", "left"] = "inner") -> Stream:
    """Joins each left row with the version of its key's right row that was valid at its event time, Flink's ``FOR SYSTEM_TIME AS OF``.

    A version is valid from its own event time until that of the next version of its key, or until a row whose ``_deleted`` is true (a
    tombstone) deletes the key. Which version that is, is known only when the watermark has passed the left row's event time: the row
    waits that long, and the result does not depend on which of the two arrived first. A version older than the watermark is late and
    goes to the side output like every late row; results that it would have changed have already been emitted. Per key the state holds
    the current version and the waiting rows of both sides.

    A table that changes rarely advances its watermark rarely: set an idleness for its source, or everything waits for it.

    Args:
        left: the rows to enrich.
        versions: the versions by key; each new row of a key replaces the previous one.
        how: ``left``: rows without a valid version are data with nulls; ``inner``: they are counted as unmatched.

    Returns:
        The columns `left.name` and `versions.name`, each a struct of that side's fields, at the left row's event time.

    Raises:
        ValueError: a side without event time, or incompatible sides.
    """
    check(left, versions)
    check_how(how, ("inner", "left"))
    left = left if how == "left" else replace(left, stream=without_partner(left))
    versions = replace(versions, stream=without_partner(versions))
    nothing = F.lit("")
    rows = packed(left, LEFT, key_text(left, left.keys), nothing, gone=F.lit(False)).unionByName(
        packed(versions, RIGHT, key_text(versions, versions.keys), nothing)
    )
    return matched(run(rows, Versions(), _MATCHED), left, versions, how)


def matched(frame: DataFrame, left: Side, right: Side, how: str) -> Stream:
    """The rows of `Versions` as a stream."""
    partner = from_text(F.col("_right"), right.schema)
    return joined(frame, from_text(F.col("_left"), left.schema), partner, left, right, how)


def joined(rows: DataFrame, one: Column, other: Column, left: Side, right: Side, how: str) -> Stream:
    """Pairs at the left row's event time; rows without a right row are data or unmatched."""
    if how != "left":
        rows = kept(rows, F.col("_right").isNotNull(), Tag.UNMATCHED)
    frame = rows.select(one.alias(left.name), other.alias(right.name), F.timestamp_micros("_us").alias(TIME))
    return Stream(with_event_time(frame), timed=True, strict=True)


@dataclass
class Versions(InOrder):
    """Left rows with the right row that is valid when they are processed.

    Args:
        every: whether a left row gets all right rows of its group instead of the one with its id.
    """

    every: bool = False
    first = RIGHT

    def open(self, handle: StatefulProcessorHandle) -> None:
        """See `InOrder`."""
        self._table = handle.getMapState("table", "id string", "row string")

    def step(self, group: str | None, arrivals: list[Arrival], watermark_ms: int) -> Iterator[Row]:
        """See `InOrder`."""
        table = _Table(self._table)
        for arrival in arrivals:
            if arrival.side == RIGHT:
                table.put(arrival.id or "", None if arrival.gone else arrival.row)
            elif self.every:
                yield Row(_us=arrival.at_us, _left=arrival.row, _rights=table.rows())
            else:
                yield Row(_us=arrival.at_us, _left=arrival.row, _right=None if arrival.id is None else table.get(arrival.id))
        table.write()


class _Table:
    """The currently valid rows: read on demand, written back once."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._known: dict[str, str | None] = {}
        self._changed: set[str] = set()
        self._complete = False

    def get(self, id: str) -> str | None:
        if id not in self._known and not self._complete:
            stored = self._state.getValue((id,))
            self._known[id] = None if stored is None else stored[0]
        return self._known.get(id)

    def rows(self) -> list[str]:
        if not self._complete:
            self._known = {id: row for (id,), (row,) in self._state.iterator()} | self._known
            self._complete = True
        return [row for _, row in sorted(self._known.items()) if row is not None]

    def put(self, id: str, row: str | None) -> None:
        self._known[id] = row
        self._changed.add(id)

    def write(self) -> None:
        for id in sorted(self._changed):
            row = self._known[id]
            if row is not None:
                self._state.updateValue((id,), (row,))
            elif self._state.containsKey((id,)):
                self._state.removeKey((id,))
