"""The regular join: both sides are changing tables, and so is the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, Arrival, InOrder, as_text, from_text, key_text, packed, run
from penstock.jobs.blocks.joins.sides import DELETED, How, Side, check, check_how, names, without_partner
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import TIME, Stream
from penstock.sizing.units import NotAQuantity, duration_ms

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

Emit = Literal["changes", "current"]
# The row kinds of changes, named as in Flink.
OP = "_op"
_CHANGE = f"_us bigint, _left string, _right string, {OP} string"
_LOG = "_us bigint, _rank bigint, _gone boolean, _id string, _key string, _row string"
_ENTRY = "row string, copies bigint, written_us bigint"


def regular_join(left: Side, right: Side, *, how: How = "inner", emit: Emit = "changes", ttl: str | int | None = None) -> Stream:
    """Joins two changing tables, as Flink SQL does without a time attribute: a row of either side matches all rows with its key, whenever
    they arrive.

    A side with `Side.unique` is a table: a later row with the same unique fields replaces the previous one, even if its key differs, and
    a row whose ``_deleted`` is true (a tombstone) deletes it. A side without it only grows.

    Changes are processed in the order of event time, once the watermark has passed them, so the output does not depend on the
    micro-batch boundaries. Each result row is emitted when it appears, and again when it is retracted:

    - ``changes``: the column ``_op`` is ``+I`` (insert) or ``-D`` (delete); if a row of a table was replaced, ``-U`` and ``+U``.
    - ``current``: for a sink that upserts by the result's key: the last state of each result row in the micro-batch, with ``_deleted``
      true if it was retracted. The key is `left.unique` if at most one right row can have the key, `right.unique` if at most one left
      row can, otherwise both together.

    State: both tables, forever unless `ttl` is set. With it, a row expires that long, in event time, after its last write; it then
    disappears silently, as in Flink, and emitted results are not retracted. All rows of a key are read together whenever one of them
    changes.

    Args:
        left: one table.
        right: the other.
        how: ``left``: left rows without a match are emitted with nulls; ``full``: both sides'. A later match retracts them.
        emit: ``changes`` or ``current``.
        ttl: how long rows are kept, such as ``12h`` or in milliseconds, for example ``job.spec.spec.state.ttl``.

    Returns:
        The columns `left.name` and `right.name`, each a struct of that side's fields, and ``_op`` or ``_deleted``, at the event time of
        the change.

    Raises:
        ValueError: a side without event time, incompatible sides, or an invalid duration.
    """
    check(left, right)
    check_how(how, ("inner", "left", "full"))
    if emit not in ("changes", "current"):
        raise ValueError(f'emit = "{emit}": must be "changes" or "current"')
    for side in (left, right):
        if side.unique is None and DELETED in side.stream.fields:
            raise ValueError(f"{side.name} contains deletions, but no unique fields to identify a row; set unique")
    ttl_us = _ttl_us(ttl)
    rows = _rows(left, LEFT, ttl_us, alone=how != "inner").unionByName(_rows(right, RIGHT, ttl_us, alone=how == "full"))
    kinds = (_kind(left, alone=how != "inner"), _kind(right, alone=how == "full"))
    changed = run(rows, _Tables(kinds, emit == "current", ttl_us), _CHANGE)
    mark = F.col(OP) if emit == "changes" else F.col(OP).startswith("-").alias(DELETED)
    columns = [from_text(F.col(f"_{place}"), side.schema).alias(side.name) for place, side in (("left", left), ("right", right))]
    time = F.timestamp_micros("_us").alias(TIME)
    frame = changed.select(*columns, mark, time)
    return Stream(with_event_time(frame), timed=True, updates=emit == "current")


def _ttl_us(ttl: str | int | None) -> int | None:
    if ttl is None:
        return None
    try:
        ms = ttl if isinstance(ttl, int) else duration_ms(ttl)
    except NotAQuantity as error:
        raise ValueError(f'ttl = "{ttl}": expected {error.need}') from None
    if ms < 1:
        raise ValueError(f"ttl = {ttl}: must be greater than 0")
    return ms * 1000


def _kind(side: Side, *, alone: bool) -> Kind:
    one = side.unique is not None and set(names(side.unique)) <= set(side.keys)
    return Kind(table=side.unique is not None, one=one, alone=alone)


def _rows(side: Side, number: int, ttl_us: int | None, *, alone: bool) -> DataFrame:
    """A side's rows, grouped by the join key."""
    if side.unique is None:
        # A row is identified by its content: equal rows are counted.
        whole = F.sha2(as_text(F.struct(*side.fields), side.schema, side.name), 256)
        side = side if alone else replace(side, stream=without_partner(side))
        return packed(side, number, key_text(side, side.keys), whole)
    unique = replace(side, key=names(side.unique))
    unique = replace(unique, stream=without_partner(unique))
    row_id = key_text(unique, unique.keys)
    if set(side.keys) <= set(unique.keys):
        return packed(unique, number, key_text(side, side.keys), row_id)
    # A row may move to another key, and a deletion only has the unique fields: an earlier step knows which key the row had.
    log = run(packed(unique, number, row_id, key_text(side, side.keys)), _Moves(ttl_us), _LOG)
    time = F.timestamp_micros("_us").alias(TIME)
    rows = log.select(F.col("_key").alias("_group"), F.lit(number).alias("_side"), "_us", "_rank", "_gone", "_id", "_row", time)
    return with_event_time(rows)


