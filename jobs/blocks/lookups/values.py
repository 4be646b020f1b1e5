"""PostgreSQL values without a counterpart in Python's and Spark's types, as a lookup reads them.

An infinite date or timestamp stands for the end of time, so it is read as the end of the type's range: it compares as it should. Other
values without a counterpart are never read as something else, and never as null: a date before the year 1 or after 9999, and NaN.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from psycopg import Connection, Cursor, DataError
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

# Stands for an unreadable value until its column is known.
_UNREADABLE = object()
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# PostgreSQL type -> replacement for its -infinity and infinity, as in psycopg's documentation, "Example: handling infinity date".
_ENDS: dict[str, tuple[date, date] | None] = {
    "date": (date.min, date.max),
    "timestamp": (_FIRST.replace(tzinfo=None), _LAST.replace(tzinfo=None)),
    "timestamptz": (_FIRST, _LAST),
    "numeric": None,
}


def prepare(connection: Connection[Any]) -> None:
    """Makes a connection read such values as described in this module."""
    for name, ends in _ENDS.items():
        oid = connection.adapters.types[name].oid
        own = connection.adapters.get_loader(oid, Format.TEXT)
        assert own is not None, "psycopg reads all of these types"
        connection.adapters.register_loader(oid, _loader(own, ends))


def unreadable(cursor: Cursor[Any], rows: list[tuple[Any, ...]]) -> str | None:
    """The first column with an unreadable value; None if there is none."""
    numbers = {number for row in rows for number, value in enumerate(row) if value is _UNREADABLE}
    return cursor.description[min(numbers)].name if numbers and cursor.description else None


def _loader(own: Any, ends: tuple[date, date] | None) -> type[Loader]:
    """A loader like psycopg's own, except for values that it cannot read."""
    special: dict[bytes, object] = {b"NaN": _UNREADABLE} if ends is None else {b"-infinity": ends[0], b"infinity": ends[1]}

    class OrItsEnd(Loader):
        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._own = own(oid, context)

        def load(self, data: Buffer) -> object:
            text = bytes(data)
            if text in special:
                return special[text]
            try:
                return self._own.load(text)
            except DataError:
                return _UNREADABLE

    return OrItsEnd
