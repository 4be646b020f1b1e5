from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.scripts.preview.differences import ChangedRow, compared


def _row(user: str, n: int, **other: Any) -> dict[str, Any]:
    return {"user": user, "n": n, **other}


def test_rows_are_added_gone_and_changed_by_key() -> None:
    before = [_row("same", 1), _row("changed", 1), _row("gone", 1)]
    after = [_row("added", 1), _row("changed", 2), {"n": 1, "user": "same"}]
    found = compared("out", before, after, ["user"])
    assert (found.before, found.after, found.added, found.gone, found.changed) == (3, 3, 1, 1, 1)
    assert found.added_rows == (_row("added", 1),)
    assert found.gone_rows == (_row("gone", 1),)
    assert found.changed_rows == (ChangedRow(before=_row("changed", 1), after=_row("changed", 2)),)


def test_without_a_key_whole_rows_are_compared_with_how_often_they_are_there() -> None:
    found = compared("out", [_row("u", 1), _row("u", 1)], [_row("u", 1), _row("u", 2)])
    assert (found.added_rows, found.gone_rows, found.changed) == ((_row("u", 2),), (_row("u", 1),), 0)


def test_a_key_with_several_rows_changes_in_those_that_differ_alone() -> None:
    found = compared("out", [_row("u", 1), _row("u", 2)], [_row("u", 1), _row("u", 3), _row("u", 4)], ["user"])
    assert (found.changed_rows, found.added_rows) == ((ChangedRow(before=_row("u", 2), after=_row("u", 3)),), (_row("u", 4),))


def test_columns_that_are_ignored_make_no_difference_and_examples_are_limited() -> None:
    before = [_row("u", n, at="1") for n in range(4)]
    assert compared("out", before, [_row("u", n, at="2") for n in range(4)], ignored=["at"]).same
    found = compared("out", before, [], examples=2)
    assert (found.gone, len(found.gone_rows)) == (4, 2)


_ROWS = st.lists(st.fixed_dictionaries({"user": st.sampled_from("ab"), "n": st.integers(0, 3)}), max_size=8)


@given(_ROWS, _ROWS, st.sampled_from([(), ("user",)]))
def test_what_was_before_less_what_is_gone_and_with_what_is_added_is_what_is_after(
    before: list[dict[str, Any]], after: list[dict[str, Any]], key: tuple[str, ...]
) -> None:
    found = compared("out", before, after, key)
    assert found.before - found.gone + found.added == found.after
    assert found.same == (sorted(map(_values, before)) == sorted(map(_values, after)))
    assert compared("out", after, before, key).changed == found.changed


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["user"], row["n"]
