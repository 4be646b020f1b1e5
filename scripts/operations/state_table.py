"""Rows of state as tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.scripts.operations.state_rows import StateRows
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, table


def state_lines(rows: StateRows, job: str, screen: Screen) -> Iterator[str]:
    """The rows of a part below what it is."""
    what = f"operator {rows.operator} {rows.operator_name}" + (f", {rows.state}" if rows.state else "")
    yield f"{what} of query {rows.query or job}, after micro-batch {rows.micro_batch}"
    yield ""
    if not rows.rows:
        yield "  no rows"
        return
    flat = [dict(_flat(rows, row)) for row in rows.rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    yield from table([Column(name, wraps=True) for name in names], [[_text(row.get(name)) for name in names] for row in flat], screen)
    if rows.more:
        yield f"  and more: --rows shows {counted(len(rows.rows), 'row')}"


def _flat(rows: StateRows, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Columns of the row, those of a struct by themselves."""
    for column in rows.columns:
        value = row.get(column)
        if column not in ("key", "value"):
            yield column, value
        elif value is not None:
            yield from ((f"{column}.{name}", one) for name, one in value.items())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "-" if value is None else json.dumps(value, ensure_ascii=False)