class Entry(NamedTuple):
    """A row of a table.

    Args:
        row: as JSON.
        copies: number of equal rows.
        written_us: event time of the last change in epoch microseconds.
    """

    row: str
    copies: int
    written_us: int


class _Entries:
    """The rows of one side under one key: read once, written back once."""

    def __init__(self, state: Any, ttl_us: int | None) -> None:
        self._state, self._ttl_us = state, ttl_us
        self._rows = {id: Entry(*stored) for (id,), stored in state.iterator()}
        self._changed: set[str] = set()

    def get(self, id: str, at_us: int) -> Entry | None:
        entry = self._rows.get(id)
        return entry if entry is not None and self._alive(entry, at_us) else None

    def alive(self, at_us: int) -> list[tuple[str, Entry]]:
        return sorted((id, entry) for id, entry in self._rows.items() if self._alive(entry, at_us))

    def put(self, id: str, entry: Entry | None) -> None:
        self._changed.add(id)
        if entry is None:
            self._rows.pop(id, None)
        else:
            self._rows[id] = entry

    def swept(self, watermark_ms: int) -> int | None:
        """Removes what no future row can match; returns when the next row expires, in epoch microseconds."""
        if self._ttl_us is None:
            return None
        for id, entry in list(self._rows.items()):
            if (entry.written_us + self._ttl_us) // 1000 <= watermark_ms:
                self.put(id, None)
        return min((entry.written_us + self._ttl_us for entry in self._rows.values()), default=None)

    def write(self) -> None:
        for id in sorted(self._changed):
            entry = self._rows.get(id)
            if entry is not None:
                self._state.updateValue((id,), tuple(entry))
            elif self._state.containsKey((id,)):
                self._state.removeKey((id,))

    def _alive(self, entry: Entry, at_us: int) -> bool:
        return self._ttl_us is None or at_us < entry.written_us + self._ttl_us


class _Place(NamedTuple):
    """Where a table's row currently is: its key, its fields as JSON, and the event time of its last change in epoch microseconds."""

    key: str | None
    row: str
    written_us: int


