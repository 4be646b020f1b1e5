"""The versions of Arrow tables against a loop that handles one row after the other, as `InOrder` does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

from penstock.jobs.blocks.joins.arrow_groups import decoded, encoded
from penstock.jobs.blocks.joins.as_of import as_of, changes, every, newest, table_schema, waiting_schema
from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, Arrival

Table = dict[str, str]
_GROUPS = ["", "a", "b", "c", "é", "z" * 9, None]


def _rows(arrivals: Sequence[Arrival]) -> pa.Table:
    return pa.Table.from_pylist([arrival._asdict() for arrival in arrivals], waiting_schema())


def _table(rows: Mapping[str, str]) -> pa.Table:
    return pa.table({"id": list(rows), "row": list(rows.values())}, schema=table_schema())


def _changed(table: Table, changed: pa.Table) -> Table:
    after: dict[str, str | None] = {**table, **dict(zip(changed["id"].to_pylist(), changed["row"].to_pylist(), strict=True))}
    assert len({*changed["id"].to_pylist()}) == len(changed), "each id once"
    return {id: row for id, row in after.items() if row is not None}


def _place(arrival: Arrival) -> tuple[int, bool, int, bool, str, str]:
    return arrival.at_us, arrival.side != RIGHT, arrival.rank, not arrival.gone, arrival.id or "", arrival.row


def _one_by_one(due: Sequence[Arrival], table: Table) -> Iterator[tuple[Arrival, Table]]:
    """Each left row, with the table as it was then; the table changes."""
    for arrival in sorted(due, key=_place):
        if arrival.side == LEFT:
            yield arrival, dict(table)
        elif arrival.gone:
            table.pop(arrival.id or "", None)
        else:
            table[arrival.id or ""] = arrival.row


def _random_case(random_: random.Random) -> tuple[list[Arrival], Table]:
    """Few times, ranks and texts, so that many are equal."""
    rows = random_.choice([0, 1, 2, 8, 60])
    rights = random_.choice([0, 0.2, 0.5, 1])
    due = []
    for _ in range(rows):
        side = RIGHT if random_.random() < rights else LEFT
        ids = _GROUPS if side == LEFT else _GROUPS[:-1]
        gone = side == RIGHT and random_.random() < 0.3
        due.append(Arrival(random_.randrange(-2, 6), side, random_.randrange(2), gone, random_.choice(ids), random_.choice("vwxyü")))
    table = {id: f"before {id}" for id in _GROUPS if id is not None and random_.random() < 0.5}
    return due, table


@pytest.mark.parametrize("seed", range(300))
def test_left_rows_have_the_partners_that_a_loop_over_single_rows_finds(seed: int) -> None:
    due, before = _random_case(random.Random(seed))
    table = dict(before)
    expected = [(left.at_us, left.row, None if left.id is None else then.get(left.id)) for left, then in _one_by_one(due, table)]
    matches, changed = as_of(_rows(due), _table(before))
    found = list(zip(*(matches[name].to_pylist() for name in ("_us", "_left", "_right")), strict=True))
    assert found == expected
    assert _changed(before, changed) == table
    assert changes(_rows(due)).sort_by("id").equals(changed.sort_by("id"))


@pytest.mark.parametrize("seed", range(300))
def test_left_rows_have_all_rows_that_a_loop_over_single_rows_finds(seed: int) -> None:
    due, before = _random_case(random.Random(seed))
    expected = [(left.at_us, left.row, [row for _, row in sorted(then.items())]) for left, then in _one_by_one(due, dict(before))]
    found = [
        (at_us, row, rights)
        for lefts, rights in every(_rows(due), _table(before))
        for at_us, row in zip(lefts["at_us"].to_pylist(), lefts["row"].to_pylist(), strict=True)
    ]
    assert found == expected


def test_rows_that_arrive_in_another_order_or_in_parts_have_the_same_results_in_the_same_order() -> None:
    random_ = random.Random(20250405)
    due, before = _random_case(random_)
    while len(due) < 60:
        due, before = _random_case(random_)
    matches, changed = as_of(_rows(due), _table(before))
    for _ in range(20):
        random_.shuffle(due)
        cut = random_.randrange(len(due))
        again, changed_again = as_of(pa.concat_tables([_rows(due[:cut]), _rows(due[cut:])]), _table(before))
        assert again.equals(matches) and changed_again.equals(changed)


def test_rows_of_which_all_due_at_once_are_matched_as_those_that_become_due_one_time_after_the_other() -> None:
    random_ = random.Random(20250406)
    for _ in range(50):
        due, before = _random_case(random_)
        whole, changed = as_of(_rows(due), _table(before))
        table, parts = dict(before), [whole.slice(0, 0)]
        for at_us in range(-2, 6):
            part, changed_then = as_of(_rows([arrival for arrival in due if arrival.at_us == at_us]), _table(table))
            table = _changed(table, changed_then)
            parts.append(part)
        assert pa.concat_tables(parts).to_pylist() == whole.to_pylist()
        assert table == _changed(before, changed)


def test_a_log_of_changes_gives_the_last_row_of_each_id_without_deleted_ones() -> None:
    log = pa.table({"id": ["a", "b", "a", "c", "b"], "row": ["1", "2", None, "3", "4"]}, schema=table_schema())
    assert newest(log).to_pylist() == [{"id": "b", "row": "4"}, {"id": "c", "row": "3"}]
    assert newest(log.slice(0, 0)).to_pylist() == []


def test_rows_come_out_of_a_value_of_the_state_as_they_went_in() -> None:
    rows = _rows([Arrival(-1, RIGHT, 2**62, True, None, ""), Arrival(2**62, LEFT, -1, False, "é", "\u2028\U0001f600")])
    assert decoded(encoded(rows.slice(1))).to_pylist() == rows.to_pylist()[1:]
    assert decoded(encoded(rows.slice(0, 0))).schema == waiting_schema()
