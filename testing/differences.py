"""Rows that differ from those that are expected, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime


def same_rows(actual: Iterable[object], expected: Iterable[object]) -> None:
    """Fails with both sides if the rows differ, in any order.

    Args:
        actual: rows: mappings, or texts as of a topic.
        expected: the rows that they should be.

    Raises:
        AssertionError: they differ.
    """
    ours, theirs = sorted(map(_line, actual)), sorted(map(_line, expected))
    if ours != theirs:
        lines = [
            (line if wanted else "", line if got else "")
            for line in sorted({*ours, *theirs})
            for wanted, got in _paired(theirs.count(line), ours.count(line))
        ]
        raise AssertionError("\n" + side_by_side(("expected", "found"), lines))


def side_by_side(heads: tuple[str, str], lines: Sequence[tuple[str, str]]) -> str:
    """Two columns of text; lines whose sides differ are marked.

    Args:
        heads: of the columns.
        lines: the left and the right side of each.
    """
    width = max(len(left) for left, _ in [heads, *lines]) + 2
    return "\n".join([f"   {heads[0]:<{width}}{heads[1]}", *(f"{' ' if a == b else '!'}  {a:<{width}}{b}".rstrip() for a, b in lines)])


def _paired(wanted: int, got: int) -> Iterator[tuple[bool, bool]]:
    return ((number < wanted, number < got) for number in range(max(wanted, got)))


def _line(row: object) -> str:
    if isinstance(row, Mapping):
        return ", ".join(f"{name}={_short(value)}" for name, value in sorted(row.items()))
    return _short(row)


def _short(value: object) -> str:
    return value.astimezone(UTC).strftime("%m-%d %H:%M:%S.%f")[:-3] if isinstance(value, datetime) else repr(value)
