"""Rows of text in columns that line up."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: str = "") -> list[str]:
    """The rows as lines.

    Args:
        rows: of the same number of cells.
        right: the columns that stand to the right, as numbers do, counted from 0.
        indent: before each line.

    Returns:
        A line for each row, without blanks at its end.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [(indent + "  ".join(_padded(cell, widths[at], at in right) for at, cell in enumerate(row))).rstrip() for row in rows]


def _padded(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)
