"""Flink's value formats; the results are those of flink-core 1.20.3 and 2.1.0."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.flink.values import MAX_LONG, boolean, cores, duration_ms, fraction, memory_bytes, resource_memory_bytes, whole_number
from penstock.sizing.units import NotAQuantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1), ("0", 0), ("1b", 1), ("1 bytes", 1), ("2K", 2048), ("2 kibibytes", 2048), ("3 mebibytes", 3 << 20), ("2g", 2 << 30),
        ("2G", 2 << 30), ("2 GB", 2 << 30), ("  7 m ", 7 << 20), ("9223372036854775807", MAX_LONG), ("8388607t", 8388607 << 40),
    ],
)  # fmt: skip
def test_memory_sizes_are_binary_and_bare_numbers_are_bytes(text: str, expected: int) -> None:
    assert memory_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "2Gi", "1.5g", "-1", "9223372036854775808", "8388608t", "1 t b", "m", "1" * 5000])
def test_what_memory_size_refuses_is_rejected(text: str) -> None:
    with pytest.raises(NotAQuantity):
        memory_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2048m", 2 << 30), ("2g", 2 << 30), ("2G", 2 << 30), ("2Gi", 2 << 30), ("2gib", 2 << 30), ("1.5Gi", 3 << 29),
        ("2.5G", 2_500_000_000), ("1.5gb", 1_500_000_000), ("512 Mi", 512 << 20), ("1073741824", 1 << 30),
    ],
)  # fmt: skip
def test_the_operator_takes_kubernetes_units_where_flink_takes_none(text: str, expected: int) -> None:
    assert resource_memory_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0g", "-2g", "2 giga", "1025Ti", "0.0001Ki", "nan", "1e9"])
def test_what_neither_reads_is_no_memory(text: str) -> None:
    with pytest.raises(NotAQuantity):
        resource_memory_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.1", 0.10000000149011612), ("0.4", 0.4000000059604645), ("0", 0.0), (".5", 0.5), ("1e-2", 0.009999999776482582)],
)
def test_fractions_have_32_bits(text: str, expected: float) -> None:
    assert fraction(text) == expected


@pytest.mark.parametrize("text", ["1", "1.0", "0.99999999", "-0.1", "nan", "half", "", "0x1"])
def test_a_fraction_lies_below_one(text: str) -> None:
    with pytest.raises(NotAQuantity):
        fraction(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", 60_000), ("1 min", 60_000), ("1m", 60_000), ("1 Min", 60_000), ("PT1M", 60_000), ("5 minutes", 300_000), ("10", 10),
        ("10 ms", 10), ("7 secs", 7_000), ("pt5s", 5_000), ("PT1.5S", 1_500), ("3 nano", 0), ("4 µs", 0), ("2 h", 7_200_000),
        ("1d", 86_400_000), ("P1D", 86_400_000), ("P1DT2H", 93_600_000),
    ],
)  # fmt: skip
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "1.5s", "-1s", "PT", "P", "2 w", "P1DT", "99999d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(NotAQuantity):
        duration_ms(text)


@given(text=st.text(max_size=70))
@pytest.mark.parametrize("parse", [memory_bytes, resource_memory_bytes, fraction, duration_ms, whole_number, cores, boolean])
def test_any_text_is_a_value_or_refused(parse: Callable[[str], object], text: str) -> None:
    try:
        parse(text)
    except NotAQuantity as error:
        assert error.need
        assert error.fix
