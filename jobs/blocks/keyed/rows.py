"""The rows of a keyed function: as Spark passes and takes them, and as the function sees and returns them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import Any

from pyspark.sql import Row

from penstock.jobs.blocks.keyed.function import SideRow
from penstock.jobs.blocks.keyed.plan import MOMENT, ORDER_PREFIX, SIDE_ROW, Plan
from penstock.jobs.blocks.keyed.values import as_is, from_arrow, to_arrow
from penstock.jobs.stream.side_outputs import REASON, TAG
from penstock.jobs.stream.streams import TIME, Tag


class Rows:
    """Rows as Spark passes them, and as a function sees them."""

    def __init__(self, plan: Plan) -> None:
        self._names = plan.rows.names
        self._convert = [(field.name, convert) for field in plan.rows.fields if (convert := from_arrow(field.dataType)) is not as_is]
        self._order = [name for name in plan.rows.names if name.startswith(ORDER_PREFIX)]
        self._fields = plan.fields
        self._row = Row(*self._fields)

    def in_order(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """The rows of a micro-batch, in an order that a replay repeats."""
        return self.sorted([self._converted(row) for row in rows])

    def sorted(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows by time, then by `tie`, then by content."""
        placed = sorted(((self._position(row), row) for row in rows), key=itemgetter(0))
        if any(one[0] == other[0] for one, other in pairwise(placed)):
            placed.sort(key=lambda one: (one[0], repr(self.seen(one[1]))))
        return [row for _, row in placed]

    def seen(self, row: Mapping[str, Any]) -> Row:
        """A row without internal columns."""
        return self._row(*[row[name] for name in self._fields])

    def _converted(self, row: Row) -> dict[str, Any]:
        converted = dict(zip(self._names, row, strict=True))
        for name, convert in self._convert:
            converted[name] = convert(converted[name])
        return converted

    def _position(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Where a row comes, as far as its time and `tie` say; nulls first."""
        time_us = row[TIME]
        if not self._order:
            return (-inf,) if time_us is None else (time_us,)
        return (time_us is not None, time_us, *[part for name in self._order for part in _comparable(row[name])])


class Results:
    """Rows as a function returns them, and as Spark takes them."""

    def __init__(self, plan: Plan) -> None:
        self._convert = {field.name: to_arrow(field.dataType) for field in plan.output.fields}
        self._row = Row(*self._convert, TAG, REASON, MOMENT, SIDE_ROW)
        self._nothing = [None] * len(self._convert)

    def data(self, row: object, key: Mapping[str, Any], time_ms: int | None) -> Row:
        """An output row; missing fields are taken from the key, or are null.

        Raises:
            ValueError: not a mapping, or a field that the output does not have.
        """
        given: object = row.asDict() if isinstance(row, Row) else row
        if not isinstance(given, Mapping) or not given.keys() <= self._convert.keys():
            raise ValueError(f"a keyed function returned {_short(given)}; its output must be a mapping of {', '.join(self._convert)}")
        values = [convert(given[name] if name in given else key.get(name)) for name, convert in self._convert.items()]
        return self._row(*values, Tag.DATA.value, None, time_ms, None)

    def side_output(self, side_output: SideRow) -> Row:
        """A row for a side output."""
        row = json.dumps(dict(side_output.row), default=_as_json, ensure_ascii=False, separators=(",", ":"))
        return self._row(*self._nothing, side_output.tag, side_output.reason, None, row)


def milliseconds(row: Mapping[str, Any]) -> int | None:
    """A row's time, truncated."""
    time_us: int | None = row[TIME]
    return None if time_us is None else time_us // 1000


def _comparable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def _as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
