"""Rows as lines of a table, and as JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

from penstock.scripts.querying.rows import RowLines


def test_columns_are_as_wide_as_the_first_rows_and_the_head_comes_once() -> None:
    stream = io.StringIO()
    lines = RowLines(["user", "n"], stream, as_json=False)
    assert lines.write([]) == 0
    assert stream.getvalue() == ""
    assert lines.write([["ann", 1], ["barbara", None]]) == 2
    assert lines.write([["a much longer name", True]]) == 1
    assert stream.getvalue().splitlines() == ["user     n", "ann      1", "barbara  null", "a much longer name  true"]
    assert lines.written == 3


def test_a_row_is_written_before_the_next_one_is_asked_for() -> None:
    stream = io.StringIO()

    def rows() -> Iterator[list[int]]:
        for number in range(30):
            if number == 25:
                assert stream.getvalue().splitlines()[-1] == "24"
            yield [number]

    assert RowLines(["n"], stream, as_json=False).write(rows()) == 30


def test_values_are_plain_text_in_one_line() -> None:
    stream = io.StringIO()
    row = ["a\nb", b"\xff!", Decimal("1.50"), date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=UTC), {"k": [1, None]}]
    RowLines(list("abcdef"), stream, as_json=False).write([row])
    assert stream.getvalue().splitlines()[1].split("  ") == [
        "a\\nb",
        "\\xff!",
        "1.50",
        "2026-01-02",
        "2026-01-02T03:00:00Z",
        '{"k": [1, null]}',
    ]


def test_json_lines_are_objects() -> None:
    stream = io.StringIO()
    row = ["é", datetime(2026, 1, 2, 3, tzinfo=UTC), {"k": Decimal("1.50")}, None]
    assert RowLines(list("abcd"), stream, as_json=True).write([row]) == 1
    assert json.loads(stream.getvalue()) == {"a": "é", "b": "2026-01-02T03:00:00Z", "c": {"k": "1.50"}, "d": None}
