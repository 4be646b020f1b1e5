"""Kubernetes quantities."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.placement.quantities import NANO, nano
from penstock.sizing.units import NotAQuantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("500m", NANO // 2),
        ("2", 2 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("1E", 10**18 * NANO),
        ("1k", 1000 * NANO),
        ("1Ki", 1024 * NANO),
        (".5", NANO // 2),
        ("5.", 5 * NANO),
        ("+3", 3 * NANO),
        ("100n", 100),
        ("3u", 3000),
        ("2e-3", 2 * NANO // 1000),
        (4, 4 * NANO),
        (0.5, NANO // 2),
    ],
)
def test_what_kubernetes_takes_is_read_exactly(text: object, expected: int) -> None:
    assert nano(text) == expected


def test_what_is_finer_than_a_billionth_is_rounded_up() -> None:
    assert nano("0.0000000001") == 1
    assert nano("1.0000000001n") == 2


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "nan", "NaN", "inf", "-1Gi", "-0.1", "500 Mi", " 1", "1 ", "1Gib", "1GB", "1mi", "0x10", "1_000", "1,5", "\u0663"],
        *["1e", "e3", ".", "1e3m", "1e999", "9" * 61, "9E9E", "8Ei", None, True, [], {}, float("nan"), float("inf"), -1],
    ],
)
def test_what_kubernetes_refuses_is_rejected(text: object) -> None:
    with pytest.raises(NotAQuantity) as caught:
        nano(text)
    assert caught.value.need


@given(st.integers(0, 10**9), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_a_whole_number_scales_by_its_suffix(number: int, suffix: str) -> None:
    millis = {"": 10**3, "m": 1, "k": 10**6, "M": 10**9, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}[suffix]
    assert nano(f"{number}{suffix}") == number * millis * NANO // 1000


@given(st.text(max_size=20))
def test_no_text_makes_more_than_a_refusal(text: str) -> None:
    with contextlib.suppress(NotAQuantity):
        assert nano(text) >= 0
