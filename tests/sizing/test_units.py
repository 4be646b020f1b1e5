"""Human-readable quantities."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.units import MAX_CPU_MILLICORES, MAX_DURATION_MS, NotAQuantity, cpu_millicores, duration_ms, memory_mib, size_bytes

READERS: list[Callable[[object], int]] = [size_bytes, memory_mib, cpu_millicores, duration_ms]
ANYTHING = st.one_of(
    st.text(),
    st.text(alphabet="0123456789.kKmMgGtTiIbBshd -+eE_\n", max_size=12),
    st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,3})?(m|g|Mi|Gi|ms|s|h|d|)", fullmatch=True),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.binary(),
    st.lists(st.integers(), max_size=2),
)


@pytest.mark.parametrize(
    "bad", ["1Gib", "-1Gi", "nan", "500 Mi", "1.5.0", "1.5g", "16", "", " 16g", "16g\n", "0x10m", "1e3m", "\u0661g", "0m", 16, None, True]
)
def test_what_is_no_memory_is_rejected_with_what_is_allowed(bad: object) -> None:
    with pytest.raises(NotAQuantity) as refused:
        memory_mib(bad)
    assert refused.value.need
    assert refused.value.fix


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("2048m", 2048),
        ("16g", 16384),
        ("16G", 16384),
        ("16gb", 16384),
        ("16GB", 16384),
        ("1t", 1048576),
        ("1024k", 1),
        ("1.5Gi", 1536),
        ("0.5Gi", 512),
    ],
)
def test_memory_is_binary_whatever_the_suffix(text: str, mib: int) -> None:
    assert memory_mib(text) == mib


@pytest.mark.parametrize("text", ["1k", "1.0001Gi", "1500k"])
def test_memory_of_no_whole_mib_is_rejected(text: str) -> None:
    with pytest.raises(NotAQuantity):
        memory_mib(text)


@pytest.mark.parametrize(
    ("value", "millicores"), [(4, 4000), (0.5, 500), ("500m", 500), ("0.1", 100), (1.5, 1500), ("4", 4000), (1000, 1_000_000)]
)
def test_cores_are_numbers_or_millicores(value: object, millicores: int) -> None:
    assert cpu_millicores(value) == millicores


@pytest.mark.parametrize("bad", [0, -1, "-1", "nan", float("nan"), float("inf"), 0.0001, True, "4 cores", "1e3", 1001, None, [4]])
def test_what_is_no_cpu_is_rejected(bad: object) -> None:
    with pytest.raises(NotAQuantity):
        cpu_millicores(bad)


@pytest.mark.parametrize(("text", "ms"), [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1h", 3_600_000), ("7d", 604_800_000)])
def test_a_duration_has_a_unit(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("bad", ["10", 10, "1.5s", "-1s", "1 s", "1m30s", "0s", "4000d", "", None, "1.5.0"])
def test_what_is_no_duration_is_rejected(bad: object) -> None:
    with pytest.raises(NotAQuantity):
        duration_ms(bad)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["9" * 5000 + "m", "9" * 5000, "1." + "9" * 5000 + "Gi", "9" * 5000 + "s"])
def test_digits_without_end_are_rejected_like_any_other_fault(reader: Callable[[object], int], text: str) -> None:
    with pytest.raises(NotAQuantity):
        reader(text)


@pytest.mark.parametrize("reader", READERS)
@given(value=ANYTHING)
def test_a_reader_gives_a_whole_number_above_0_or_refuses(reader: Callable[[object], int], value: object) -> None:
    try:
        read = reader(value)
    except NotAQuantity:
        return
    assert isinstance(read, int)
    assert read > 0


@given(mib=st.integers(1, 1024**3))
def test_memory_reads_back_what_was_written(mib: int) -> None:
    assert memory_mib(f"{mib}m") == memory_mib(f"{mib}Mi") == memory_mib(f"{mib * 1024}K") == mib


@given(millicores=st.integers(1, MAX_CPU_MILLICORES))
def test_cpu_reads_back_what_was_written(millicores: int) -> None:
    assert cpu_millicores(f"{millicores}m") == cpu_millicores(f"{millicores / 1000:.3f}") == millicores


@given(ms=st.integers(1, MAX_DURATION_MS))
def test_a_duration_reads_back_what_was_written(ms: int) -> None:
    assert duration_ms(f"{ms}ms") == ms


@given(gib=st.decimals(min_value="0.25", max_value=4096, places=2))
def test_decimals_make_a_whole_mib_or_are_rejected(gib: object) -> None:
    exact = float(str(gib)) * 1024
    if exact.is_integer():
        assert memory_mib(f"{gib}Gi") == exact
    else:
        with pytest.raises(NotAQuantity):
            memory_mib(f"{gib}Gi")


@pytest.mark.parametrize("reader", READERS)
def test_a_number_beyond_what_python_writes_is_rejected_like_any_other_fault(reader: Callable[[object], int]) -> None:
    with pytest.raises(NotAQuantity):
        reader(16**5000)
    with pytest.raises(NotAQuantity):
        reader([16**5000])
