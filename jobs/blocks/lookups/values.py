"""Values of PostgreSQL that Python's and Spark's types have none of, as a lookup reads them.

Infinity as a date or a timestamp stands for an end of time, so it is read as the end of what the types have: it compares as it should. What
else has no counterpart is never read as something else, and never as null: a date before the year 1 or after 9999, and a number that is
none (NaN).
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from psycopg import Connection, Cursor, DataError
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

# Stands for a value that can't be read, until the column that it is of is known.
_UNREADABLE = object()
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# PostgreSQL's type -> what stands for its -infinity and infinity, as in psycopg's documentation, "Example: handling infinity date".
_ENDS: dict[str, tuple[date, date] | None] = {
    "date": (date.min, date.max),
    "timestamp": (_FIRST.replace(tzinfo=None), _LAST.replace(tzinfo=None)),
    "timestamptz": (_FIRST, _LAST),
    "numeric": None,
}


def prepare(connection: Connection[Any]) -> None:
    """Has a connection read such values as this module says."""
    for name, ends in _ENDS.items():
        oid = connection.adapters.types[name].oid
        own = connection.adapters.get_loader(oid, Format.TEXT)
        assert own is not None, "psycopg reads all of these types"
        connection.adapters.register_loader(oid, _loader(own, ends))


def unreadable(cursor: Cursor[Any], rows: list[tuple[Any, ...]]) -> str | None:
    """The first column with a value that can't be read; None where all of them can."""
    found = {number for row in rows for number, value in enumerate(row) if value is _UNREADABLE}
    return cursor.description[min(found)].name if found and cursor.description else None


def _loader(own: Any, ends: tuple[date, date] | None) -> type[Loader]:
    """A loader as psycopg's own, but for values that this one can't read."""
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
