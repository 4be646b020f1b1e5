from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.testing import same_rows


def test_rows_are_compared_in_any_order_and_times_in_any_zone() -> None:
    noon = datetime(2025, 4, 5, 12, tzinfo=UTC)
    same_rows([{"a": 1, "at": noon}, "text"], ["text", {"at": noon.astimezone(timezone(timedelta(hours=2))), "a": 1}])
    same_rows([], [])


def test_a_row_that_is_there_twice_is_another_one() -> None:
    with pytest.raises(AssertionError) as raised:
        same_rows([{"a": 1}, {"a": 1}, {"b": 2}], [{"a": 1}, {"c": 3}])
    assert str(raised.value).splitlines()[1:] == [
        "   expected  found",
        "   a=1       a=1",
        "!            a=1",
        "!            b=2",
        "!  c=3",
    ]