@dataclass
class _Moves(InOrder):
    """A table's rows, emitted under their current key: a row that leaves a key is deleted there.

    The group is a row's identity, and the id of an arrival is the row's key.
    """

    ttl_us: int | None

    def open(self, handle: StatefulProcessorHandle) -> None:
        """See `InOrder`."""
        self._state = handle.getValueState("place", "key string, row string, written_us bigint")

    def step(self, group: str | None, arrivals: list[Arrival], watermark_ms: int) -> Iterator[Row]:
        """See `InOrder`."""
        if not arrivals and self.ttl_us is None:
            return
        stored = self._state.get()
        place = None if stored is None else _Place(*stored)
        for arrival in _numbered(arrivals):
            if place is not None and self.ttl_us is not None and arrival.at_us >= place.written_us + self.ttl_us:
                place = None
            if place is not None and (arrival.gone or place.key != arrival.id):
                yield _logged(arrival, group, place.key, place.row, gone=True)
            place = None if arrival.gone else _Place(arrival.id, arrival.row, arrival.at_us)
            if place is not None:
                yield _logged(arrival, group, place.key, place.row, gone=False)
        self._keep_place(place, watermark_ms)

    def _keep_place(self, place: _Place | None, watermark_ms: int) -> None:
        if place is None or (self.ttl_us is not None and (place.written_us + self.ttl_us) // 1000 <= watermark_ms):
            self._state.clear()
            return
        self._state.update(tuple(place))
        if self.ttl_us is not None:
            self.wake(place.written_us + self.ttl_us)


def _numbered(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """Rows with the same event time get increasing ranks, so that the next step keeps this order and no deletion comes first."""
    last: tuple[int, int] | None = None
    for arrival in arrivals:
        if last is not None and last[0] == arrival.at_us:
            arrival = arrival._replace(rank=max(arrival.rank, last[1] + 1))
        last = arrival.at_us, arrival.rank
        yield arrival


def _logged(arrival: Arrival, group: str | None, key: str | None, row: str, *, gone: bool) -> Row:
    return Row(_us=arrival.at_us, _rank=arrival.rank, _gone=gone, _id=group, _key=key, _row=row)


@dataclass(frozen=True)
class Kind:
    """What a side means for the result.

    Args:
        table: whether rows replace each other.
        one: whether a key has at most one row.
        alone: whether its rows are emitted without a match.
    """

    table: bool
    one: bool
    alone: bool


class _Change(NamedTuple):
    """A result row that appears or is retracted: ids and rows of both sides, None if there is none."""

    op: str
    at_us: int
    ids: tuple[str | None, str | None]
    rows: tuple[str | None, str | None]


@dataclass
class _Tables(InOrder):
    """Both tables' rows of one key, and the effect of each change on the result.

    Args:
        kinds: of the left and the right side.
        current: whether only the last change of a result row is emitted.
        ttl_us: how long rows are kept.
    """

    kinds: tuple[Kind, Kind]
    current: bool
    ttl_us: int | None

    def open(self, handle: StatefulProcessorHandle) -> None:
        """See `InOrder`."""
        self._states = tuple(handle.getMapState(name, "id string", _ENTRY) for name in ("left", "right"))

    def step(self, group: str | None, arrivals: list[Arrival], watermark_ms: int) -> Iterator[Row]:
        """See `InOrder`."""
        if not arrivals and self.ttl_us is None:
            return
        tables = tuple(_Entries(state, self.ttl_us) for state in self._states)
        changes: list[_Change] = []
        for arrival in arrivals:
            # A row with a null in its key has no match.
            others = [] if group is None else tables[1 - arrival.side].alive(arrival.at_us)
            changes += self._changes(arrival, tables[arrival.side], others)
        for table in tables:
            if (next_us := table.swept(watermark_ms)) is not None:
                self.wake(next_us)
            table.write()
        for change in self._last(changes) if self.current else changes:
            yield Row(_us=change.at_us, _left=change.rows[LEFT], _right=change.rows[RIGHT], _op=change.op)

    def _changes(self, arrival: Arrival, table: _Entries, others: list[tuple[str, Entry]]) -> list[_Change]:
        mine, other = self.kinds[arrival.side], self.kinds[1 - arrival.side]
        id, at_us = arrival.id or "", arrival.at_us
        previous = table.get(id, at_us)
        old = previous.row if previous is not None and mine.table else None
        new = None if arrival.gone else arrival.row
        siblings = sum(entry.copies for known, entry in table.alive(at_us) if known != id or not mine.table)
        count = 1 if previous is None or mine.table else previous.copies + 1
        table.put(id, None if new is None else Entry(new, count, at_us))
        if old == new:
            return []
        partners: list[tuple[str | None, str | None]] = [(known, entry.row) for known, entry in others for _ in range(entry.copies)]
        minus, plus = ("-U", "+U") if old is not None and new is not None else ("-D", "+I")
        alone: list[tuple[str | None, str | None]] = [(None, None)] if mine.alone else []
        changes: list[_Change] = []
        if other.alone and siblings == 0 and old is None:
            changes += [self._change("-D", arrival, (None, None), partner) for partner in partners]
        if old is not None:
            changes += [self._change(minus, arrival, (id, old), partner) for partner in partners or alone]
        if new is not None:
            changes += [self._change(plus, arrival, (id, new), partner) for partner in partners or alone]
        if other.alone and siblings == 0 and new is None:
            changes += [self._change("+I", arrival, (None, None), partner) for partner in partners]
        return changes

    def _change(self, op: str, arrival: Arrival, mine: tuple[str | None, str | None], other: tuple[str | None, str | None]) -> _Change:
        left, right = (mine, other) if arrival.side == LEFT else (other, mine)
        return _Change(op, arrival.at_us, (left[0], right[0]), (left[1], right[1]))

    def _last(self, changes: list[_Change]) -> list[_Change]:
        last: dict[tuple[str | None, str | None], _Change] = {}
        for change in changes:
            known_by = self._known_by(*change.ids)
            last.pop(known_by, None)
            last[known_by] = change
        return list(last.values())

    def _known_by(self, left: str | None, right: str | None) -> tuple[str | None, str | None]:
        """The identity of a result row."""
        if self.kinds[RIGHT].one and left is not None:
            return left, None
        if self.kinds[LEFT].one and right is not None:
            return None, right
        return left, right
