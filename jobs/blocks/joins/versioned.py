"""Left rows with the right rows valid at their event time, for all due rows of a group at once.

Rows wait as in `in_order`, and are processed in the same order, but neither is a row an entry of the state nor is it handled by itself:
the rows of a group that arrive in one micro-batch are one value of the state, an Arrow stream, and due rows are matched by `as_of`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from penstock.jobs.blocks.joins.arrow_groups import decoded, encoded, grouped
from penstock.jobs.blocks.joins.as_of import as_of, changes, every, newest, table_schema
from penstock.jobs.blocks.keyed.backend import needs_rocksdb

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

MATCHED = "_us bigint, _left string, _right string"
# A right row once, with the left rows that have it.
BY_RIGHT = "_right string, _us array<bigint>, _left array<string>"
ALL = "_us bigint, _left string, _rights array<string>"
# Of a value of the state, and of a frame of results.
_ROWS = 10_000
# Of left rows with one right row, in a row of results.
_LEFT_ROWS, _LEFT_BYTES = 100_000, 16 * 1024 * 1024
# How many right rows a frame of results has at most, if each left row has all of them.
_PARTNERS = 200_000
# An entry that is read on its own costs a message to the JVM and back, and many at once come in one: an estimate of how many entries of no
# use cost as much as a message.
_AT_ONCE = 8


def run(rows: DataFrame, processor: Versioned, output: str) -> DataFrame:
    """The output of a processor over the rows of `penstock.jobs.blocks.joins.in_order.packed`, group by group.

    Raises:
        ValueError: a state backend other than RocksDB.
    """
    needs_rocksdb(rows.sparkSession, "temporal, regular and broadcast joins")
    return (
        grouped(rows)
        .groupBy("_group")
        .transformWithStateInPandas(statefulProcessor=processor, outputStructType=output, outputMode="append", timeMode="EventTime")
    )


class Table(Protocol):
    """The currently valid right rows of a group, in the state."""

    def valid(self, ids: pa.Array | None) -> pa.Table:
        """Reads rows, with the columns of `table_schema`: at least those with the given ids; all for None."""

    def change(self, changes: pa.Table) -> None:
        """Writes changes, after reading at least their ids."""


class Whole:
    """A small table: read as a whole, as a log of its changes that is rewritten when most of it is outdated.

    Args:
        handle: of the processor that has the state.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        # No Arrow here: Spark calls this for each micro-batch in a process on the driver, which has not imported it.
        self._log = handle.getListState("table_log", "changes binary")
        self._logged = 0
        self._valid: pa.Table | None = None

    def valid(self, ids: pa.Array | None) -> pa.Table:
        """See `Table`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        log = [decoded(blob) for (blob,) in self._log.get()]
        self._logged = sum(map(len, log))
        self._valid = valid = newest(pa.concat_tables(log)) if log else table_schema().empty_table()
        return valid if ids is None else valid.filter(pc.is_in(valid["id"], value_set=ids))

    def change(self, changes: pa.Table) -> None:
        """See `Table`."""
        import pyarrow as pa

        assert self._valid is not None, "changes are written after reading"
        if self._logged + len(changes) <= 2 * len(self._valid) + _ROWS:
            self._append(changes)
            return
        table = newest(pa.concat_tables([self._valid, changes]))
        self._log.clear()
        self._append(table)

    def _append(self, changes: pa.Table) -> None:
        for part in parts(changes):
            self._log.appendValue((encoded(part),))


class ById:
    """A large table: an entry of the state for each id, of which only those in question are read and written.

    Args:
        handle: of the processor that has the state.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._rows = handle.getMapState("version_by_id", "id string", "row string")
        self._count = handle.getValueState("version_count", "ids bigint")
        self._counted = 0
        self._known: set[str] = set()

    def valid(self, ids: pa.Array | None) -> pa.Table:
        """See `Table`."""
        import pyarrow as pa

        wanted = None if ids is None else ids.to_pylist()
        stored = self._count.get()
        self._counted = 0 if stored is None else stored[0]
        if wanted is None or self._counted <= _AT_ONCE * len(wanted):
            rows = {id: row for (id,), (row,) in self._rows.iterator()} if self._counted else {}
        else:
            rows = {id: value[0] for id in wanted if (value := self._rows.getValue((id,))) is not None}
        self._known = set(rows)
        return pa.table({"id": list(rows), "row": list(rows.values())}, schema=table_schema())

    def change(self, changes: pa.Table) -> None:
        """See `Table`."""
        counted = self._counted
        for id, row in zip(changes["id"].to_pylist(), changes["row"].to_pylist(), strict=True):
            if row is not None:
                self._rows.updateValue((id,), (row,))
                counted += id not in self._known
            elif id in self._known:
                self._rows.removeKey((id,))
                counted -= 1
        if counted != self._counted:
            self._count.update((counted,))


