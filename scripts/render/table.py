"""Tables for people, all with one look: bold headings, numbers aligned right, no borders; a rule above a total.

rich is only imported by the first table: `penstock size -o json` does without.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from penstock.scripts.render.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

# A non-breaking blank within a cell. rich treats Unicode's own as any other, so it gets a private-use character.
UNBROKEN = "\ue000"
# Wide enough for any line: rich crops what is wider than its console.
_UNBOUNDED = 1_000_000
# Between two columns.
_GAP = 2
# rich's rows of a box: top, head, rule below the head, body, rule between sections, and those of a footer. ASCII, for any encoding.
_RULES = "    \n    \n----\n    \n----\n    \n    \n    \n"


class Column(NamedTuple):
    """A column.

    Args:
        heading: of the column.
        right: whether its cells are aligned right, like numbers.
        wraps: whether its cells may wrap between words. Numbers do too, if the table does not fit otherwise; names and codes never wrap.
        least: its minimum width.
    """

    heading: str = ""
    right: bool = False
    wraps: bool = False
    least: int = 0


class Styled(NamedTuple):
    """A cell with a style.

    Args:
        text: of the cell.
        style: as rich names it: ``red``, ``bold``.
    """

    text: str
    style: str


Cell = str | Styled
Row = Sequence[Cell]


def table(columns: Sequence[Column], rows: Iterable[Row], screen: Screen, *, indent: int = 2, total: Row | None = None) -> list[str]:
    """The rows below their headings.

    Args:
        columns: at least one.
        rows: each with a cell a column.
        screen: where the table goes. It gets wider than that only for what must not wrap.
        indent: blanks before each line.
        total: a last row, below a rule.

    Returns:
        The lines.
    """
    return _lines(columns, [*rows], screen, indent, total, headings=True)


def facts(rows: Iterable[tuple[str, str]], screen: Screen, *, indent: int = 2) -> list[str]:
    """Labels and their texts, without headings.

    Args:
        rows: label and text. A text wraps within its column.
        screen: where they go.
        indent: blanks before each line.

    Returns:
        The lines.
    """
    every = [*rows]
    label = max((len(label) for label, _ in every), default=0)
    columns = (Column(least=label), Column(wraps=True))
    narrow = screen._replace(width=screen.prose)
    room = narrow.width - indent - label - _GAP
    lines: list[str] = []
    # A word that is wider than the screen widens its own text, not those around it.
    for _, some in groupby(every, key=lambda row: max(map(len, row[1].split()), default=0) > room):
        lines += _lines(columns, [*some], narrow, indent, None, headings=False)
    return lines


def _lines(columns: Sequence[Column], rows: list[Row], screen: Screen, indent: int, total: Row | None, *, headings: bool) -> list[str]:
    every = [*rows, *([total] if total else [])]
    width = screen.width - indent
    if _least(columns, every) > width:
        columns = [column._replace(wraps=column.wraps or column.right) for column in columns]
    made = _table(columns, every, ruled=total is not None, headings=headings)
    if total and rows:
        made.rows[-2].end_section = True
    return [f"{' ' * indent}{line}".rstrip() for line in _printed(made, max(width, _least(columns, every)), colour=screen.colour)]


def _least(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    return sum(_widths(columns, rows)) + _GAP * (len(columns) - 1)


def _table(columns: Sequence[Column], rows: Sequence[Row], *, ruled: bool, headings: bool) -> Table:
    from rich.box import Box
    from rich.table import Table
    from rich.text import Text

    # A box's divider is one blank of the gap.
    padding = (0, _GAP - 1 if ruled else _GAP, 0, 0)
    box = Box(_RULES, ascii=True) if ruled else None
    made = Table(box=box, show_edge=False, show_header=headings, pad_edge=False, padding=padding, header_style="bold")
    for column, width in zip(columns, _widths(columns, rows), strict=True):
        # Nothing is cut off: no column gets less than its least width.
        made.add_column(
            Text(column.heading), justify="right" if column.right else "left", no_wrap=not column.wraps, overflow="fold", min_width=width
        )
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else Text(cell.text, style=cell.style) for cell in row))
    return made


def _widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """The least that each column takes: its longest word, or its longest line where it does not wrap."""
    from rich.cells import cell_len

    cells = [[column.heading, *(cell if isinstance(cell, str) else cell.text for cell in own)] for column, own in _by_column(columns, rows)]
    parts = [
        [part for text in texts for part in (text.split() if column.wraps else text.splitlines())]
        for column, texts in zip(columns, cells, strict=True)
    ]
    return [max(1, column.least, *map(cell_len, some)) for column, some in zip(columns, parts, strict=True)]


def _by_column(columns: Sequence[Column], rows: Sequence[Row]) -> list[tuple[Column, list[Cell]]]:
    return [(column, [row[at] for row in rows]) for at, column in enumerate(columns)]


def _printed(made: Table, width: int, *, colour: bool) -> list[str]:
    from rich.console import Console
    from rich.segment import Segment

    out = io.StringIO()
    console = Console(
        file=out,
        width=_UNBOUNDED,
        # The 16 colours that every terminal's theme makes readable.
        color_system="standard" if colour else None,
        no_color=not colour,
        force_terminal=colour,
        force_jupyter=False,
        legacy_windows=False,
    )
    lines = Segment.split_lines(console.render(made, console.options.update(width=width)))
    if max(map(Segment.get_line_length, lines)) > width:
        # rich narrows the widest columns first, and some of them below their least width.
        for column in made.columns:
            column.width = column.min_width if not column.no_wrap else None
    console.print(made, width=width, crop=False)
    return out.getvalue().replace(UNBROKEN, " ").splitlines()
