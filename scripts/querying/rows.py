"""Rows as they come: as lines of a table, whose columns are as wide as the first rows need, or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any, TextIO

# Rows that decide on the widths of the columns.
_FIRST = 20
_WIDEST = 60
_GAP = "  "
_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


class RowLines:
    """Writes rows as lines.

    Args:
        columns: names of the columns.
        stream: that is written to.
        as_json: a line is an object rather than a row of a table.
    """

    def __init__(self, columns: Sequence[str], stream: TextIO, *, as_json: bool) -> None:
        self._columns, self._stream, self._as_json = tuple(columns), stream, as_json
        self._widths: list[int] = []
        self.written = 0

    def write(self, rows: Iterable[Sequence[Any]]) -> int:
        """Writes rows one by one. Returns how many they were."""
        before = self.written
        for line in self._objects(rows) if self._as_json else self._after_the_head(iter(rows)):
            self._line(line)
            self.written += 1
        return self.written - before

    def _objects(self, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
        return (json.dumps(dict(zip(self._columns, row, strict=True)), default=plain, ensure_ascii=False) for row in rows)

    def _after_the_head(self, rows: Iterator[Sequence[Any]]) -> Iterator[str]:
        """The lines of rows, below the names of the columns if they are the first ones."""
        first: list[Sequence[Any]] = []
        if not self._widths:
            first = list(islice(rows, _FIRST))
            if not first:
                return
            cells = [self._columns, *([cell_text(value) for value in row] for row in first)]
            self._widths = [min(_WIDEST, max(len(cell) for cell in column)) for column in zip(*cells, strict=True)]
            self._line(self._padded(self._columns))
        for row in chain(first, rows):
            yield self._padded([cell_text(value) for value in row])

    def _padded(self, cells: Sequence[str]) -> str:
        return _GAP.join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)).rstrip()

    def _line(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def cell_text(value: Any) -> str:
    """A value in a cell."""
    made = plain(value) if isinstance(value, datetime | date | Decimal | bytes | bytearray) else value
    text = "null" if made is None else made if isinstance(made, str) else json.dumps(made, default=plain, ensure_ascii=False)
    return text.translate(_BREAKS)


def plain(value: Any) -> Any:
    """A value that JSON has no form for: times in ISO 8601, bytes as text, others as their own text."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value.astimezone().astimezone(UTC)).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace")
    return value.isoformat() if isinstance(value, date) else str(value)