class Waiting:
    """The rows of a group that are not due yet: one value of the state for the rows of a micro-batch, and a timer for the oldest row.

    Args:
        handle: of the processor that has the state.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._rows = handle.getMapState("waiting_rows", "number bigint", "rows binary")
        # The oldest row of each of them.
        self._index = handle.getValueState("waiting_index", "numbers array<bigint>, oldest_us array<bigint>")

    def add(self, rows: pa.Table) -> None:
        """Keeps rows."""
        index = self._read()
        before = min(index.values(), default=None)
        if not self._put(rows, index):
            return
        first = min(index.values())
        if before is None or first // 1000 < before // 1000:
            if before is not None:
                self._handle.deleteTimer(before // 1000)
            self._handle.registerTimer(first // 1000)
        self._write(index)

    def take(self, watermark_ms: int) -> pa.Table | None:
        """Removes the rows that are due.

        Args:
            watermark_ms: rows of this millisecond are due, too.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        index = self._read()
        numbers = [number for number, oldest_us in index.items() if oldest_us // 1000 <= watermark_ms]
        if not numbers:
            return None
        rows = pa.concat_tables([self._stored(number) for number in numbers])
        due = pc.less(rows["at_us"], (watermark_ms + 1) * 1000)
        for number in numbers:
            self._rows.removeKey((number,))
            del index[number]
        self._put(rows.filter(pc.invert(due)), index)
        if index:
            self._handle.registerTimer(min(index.values()) // 1000)
        self._write(index)
        return rows.filter(due)

    def _put(self, rows: pa.Table, index: dict[int, int]) -> bool:
        import pyarrow.compute as pc

        before = len(index)
        for part in parts(rows):
            number = max(index, default=-1) + 1
            self._rows.updateValue((number,), (encoded(part),))
            index[number] = pc.min(part["at_us"]).as_py()
        return len(index) > before

    def _stored(self, number: int) -> pa.Table:
        value = self._rows.getValue((number,))
        assert value is not None, f"the index has {number}, and the state does not"
        return decoded(value[0])

    def _read(self) -> dict[int, int]:
        stored = self._index.get()
        return {} if stored is None else dict(zip(*stored, strict=True))

    def _write(self, index: dict[int, int]) -> None:
        if index:
            self._index.update((list(index), list(index.values())))
        else:
            self._index.clear()


class Versioned(StatefulProcessor):
    """The processor that Spark calls for the rows of a group."""

    @abstractmethod
    def table(self, handle: StatefulProcessorHandle) -> Table:
        """The table in the state."""

    @abstractmethod
    def matched(self, due: pa.Table, table: Table) -> Iterator[pa.Table]:
        """The results of due rows of both sides, which change the table."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before all others."""
        self._waiting = Waiting(handle)
        self._table = self.table(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Called by Spark with the group's rows of a micro-batch."""
        import pyarrow as pa

        self._waiting.add(pa.concat_tables([decoded(stream) for some in rows for stream in some["rows"]]))
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Called by Spark once the watermark has passed the oldest waiting row."""
        due = self._waiting.take(timerValues.getCurrentWatermarkInMs())
        if due is not None:
            yield from (part.to_pandas() for result in self.matched(due, self._table) for part in parts(result))

    def close(self) -> None:
        """Called by Spark after all others."""


@dataclass
class Newest(Versioned):
    """Left rows with the valid row of their id: ``_right``, null without one.

    Args:
        whole: whether the table is so small that it is read as a whole, and that many left rows have the same row of it: the results are
            by right row, `BY_RIGHT`.
    """

    whole: bool

    def table(self, handle: StatefulProcessorHandle) -> Table:
        """See `Versioned`."""
        return Whole(handle) if self.whole else ById(handle)

    def matched(self, due: pa.Table, table: Table) -> Iterator[pa.Table]:
        """See `Versioned`."""
        import pyarrow.compute as pc

        matches, changed = as_of(due, table.valid(pc.unique(pc.fill_null(due["id"], ""))))
        if len(changed):
            table.change(changed)
        yield from _by_right(matches) if self.whole else (matches,)


class Every(Versioned):
    """Left rows with all valid rows of the table: ``_rights``."""

    def table(self, handle: StatefulProcessorHandle) -> Table:
        """See `Versioned`."""
        return Whole(handle)

    def matched(self, due: pa.Table, table: Table) -> Iterator[pa.Table]:
        """See `Versioned`."""
        import pyarrow as pa

        valid = table.valid(None)
        changed = changes(due)
        if len(changed):
            table.change(changed)
        for left, rights in every(due, valid):
            for some in parts(left, max(1, _PARTNERS // max(1, len(rights)))):
                partners = pa.array([rights] * len(some), pa.list_(pa.large_string()))
                yield pa.table({"_us": some["at_us"], "_left": some["row"], "_rights": partners})


def _by_right(matches: pa.Table) -> Iterator[pa.Table]:
    """Matches in the form of `BY_RIGHT`."""
    import numpy as np
    import pyarrow as pa

    of_a_row = max(1, matches["_left"].nbytes // max(1, len(matches)))
    for part in parts(matches, max(1, min(_LEFT_ROWS, _LEFT_BYTES // of_a_row))):
        right = part["_right"].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = right.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        offsets = pa.array([0, *np.cumsum(np.bincount(codes))], pa.int64())
        lists = {
            name: pa.LargeListArray.from_arrays(offsets, part[name].take(pa.array(order)).combine_chunks()) for name in ("_us", "_left")
        }
        yield pa.table({"_right": right.dictionary, **lists})


def parts(table: pa.Table, rows: int = _ROWS) -> Iterator[pa.Table]:
    """A table in parts of so many rows; none if it is empty."""
    return (table.slice(start, rows) for start in range(0, len(table), rows))
