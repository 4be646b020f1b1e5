"""Which version of a row was valid when, over Arrow tables: the processing order of `in_order`, for all rows of a group at once.

Nothing here knows Spark or its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT

if TYPE_CHECKING:
    import pyarrow as pa


def waiting_schema() -> pa.Schema:
    """The columns of rows of both sides, an `Arrival` each."""
    import pyarrow as pa

    # Large: all rows of a group in one array may have more than 2 GiB of text.
    text = pa.large_string()
    return pa.schema([("at_us", pa.int64()), ("side", pa.int8()), ("rank", pa.int64()), ("gone", pa.bool_()), ("id", text), ("row", text)])


def table_schema() -> pa.Schema:
    """The columns of a table, or of its changes: an id, and its row as JSON, null if it has been deleted."""
    import pyarrow as pa

    return pa.schema([("id", pa.large_string()), ("row", pa.large_string())])


def as_of(due: pa.Table, valid: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Matches left rows with the right row of their id that was valid at their event time.

    Args:
        due: rows of both sides, with the columns of `waiting_schema`, in any order.
        valid: the right rows that were valid before, with the columns of `table_schema`; others than those with an id of `due` do not
            matter. No id twice.

    Returns:
        The left rows in the order of time, with the columns ``_us``, ``_left`` and ``_right``; and what changed in the table: the last row
        of each id, null if it has been deleted.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = in_order(due)
    before = valid.num_rows
    ids = pa.chunked_array([*valid["id"].chunks, *pc.fill_null(rows["id"], "").chunks], pa.large_string()).combine_chunks()
    gone = pc.if_else(rows["gone"], pa.scalar(None, pa.large_string()), rows["row"])
    texts = pa.chunked_array([*valid["row"].chunks, *gone.chunks], pa.large_string()).combine_chunks()
    codes = _codes(ids)
    changes = np.concatenate([np.ones(before, dtype=bool), _numbers(rows["side"]) == RIGHT])
    # By id, and within an id by time: the partner of a row is the last change before it, if that has the same id.
    by_id = np.argsort(codes, kind="stable")
    last = np.maximum.accumulate(np.where(changes[by_id], np.arange(len(by_id)), -1))
    same = (last >= 0) & (codes[by_id][last] == codes[by_id])
    partner = np.empty(len(by_id), dtype=np.int64)
    partner[by_id] = np.where(same, by_id[last], -1)
    left = np.flatnonzero(~changes)
    found = partner[left]
    lefts = rows.take(left - before)
    found[_numbers(pc.is_null(lefts["id"]))] = -1
    matches = pa.table(
        {"_us": lefts["at_us"], "_left": lefts["row"], "_right": texts.take(pa.array(found, mask=found < 0))},
    )
    order = by_id[changes[by_id]]
    ends = np.append(codes[order][1:] != codes[order][:-1], True)[: len(order)]
    changed = order[ends]
    changed = changed[changed >= before]
    return matches, pa.table({"id": ids.take(pa.array(changed)), "row": texts.take(pa.array(changed))}, schema=table_schema())


def every(due: pa.Table, valid: pa.Table) -> Iterator[tuple[pa.Table, list[str]]]:
    """The left rows with all right rows that were valid at their event time.

    Args:
        due: rows of both sides, with the columns of `waiting_schema`, in any order.
        valid: all right rows that were valid before, with the columns of `table_schema`. No id twice.

    Yields:
        Left rows in the order of time, with the columns of `waiting_schema`, and the right rows that all of them have, by id. The table
        changes only between them.
    """
    import numpy as np

    rows = in_order(due)
    table: dict[str, str] = dict(zip(valid["id"].to_pylist(), valid["row"].to_pylist(), strict=True))
    sides = _numbers(rows["side"])
    starts = [0, *(np.flatnonzero(np.diff(sides)) + 1).tolist(), len(sides)]
    for start, end in pairwise(starts):
        run = rows.slice(start, end - start)
        if not len(run):
            continue
        if sides[start] == LEFT:
            yield run, [row for _, row in sorted(table.items())]
            continue
        for id, row, gone in zip(*(run[name].to_pylist() for name in ("id", "row", "gone")), strict=True):
            if gone:
                table.pop(id or "", None)
            else:
                table[id or ""] = row


def changes(due: pa.Table) -> pa.Table:
    """What due rows change in a table, like the second result of `as_of`."""
    import pyarrow.compute as pc

    return as_of(due.filter(pc.equal(due["side"], RIGHT)), table_schema().empty_table())[1]


def newest(log: pa.Table) -> pa.Table:
    """The table that changes result in, with the columns of `table_schema`: the last row of each id, without deleted ones."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    log = log.combine_chunks()
    codes = _codes(log["id"].combine_chunks())
    last = np.zeros(codes.max(initial=-1) + 1, dtype=np.int64)
    # Of several numbers for one place, the last is assigned.
    last[codes] = np.arange(len(codes))
    table = log.take(pa.array(last))
    return table.filter(pc.is_valid(table["row"]))


def in_order(rows: pa.Table) -> pa.Table:
    """Rows in processing order: by time, right rows first, by rank, deletions first, by id, and by text, so that a replay has the same."""
    import pyarrow.compute as pc

    rows = rows.combine_chunks()
    keys = rows.set_column(rows.schema.get_field_index("id"), "id", pc.fill_null(rows["id"], ""))
    keys = keys.set_column(keys.schema.get_field_index("gone"), "gone", pc.cast(keys["gone"], "int8"))
    by = [
        ("at_us", "ascending"),
        ("side", "descending"),
        ("rank", "ascending"),
        ("gone", "descending"),
        ("id", "ascending"),
        ("row", "ascending"),
    ]
    return rows.take(pc.sort_indices(keys, sort_keys=by)).combine_chunks()


def _codes(ids: Any) -> Any:
    """A number for each id, the same for equal ids."""
    return ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)


def _numbers(column: pa.ChunkedArray) -> Any:
    return column.to_numpy()
