"""Tables and lists of the report's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.scripts.render.report.markup import Markup, element, joined


class Column(NamedTuple):
    """A column of a table.

    Args:
        title: in the header.
        numeric: numbers, aligned right.
        code: identifiers, in a monospace font.
        wide: sentences, which need room.
        whole: words that are not broken into two lines.
    """

    title: str
    numeric: bool = False
    code: bool = False
    wide: bool = False
    whole: bool = False

    @property
    def classes(self) -> str | None:
        """For the cells."""
        chosen = (("n", self.numeric), ("code", self.code), ("w", self.wide), ("k", self.whole))
        return " ".join(name for name, so in chosen if so) or None


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], total: Sequence[str] = (), caption: str = "") -> Markup:
    """A table that scrolls horizontally on its own if the page is narrow.

    Args:
        columns: of the table.
        rows: the first cell of each names the row.
        total: a last row with the sums; empty: none.
        caption: for screen readers; empty: none.
    """
    head = element("tr", *(element("th", column.title, scope="col", class_=column.classes) for column in columns))
    parts = [
        *([element("caption", caption)] if caption else []),
        element("thead", head),
        element("tbody", *(_row(columns, row) for row in rows)),
        *([element("tfoot", _row(columns, total))] if total else []),
    ]
    return element("div", element("table", *parts), class_="scroll", tabindex="0", role="region", aria_label=caption or columns[0].title)


def bullets(texts: Sequence[str], class_: str | None = None) -> Markup:
    """A list; nothing if it is empty."""
    return element("ul", *(element("li", text) for text in texts), class_=class_) if texts else Markup()


def facts(pairs: Sequence[tuple[str, str]]) -> Markup:
    """A description list."""
    return element("dl", *(element("div", element("dt", name), element("dd", text)) for name, text in pairs), class_="facts")


def folded(summary: str, *children: str) -> Markup:
    """Content that is shown on a click, and in print."""
    return element("details", element("summary", summary), joined(children))


def _row(columns: Sequence[Column], cells: Sequence[str]) -> Markup:
    first, *others = zip(columns, cells, strict=True)
    head = element("th", first[1], scope="row", class_=first[0].classes)
    return element("tr", head, *(element("td", cell, class_=column.classes) for column, cell in others))
