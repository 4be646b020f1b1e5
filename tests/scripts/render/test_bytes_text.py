"""Bytes as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scripts.render.bytes_text import bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (812, "812 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (5 * 1024**2, "5.0 MiB"),
        (2048 * 1024**3, "2,048.0 GiB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_of_which_there_is_one(count: int, text: str) -> None:
    assert bytes_text(count) == text


@given(st.integers(1, 1 << 50))
def test_something_is_never_shown_as_nothing(count: int) -> None:
    assert float(bytes_text(count).split()[0].replace(",", "")) > 0
